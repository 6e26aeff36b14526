"""Identification of a cluster's processes, and how to end exactly those.

A process is identified by its pid with its start time and the machine's boot id: a pid alone may have been reused. A
signal is sent through a pidfd that was checked after it was opened, so it cannot hit a reused pid either.
"""

import contextlib
import fcntl
import functools
import os
import select
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_NS_GET_PARENT = 0xB702
# A job that forks faster than it dies needs a few; one that cannot be killed at all must not block us for ever.
SWEEP_ROUNDS = 50
LOOK_AGAIN_S = 0.02


@dataclass(frozen=True, slots=True)
class Process:
    """A process; `start_ticks` is its kernel start time in clock ticks after boot."""

    pid: int
    start_ticks: int
    boot_id: str


@functools.cache
def boot_id() -> str:
    """Identity of the present boot of this machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def identify(pid: int) -> Process | None:
    """Process that has this pid now; None if there is none, or only its exit status is left."""
    fields = _stat(pid)
    return Process(pid, int(fields[19]), boot_id()) if fields and fields[0] not in "ZX" else None


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat after the command name, which may itself contain blanks and brackets."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_alive(process: Process | None) -> bool:
    """True if that very process still runs."""
    return process is not None and identify(process.pid) == process


def _open(process: Process) -> int | None:
    """pidfd of that very process."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return None
    if is_alive(process):
        return descriptor
    os.close(descriptor)
    return None


def end(processes: Iterable[Process], patience_s: float) -> None:
    """Send SIGTERM to all, SIGKILL to those left after `patience_s`; returns when all are gone."""
    opened = [(process.pid, descriptor) for process in processes if (descriptor := _open(process)) is not None]
    try:
        _send(opened, signal.SIGTERM)
        left = _gone_by(opened, time.monotonic() + patience_s)
        _send(left, signal.SIGKILL)
        # Only a process in an uninterruptible system call survives SIGKILL; the bound is for those.
        _gone_by(left, time.monotonic() + 10)
    finally:
        for _, descriptor in opened:
            os.close(descriptor)


def _send(opened: Iterable[tuple[int, int]], number: signal.Signals) -> None:
    for _, descriptor in opened:
        try:
            signal.pidfd_send_signal(descriptor, number)
            if number is signal.SIGTERM:
                # A stopped process would not act on it.
                signal.pidfd_send_signal(descriptor, signal.SIGCONT)
        except ProcessLookupError:
            continue


def _gone_by(opened: list[tuple[int, int]], deadline: float) -> list[tuple[int, int]]:
    """Wait for exits; the processes left at the deadline."""
    left = {descriptor: pid for pid, descriptor in opened}
    poller = select.poll()
    for descriptor in left:
        poller.register(descriptor, select.POLLIN)
    while left and (remaining_s := deadline - time.monotonic()) > 0:
        for descriptor, _ in poller.poll(remaining_s * 1000):
            poller.unregister(descriptor)
            _reap(left.pop(descriptor))
    return [(pid, descriptor) for descriptor, pid in left.items()]


def _reap(pid: int) -> None:
    """Collect the exit status if the process was a child of this one; otherwise init does."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def sweep(find: Callable[[], Iterable[int]]) -> None:
    """SIGKILL all processes that `find()` returns until it returns none; a round catches what the last one's victims
    forked.

    Newest first and each as soon as it is found: the head of a chain of forks has the highest pid, and must be outrun.
    """
    for _ in range(SWEEP_ROUNDS):
        if not _kill_all(find):
            return


def _kill_all(find: Callable[[], Iterable[int]]) -> bool:
    """Kill until `find` returns no new process, then wait for their exits; False if there was none to kill."""
    hit: dict[int, Process] = {}
    while True:
        new = [process for pid in sorted(find(), reverse=True) if pid not in hit and (process := _kill_at_once(pid))]
        if not new:
            break
        hit.update((process.pid, process) for process in new)
    deadline = time.monotonic() + 5  # a process in an uninterruptible system call must not block us
    while any(is_alive(process) for process in hit.values()) and time.monotonic() < deadline:
        time.sleep(LOOK_AGAIN_S)
    return bool(hit)


def _kill_at_once(pid: int) -> Process | None:
    """The killed process; None if it had ended already."""
    process = identify(pid)
    descriptor = _open(process) if process is not None else None
    if descriptor is None:
        return None
    try:
        _send([(pid, descriptor)], signal.SIGKILL)
    finally:
        os.close(descriptor)
    return process


def all_pids() -> Iterator[int]:
    """All visible processes, except this one."""
    own = os.getpid()
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != own:
            yield int(name)


def mentioning(text: bytes) -> set[int]:
    """Processes with this text in their command line."""
    found = set()
    for pid in all_pids():
        # Ended in the meantime, or not readable for this user.
        with contextlib.suppress(OSError):
            if text in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.add(pid)
    return found


def namespace(pid: int, kind: str) -> int | None:
    """Identity of a process's namespace; None if the process has ended or is not accessible to this user."""
    try:
        return os.stat(f"/proc/{pid}/ns/{kind}").st_ino
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def is_within(pid: int, user_namespace: int) -> bool:
    """True if a process lives in this user namespace or in a descendant of it."""
    try:
        descriptor = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return False
    try:
        while os.fstat(descriptor).st_ino != user_namespace:
            parent = fcntl.ioctl(descriptor, _NS_GET_PARENT)
            os.close(descriptor)
            descriptor = parent
    except PermissionError:  # the parent is outside this process's view: end of search
        return False
    finally:
        os.close(descriptor)
    return True
