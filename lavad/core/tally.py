"""Counts of slots by queue, user and state, kept as jobs move, so that nobody has to count.

Moves are noted at once and entered when somebody looks: thousands of starts and ends come between two looks, and most
of them are alike.
"""

from collections import Counter

from lavad.core.model import FINAL, WAITING, JobState, Shared
from lavad.core.waiting import Waiting

_NOTED_MAX = 10_000  # moves that differ, before they are entered
_Move = tuple[int, JobState | None, JobState]  # id of what the jobs share; from (None: from nowhere) and to which state


class Tally:
    """Slots and jobs by (queue, state) and by (user, state). A waiting job counts the slots it asks for at least."""

    def __init__(self, waiting: Waiting) -> None:
        self.waiting = waiting  # as of the last look; ``waiting_now`` is what counts
        self._slots_by_queue: Counter[tuple[str, JobState]] = Counter()
        self._slots_by_user: Counter[tuple[str, JobState]] = Counter()
        self._jobs_by_user: Counter[tuple[str, JobState]] = Counter()
        self._work_by_queue: Counter[tuple[str, JobState]] = Counter()
        self._noted: dict[_Move, tuple[Shared, int]] = {}  # and how many jobs moved like this

    @property
    def waiting_now(self) -> Waiting:
        """What waits under each limit on waiting jobs."""
        self._enter()
        return self.waiting

    def take_waiting(self, waiting: Waiting) -> None:
        """Under other rules: count what waits anew."""
        self.waiting = waiting
        if waiting:
            self._enter()
            waiting.adopt(_waiting_of(self._jobs_by_user), _waiting_of(self._slots_by_user))

    @property
    def slots_by_queue(self) -> Counter[tuple[str, JobState]]:
        """Slots of each queue's jobs by state."""
        self._enter()
        return self._slots_by_queue

    @property
    def slots_by_user(self) -> Counter[tuple[str, JobState]]:
        """Slots of each user's jobs by state."""
        self._enter()
        return self._slots_by_user

    @property
    def jobs_by_user(self) -> Counter[tuple[str, JobState]]:
        """Jobs of each user by state."""
        self._enter()
        return self._jobs_by_user

    @property
    def work_by_queue(self) -> Counter[tuple[str, JobState]]:
        """Slots times run limit of each queue's jobs that wait."""
        self._enter()
        return self._work_by_queue

    def add(self, shared: Shared, state: JobState, count: int = 1) -> None:
        """``count`` jobs submitted like this one came into (or, negative, left) a state."""
        self._note(shared, None, state, count)

    def _add(self, shared: Shared, state: JobState, count: int) -> None:
        if not count or state in FINAL:
            return  # ended jobs are counted by the store
        slots = shared.request.slots_min * count
        self._slots_by_queue[shared.queue, state] += slots
        self._slots_by_user[shared.user, state] += slots
        self._jobs_by_user[shared.user, state] += count
        if state in WAITING and self.waiting:
            self.waiting.add(shared.user, count, slots)
        if state is JobState.PEND:
            self._work_by_queue[shared.queue, state] += slots * shared.run_limit_s

    def move(self, shared: Shared, old: JobState, new: JobState, count: int = 1) -> None:
        """``count`` jobs went from one state to another."""
        self._note(shared, old, new, count)

    def _note(self, shared: Shared, old: JobState | None, new: JobState, count: int) -> None:
        kind = (id(shared), old, new)
        noted = self._noted.get(kind)
        if noted is None:
            noted = (shared, 0)
        elif noted[0] is not shared:  # in a copy of a tally ids are those of the original's
            self._enter()
            noted = (shared, 0)
        self._noted[kind] = (shared, noted[1] + count)
        if len(self._noted) > _NOTED_MAX:
            self._enter()

    def _enter(self) -> None:
        if not self._noted:
            return
        noted, self._noted = self._noted, {}
        for (_, old, new), (shared, count) in noted.items():
            if old is not None:
                self._add(shared, old, -count)
            self._add(shared, new, count)


def _waiting_of(counts: Counter[tuple[str, JobState]]) -> Counter[str]:
    """By user, of the states in which jobs wait."""
    found: Counter[str] = Counter()
    for (user, state), count in counts.items():
        if state in WAITING:
            found[user] += count
    return found
