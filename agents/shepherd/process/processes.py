"""Processes from /proc: descendants, resource usage, and processes with a job's mark.

A process may vanish between any two reads; that is never an error here. Process ids are only signalled by callers that
know the process to be theirs: a descendant not yet reaped, or a member of the job's control group.
"""

import ctypes
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from agents.shepherd.clock import NEVER

TICKS = os.sysconf("SC_CLK_TCK")
PR_SET_CHILD_SUBREAPER = 36
PAGE = os.sysconf("SC_PAGE_SIZE")


class Stat(NamedTuple):
    """Some fields of /proc/PID/stat."""

    parent: int
    group: int
    session: int
    cpu_s: float  # its own and that of children it has waited for
    threads: int
    start_ticks: int  # since boot; unique together with the pid
    resident: int  # bytes


def stat(pid: int) -> Stat | None:
    """Return the process's fields, or None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in parentheses may hold blanks and parentheses itself: fields are counted from its end.
    fields = text[text.rindex(b")") + 2 :].split()
    ticks = sum(map(int, fields[11:15]))
    return Stat(
        int(fields[1]), int(fields[2]), int(fields[3]), ticks / TICKS, int(fields[17]), int(fields[19]),
        int(fields[21]) * PAGE,
    )  # fmt: skip


_INT, _QUIT = 1 << (signal.SIGINT - 1), 1 << (signal.SIGQUIT - 1)


def is_in_background(pid: int, shell: str) -> bool:
    """Return True for a process that a shell without a terminal has started by ``&``, or that such a one has started.

    Such a shell makes them ignore SIGINT and SIGQUIT (POSIX, 2.9.3.1), a moment after the fork: until then the process
    still has the name of ``shell``. Workers that a program has left behind ignore SIGINT at most; Java catches SIGQUIT,
    whatever it was, and leaves SIGINT ignored.
    """
    try:
        with open(f"/proc/{pid}/status", "rb", buffering=0) as file:
            found = dict(re.findall(rb"^(Name|SigIgn|SigCgt):\s*(\S+)$", file.read(), re.MULTILINE))
    except (FileNotFoundError, ProcessLookupError):
        return False
    ignored, caught = int(found[b"SigIgn"], 16), int(found[b"SigCgt"], 16)
    is_fresh = found.get(b"Name") == shell.encode()
    return is_fresh or bool(ignored & _QUIT or (ignored & _INT and caught & _QUIT))


def everyone() -> dict[int, Stat]:
    """Return all processes of the machine that this PID namespace shows."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (entry := stat(int(name))) is not None:
            found[int(name)] = entry
    return found


def descendants(root: int, among: dict[int, Stat] | None = None) -> list[int]:
    """Return all descendants of ``root``, parents first; without the root."""
    children: dict[int, list[int]] = {}
    for pid, entry in (everyone() if among is None else among).items():
        children.setdefault(entry.parent, []).append(pid)
    found: list[int] = []
    todo = [root]
    while todo:
        born = children.pop(todo.pop(), [])
        found += born
        todo += born
    return found


def have_children() -> bool:
    """Return True if this process has children, including dead ones not yet reaped.

    A subreaper without children has no descendants.
    """
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def marked(marks: Iterable[bytes]) -> list[int]:
    """Return processes whose initial environment holds every one of these NAME=VALUE strings."""
    wanted = set(marks)
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and wanted <= _environment(name)]


def _environment(pid: str) -> set[bytes]:
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return set(file.read().split(b"\0"))
    except OSError:  # gone, or of another user
        return set()


def send(pids: Iterable[int], number: int) -> int:
    """Signal each process that still exists; return their number."""
    reached = 0
    for pid in pids:
        try:
            os.kill(pid, number)
            reached += 1
        except (ProcessLookupError, PermissionError):
            continue
    return reached


def stop_and_kill(root: int) -> int:
    """Kill every descendant without the help of a control group; return their number.

    All are stopped first, repeatedly until no new ones appear: a running one could fork faster than it is found.
    """
    stopped: set[int] = set()
    while new := set(descendants(root)) - stopped:
        send(new, signal.SIGSTOP)
        stopped |= new
    return send(stopped, signal.SIGKILL)


def task_trees(
    serials: Iterable[int],
    first: Mapping[int, int],
    pool: Iterable[int],
    sessions: Mapping[int, int] = MappingProxyType({}),
) -> dict[int, list[int]]:
    """Return a job's processes in ``pool`` by task, for these tasks.

    They descend from its first process, stayed in its session, or were born with its mark. ``first`` maps living first
    processes to their tasks' serials; an ended one may have left descendants: ``sessions`` maps those of ended ones.
    """
    among = {pid: entry for pid in pool if (entry := stat(pid)) is not None}
    found: dict[int, list[int]] = {serial: [] for serial in serials}
    known = dict(first)
    for pid in among:
        session = among[pid].session
        serial = _ancestor(pid, among, known) or first.get(session) or sessions.get(session)
        serial = serial or _serial_in_environment(pid)
        if serial in found:
            found[serial].append(pid)
    return found


def _ancestor(pid: int, among: Mapping[int, Stat], known: dict[int, int]) -> int:
    """Return the serial of the task whose first process is an ancestor, or 0; cached for all on the way."""
    way = []
    while pid not in known and pid in among:
        way.append(pid)
        known[pid] = 0  # a reused process id must not cause a cycle
        pid = among[pid].parent
    serial = known.get(pid, 0)
    known.update(dict.fromkeys(way, serial))
    return serial


def _serial_in_environment(pid: int) -> int:
    start = b"LAVA_TASK_SERIAL="
    text = next((entry[len(start) :] for entry in _environment(str(pid)) if entry.startswith(start)), b"")
    return int(text) if text.isdigit() else 0


def become_subreaper() -> None:
    """Make this process inherit its descendants' orphans, so that no process of a job can leave its tree.

    Raises:
        OSError: the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


PAUSE_S = 0.005  # least time in which signals are gathered


class TaskSignals:
    """Signals to tasks of a job, gathered: one look at all of its processes finds those of a thousand tasks.

    ``find`` returns the processes of tasks by their serials.
    """

    def __init__(self, find: Callable[[Iterable[int]], dict[int, list[int]]]) -> None:
        self.next_at = NEVER
        self._find = find
        self._waiting: dict[int, list[int]] = {}
        self._pause_s = PAUSE_S

    def add(self, number: int, serial: int) -> None:
        """Signal a task, soon."""
        self._waiting.setdefault(serial, []).append(number)
        self.next_at = min(self.next_at, time.monotonic() + self._pause_s)

    def send(self) -> None:
        """Send all waiting signals."""
        began, self.next_at = time.monotonic(), NEVER
        waiting, self._waiting = self._waiting, {}
        found = self._find(waiting)
        for serial, numbers in waiting.items():
            for number in numbers:
                send(found[serial], number)
        self._pause_s = max(PAUSE_S, time.monotonic() - began)  # leaves half of the time for other work
