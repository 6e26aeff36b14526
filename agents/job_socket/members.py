"""Callers of the job socket: the attempt and the task that a process belongs to, as the kernel knows it.

A process is one of an attempt if it is in the control group of its shepherd's slot, or descends from that shepherd.
Invariants: nothing that the caller says counts; a process of another user is of no attempt, but for root's in its
group. Within one job the task is told by its first process, and by the environment for what has left that.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from agents.attempts.ledger import Ledger
from agents.attempts.ledger_entry import Entry, State
from agents.attempts.task_book import Run
from agents.shepherd.confinement.hierarchy import Base
from agents.shepherd.messages import Key
from agents.shepherd.process import processes
from agents.shepherd_pool.pool import Pool

GENERATIONS_MAX = 256  # of parents that are looked at
DIGITS_MAX = 9  # of the number of a task


class NotOfAJob(Exception):
    """Refusal of a caller; the text is one sentence."""


class Member(NamedTuple):
    """A process of an attempt of this host; ``run`` is of the task of a job of tasks that it belongs to."""

    entry: Entry
    pid: int
    run: Run | None


def member(pid: int, uid: int, ledger: Ledger, pool: Pool) -> Member:
    """Find the attempt of a process.

    Args:
        uid: its user, as the kernel recorded it when it connected.

    Raises:
        NotOfAJob: it belongs to none here.
    """
    line = list(_ancestors(pid))
    key = _key_of(pid, line, pool)
    entry = ledger.entries.get(key) if key is not None else None
    if entry is None or entry.state is not State.HELD:
        raise NotOfAJob("this process belongs to no job on this host")
    if uid not in (0, entry.blob.uid):
        raise NotOfAJob(f"this process belongs to uid {uid}, and the job to {entry.blob.user}")
    return Member(entry, pid, _run_of(entry, pid, line))


def _key_of(pid: int, line: list[int], pool: Pool) -> Key | None:
    slot = slot_of(_text(f"/proc/{pid}/cgroup"), pool.base)
    for handle in pool.handles():
        if handle.key is not None and (handle.slot == slot if slot >= 0 else handle.pid in line):
            return handle.key
    return None


def slot_of(memberships: str, base: Base) -> int:
    """Return the slot whose control group a process is in, by its /proc/PID/cgroup; -1 for none."""
    wanted = "pids" if base.version == 1 else ""
    name = os.path.basename(dict(base.paths).get(wanted, ""))
    for line in memberships.splitlines():
        _, controllers, path = line.split(":", 2)
        words = path.split("/")
        if name and wanted in controllers.split(",") and name in words[:-1]:
            number = words[words.index(name) + 1]
            return int(number) if number.isdecimal() else -1
    return -1


def _ancestors(pid: int) -> Iterator[int]:
    """Return the process, its parent, and so on."""
    for _ in range(GENERATIONS_MAX):
        if pid <= 1:
            return
        yield pid
        found = processes.stat(pid)
        if found is None:
            return
        pid = found.parent


def _run_of(entry: Entry, pid: int, line: list[int]) -> Run | None:
    if entry.tasks is None:
        return None
    for (role, index), known in entry.tasks.known.items():
        if known.state is not None and not known.has_ended and known.state.pid in line:
            return role, index, known.run
    return _run_in(_text(f"/proc/{pid}/environ"), entry)


def _run_in(environment: str, entry: Entry) -> Run | None:
    """Return the task named in an environment, for a process that has left the tree of its task."""
    found = dict(line.partition("=")[::2] for line in environment.split("\0"))
    roles = [role.name for role in entry.blob.spec.roles]
    role, index = found.get("LAVA_ROLE", ""), found.get("LAVA_ROLE_INDEX", "")
    if entry.tasks is None or role not in roles or not (index.isdecimal() and len(index) <= DIGITS_MAX):
        return None
    task = (roles.index(role), int(index))
    return (*task, entry.tasks.run_of(task)) if task in entry.tasks.known else None


def _text(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().decode(errors="replace")
    except OSError:  # gone, or not ours to read
        return ""
