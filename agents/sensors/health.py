"""Health checks of this host: the site's program, run when the master asks for it.

Its exit status is the verdict: 0 ok, 1 warn, 2 bad. One that doesn't end in time is bad: what it looks at hangs. One
that can't even be killed, as by a hung file system, is left behind, and no other is started as long as it is there.
Whatever else keeps it from a verdict is a warning: it is missing, is killed or exits with another status.
"""

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agents.sensors.elim import is_safe

OK, WARN, BAD = 0, 1, 2
OUTPUT_MAX = 4096
LOOK_S = 0.1
KILL_S = 2.0


class Verdict(NamedTuple):
    """Verdict of a check, with the first line of its output."""

    verdict: int
    text: str


class HealthProgram:
    """Runs checks, one at a time."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._left: subprocess.Popen[bytes] | None = None
        self.is_late = False  # the last run had no answer in time

    def run(self, argv: Sequence[str], limit_s: float) -> Verdict:
        """Run the program; blocks until it has ended, at most for the limit and the time to kill it."""
        self.is_late = self._left is not None and self._left.poll() is None
        if self.is_late:
            return Verdict(BAD, "the last health check hangs and cannot be killed")
        try:
            if not is_safe(Path(argv[0])):
                return Verdict(WARN, f"{argv[0]}: others than root may change this program; it is not run")
            process = self._left = self._start(argv)
        except OSError as error:
            return Verdict(WARN, f"{argv[0]}: {error.strerror}")
        try:
            output = self._read(process, time.monotonic() + limit_s)
        finally:
            has_ended = process.poll() is not None
            self._kill(process)
        if has_ended:
            return _verdict(process.returncode, output)
        if self._stopped.is_set():
            return Verdict(WARN, "the agent ends")
        self.is_late = True
        return Verdict(BAD, f"the health check did not end within {limit_s:g} s")

    def stop(self) -> None:
        """End the check that runs, and all later ones at once."""
        self._stopped.set()

    @staticmethod
    def _start(argv: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/",
            start_new_session=True,
        )

    def _read(self, process: subprocess.Popen[bytes], end: float) -> bytes:
        """Read until the program has ended, or the time or this agent ends; what it started may go on writing."""
        assert process.stdout is not None
        pipe, output, is_open = process.stdout.fileno(), b"", True
        while time.monotonic() < end and not self._stopped.is_set():
            has_ended = process.poll() is not None
            data = b""
            if not is_open:
                self._stopped.wait(LOOK_S)
            elif select.select([pipe], [], [], 0 if has_ended else LOOK_S)[0]:
                data = os.read(pipe, 65536)
                is_open = bool(data)
            output = (output + data)[:OUTPUT_MAX]
            if has_ended and (not data or len(output) == OUTPUT_MAX):
                break
        return output

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        process.stdout.close()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_S)


def _verdict(status: int, output: bytes) -> Verdict:
    line = next((line.strip() for line in output.decode(errors="replace").splitlines() if line.strip()), "")
    if status in (OK, WARN, BAD):
        return Verdict(status, line)
    how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
    return Verdict(WARN, f"the health check gave no verdict: {how}" + (f" ({line})" if line else ""))
