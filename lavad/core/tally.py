"""Counts of slots by queue, user and state, kept as jobs move, so that nobody has to count."""

from collections import Counter

from lavad.core.model import FINAL, JobState, Shared


class Tally:
    """Slots and jobs by (queue, state) and by (user, state). A waiting job counts the slots it asks for at least."""

    def __init__(self) -> None:
        self.slots_by_queue: Counter[tuple[str, JobState]] = Counter()
        self.slots_by_user: Counter[tuple[str, JobState]] = Counter()
        self.jobs_by_user: Counter[tuple[str, JobState]] = Counter()
        self.work_by_queue: Counter[tuple[str, JobState]] = Counter()  # slots times run limit, of what waits

    def add(self, shared: Shared, state: JobState, count: int = 1) -> None:
        """``count`` jobs submitted like this one came into (or, negative, left) a state."""
        if not count or state in FINAL:
            return  # ended jobs are counted by the store
        slots = shared.request.slots_min * count
        self.slots_by_queue[shared.queue, state] += slots
        self.slots_by_user[shared.user, state] += slots
        self.jobs_by_user[shared.user, state] += count
        if state is JobState.PEND:
            self.work_by_queue[shared.queue, state] += slots * shared.run_limit_s

    def move(self, shared: Shared, old: JobState, new: JobState, count: int = 1) -> None:
        """``count`` jobs went from one state to another."""
        if not count:
            return
        slots, queue, user = shared.request.slots_min * count, shared.queue, shared.user
        self.slots_by_queue[queue, old] -= slots
        self.slots_by_user[user, old] -= slots
        self.jobs_by_user[user, old] -= count
        if old is JobState.PEND:
            self.work_by_queue[queue, old] -= slots * shared.run_limit_s
        if new not in FINAL:  # ended jobs are counted by the store
            self.slots_by_queue[queue, new] += slots
            self.slots_by_user[user, new] += slots
            self.jobs_by_user[user, new] += count
            if new is JobState.PEND:
                self.work_by_queue[queue, new] += slots * shared.run_limit_s
