"""A person at a terminal: a command on a pseudo-terminal of its own, what is typed, and what is seen."""

import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import time
from types import TracebackType

from tests.acceptance.personal import Cluster

PATIENCE_S = 60.0


class Terminal:
    """A terminal that runs one command, in a session of its own that it controls."""

    def __init__(self, cluster: Cluster, *words: str, lines: int = 24, columns: int = 80) -> None:
        self._master, slave = os.openpty()
        self.seen = b""
        self._read = 0
        self.resize(lines, columns)
        environment = {**cluster.environment, "TERM": "dumb", "PS1": "$ "}
        argv = ["setsid", "--ctty", *words]
        self.process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, env=environment)
        os.close(slave)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._master)  # hangs up
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def resize(self, lines: int, columns: int) -> None:
        """Change the size of the window."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._master, text.encode())

    def read(self, wanted: str) -> str:
        """Wait until this is seen, after what was read before; all that came before it."""
        deadline = time.monotonic() + PATIENCE_S
        while (found := self.seen.find(wanted.encode(), self._read)) < 0:
            ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{wanted!r} is not seen: {self.seen[-2000:]!r}"
            try:
                data = os.read(self._master, 65536)
            except OSError:
                data = b""
            assert data, f"the end, and {wanted!r} is not seen: {self.seen[-2000:]!r}"
            self.seen += data
        before = self.seen[self._read : found]
        self._read = found + len(wanted.encode())
        return before.decode(errors="replace")

    def wait(self) -> int:
        """Read to the end; the exit code as a shell has it."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            ready, _, _ = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no end: {self.seen[-2000:]!r}"
            try:
                data = os.read(self._master, 65536)
            except OSError:
                break
            if not data:
                break
            self.seen += data
        code = self.process.wait(PATIENCE_S)
        return code if code >= 0 else 128 - code

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Signal the command."""
        self.process.send_signal(number)
