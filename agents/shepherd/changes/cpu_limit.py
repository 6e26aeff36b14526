"""CPU limit of each process of a job, changed while they run.

A process has the limit of its parent at the fork: members are listed again until none is new. lava's own programs and
the commands around the job keep what they started with, and so do daemons that these have left before the job began.
"""

import resource
import sys
from collections.abc import Callable, Collection

from agents.shepherd.process import processes
from agents.shepherd.process.start import within

ROUNDS_MAX = 20  # a job that forks faster than it is listed has the new limit in all but its newest processes


class CpuLimit:
    """CPU limit of the processes of one attempt, ``members`` of its control group."""

    def __init__(self, members: Callable[[], list[int]]) -> None:
        self._members = members
        self._spared: dict[int, int] = {}  # process id -> time of its start

    def spare(self) -> None:
        """Take the processes that are here now for others than the job's."""
        found = {pid: processes.stat(pid) for pid in self._members()}
        self._spared = {pid: entry.start_ticks for pid, entry in found.items() if entry is not None}

    def lay_on(self, seconds: int, helpers: Collection[int], as_user: Callable[[Callable[[], None]], None]) -> None:
        """Give the limit (0: none) to all processes of the job but these helpers and their descendants.

        ``as_user`` calls what it gets as the job's user, for processes that this one may not limit.
        """
        seen: set[int] = set()
        refused: list[int] = []
        for _ in range(ROUNDS_MAX):
            new = set(self._members()) - seen
            if not new:
                break
            seen |= new
            refused += [pid for pid in new - self._others(helpers) if not _is_limited(pid, seconds)]
        if refused:
            as_user(lambda: _limit_all(refused, seconds))

    def _others(self, helpers: Collection[int]) -> set[int]:
        if not (helpers or self._spared):
            return set()
        found = {pid: entry for pid in self._members() if (entry := processes.stat(pid)) is not None}
        spared = {pid for pid, began in self._spared.items() if pid in found and found[pid].start_ticks == began}
        roots = {*helpers, *spared}
        return roots.union(*(processes.descendants(root, found) for root in roots))


def _limit(pid: int, seconds: int) -> None:
    hard = resource.prlimit(pid, resource.RLIMIT_CPU)[1]
    resource.prlimit(pid, resource.RLIMIT_CPU, (within(seconds, hard) if seconds else hard, hard))


def _is_limited(pid: int, seconds: int) -> bool:
    """Limit a process, if it is still there; return False if this process may not."""
    try:
        _limit(pid, seconds)
    except ProcessLookupError:
        return True  # it has ended
    except PermissionError:
        return False
    return True


def _limit_all(pids: Collection[int], seconds: int) -> None:
    for pid in pids:
        if not _is_limited(pid, seconds):  # a set-user-id program
            print(f"event=cpu_limit_not_set pid={pid} seconds={seconds}", file=sys.stderr)
