"""Start and end of the master's child processes: programs of this installation that serve it over a socket pair.

The first of each kind is forked when the master starts, and waits for its first message: it has imported by then what
the master imports, too, and does not spend half a second of CPU on that once more. Later ones are executed: a process
with the threads of gRPC must never fork, and a process that only forks others would be one more to watch.
"""

import asyncio
import contextlib
import gc
import logging
import os
import site
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import lavad

log = logging.getLogger(__name__)


class Forked:
    """Forked child; the methods are those of ``subprocess.Popen``."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._waiting = threading.Lock()  # one thread waits for the process, the others for that thread

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None if it runs."""
        if self._waiting.acquire(blocking=False):
            try:
                self._reap(os.WNOHANG)
            finally:
                self._waiting.release()
        return self.returncode

    def wait(self) -> int:
        """Wait for its end and return the exit code, negative for a signal."""
        with self._waiting:
            return self._reap(0)

    def _reap(self, flags: int) -> int:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, flags)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode or 0

    def kill(self) -> None:
        """Kill it unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, 9)


Process = Forked | subprocess.Popen[bytes]
_prepared: dict[str, tuple[Forked, socket.socket]] = {}


def prepare(mains: Mapping[str, Callable[[int], None]]) -> None:
    """Fork a child process for each module, by its name, that runs this function of it.

    This process has one thread, and no descriptor that a child must not inherit until all is closed there.
    """
    gc.freeze()  # a collection would write to all objects, and so copy the pages shared with the children
    for module, main in mains.items():
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            _become_child(main, theirs, [ours, *(one for _, one in _prepared.values())])
        theirs.close()
        _prepared[module] = (Forked(pid), ours)


def _become_child(main: Callable[[int], None], theirs: socket.socket, others: list[socket.socket]) -> NoReturn:
    """Run a child as if it had been executed: a session of its own, and nothing of the master but its end."""
    status = 1
    try:
        gc.enable()
        for one in others:
            one.close()
        descriptor = theirs.detach()
        os.closerange(3, descriptor)
        os.closerange(descriptor + 1, os.sysconf("SC_OPEN_MAX"))
        os.setsid()
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        if null:
            os.close(null)
        main(descriptor)
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def start(module: str) -> tuple[Process, socket.socket]:
    """Return a running child process and the master's end of its socket.

    Raises:
        OSError: the system can't start one.
    """
    process, ours = _prepared.pop(module, (None, None))
    if process is not None and ours is not None:
        if process.poll() is None:
            return process, ours
        ours.close()
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            return _execute(module, theirs.fileno()), ours
        except OSError:
            ours.close()
            raise


def take_name(name: str) -> None:
    """Name this process for `ps`, `top` and `pgrep`: a forked one has the command line of the master."""
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(name, encoding="ascii")


def give_way(nice: int) -> None:
    """Lower the priority of this process, and of its session where the kernel shares processors among sessions.

    Where the system refuses, its work is done all the same, at the master's priority, and the log says so.
    """
    try:
        os.nice(nice)
    except OSError as error:
        log.error("priority=not_lowered reason=%r", f"{error.strerror}: the service must allow setpriority.")
    with contextlib.suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(nice), encoding="ascii")


def _execute(module: str, descriptor: int) -> subprocess.Popen[bytes]:
    """Start a module as a program, with its end of the socket pair.

    It has a session of its own: a terminal's interrupt must not end it before the master.
    """
    root, environment = str(Path(lavad.__file__).parents[1]), dict(os.environ)
    if root not in site.getsitepackages():  # a checkout: the child would not find it by itself
        environment["PYTHONPATH"] = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, str(descriptor)],
        env=environment,
        cwd="/",
        pass_fds=[descriptor],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


async def end(process: Process, timeout_s: float) -> None:
    """Wait for the end of a process whose socket is closed; kill it after the time given."""
    try:
        await asyncio.wait_for(asyncio.to_thread(process.wait), timeout_s)
    except TimeoutError:
        process.kill()
        process.wait()
