"""Counters of jobs and slots by queue, user, job group, application profile and state, and of limited pending jobs.

Where service classes are configured, also by all that decides which class a job belongs to (``Kind``).

Transitions are buffered and counted when a counter is read: thousands of starts and ends come between two reads, and
most of them are alike. Pending jobs are counted only for the configured limits, so that a submission costs the limits
that match its user.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from lavad.core.language.job_groups import lineage
from lavad.core.model import FINAL, WAITING, CountKey, JobState, Shared
from lavad.core.model.policy import Policy
from lavad.core.state.jobs.job_groups import JobGroups
from lavad.core.state.limits import user_rows

_SCOPES_KEPT = 100_000


@dataclass(frozen=True, slots=True)
class PendingLimit:
    """Maximum of pending jobs and slots of all users under ``scope``; None: no limit."""

    scope: str
    jobs: int | None
    slots: int | None


class PendingCounters:
    """Pending jobs and slots for each scope that has a limit."""

    def __init__(self, policy: Policy) -> None:
        self.jobs: Counter[str] = Counter()
        self.slots: Counter[str] = Counter()
        self._rows = [row for row in user_rows(policy) if _is_limited(row[1].pending_jobs, row[1].pending_slots)]
        self._of_all = (
            [PendingLimit("", policy.pending_jobs, policy.pending_slots)]
            if _is_limited(policy.pending_jobs, policy.pending_slots)
            else []
        )
        self._known: dict[str, tuple[PendingLimit, ...]] = {}

    def __bool__(self) -> bool:
        return bool(self._rows or self._of_all)

    def limits(self, user: str) -> tuple[PendingLimit, ...]:
        """Limits on this user's pending jobs: the user's own, those of groups, the cluster's."""
        found = self._known.get(user)
        if found is None:
            if len(self._known) >= _SCOPES_KEPT:
                self._known.clear()
            rows = [
                PendingLimit(f"user {user}" if not is_group else f"group {name}", row.pending_jobs, row.pending_slots)
                for name, row, users, is_group, _ in self._rows
                if user in users
            ]
            found = self._known[user] = (*rows, *self._of_all)
        return found

    def add(self, user: str, jobs: int, slots: int) -> None:
        """Count jobs and slots of the user that have become pending or, negative, are no longer."""
        for limit in self.limits(user):
            self.jobs[limit.scope] += jobs
            self.slots[limit.scope] += slots

    def adopt(self, jobs: Mapping[str, int], slots: Mapping[str, int]) -> None:
        """Recount from the pending jobs and slots of each user."""
        self.jobs.clear()
        self.slots.clear()
        for user, count in jobs.items():
            self.add(user, count, slots.get(user, 0))


def _is_limited(jobs: int | None, slots: int | None) -> bool:
    return jobs is not None or slots is not None


_Of = TypeVar("_Of")
_NOTED_MAX = 1000  # different transitions buffered at most
_Move = tuple[JobState | None, JobState]  # from (None: submitted) and to which state


class Kind(NamedTuple):
    """Attributes by which jobs belong to a service class: ``service_class`` is the one that they name, if any."""

    user: str
    queue: str
    application: str
    service_class: str


class JobCounters:
    """Slots and jobs by (queue, state), (user, state), (job group, state) and (application profile, state).

    A pending job counts the slots of its minimum size. Ended jobs are counted only by job group and kind, while memory
    has them; kinds are counted only if ``keeps_kinds``.
    """

    def __init__(self, waiting: PendingCounters, keeps_kinds: bool = False) -> None:
        self.waiting = waiting  # as of the last read; ``waiting_now`` is current
        self._slots_by_queue: Counter[tuple[str, JobState]] = Counter()
        self._slots_by_user: Counter[tuple[str, JobState]] = Counter()
        self._jobs_by_user: Counter[tuple[str, JobState]] = Counter()
        self._work_by_queue: Counter[tuple[str, JobState]] = Counter()
        self._slots_by_application: Counter[tuple[str, JobState]] = Counter()
        self._slots_by_group: Counter[tuple[str, JobState]] = Counter()
        self._jobs_by_group: Counter[tuple[str, JobState]] = Counter()
        self.keeps_kinds = keeps_kinds
        self._jobs_by_kind: Counter[tuple[Kind, JobState]] = Counter()
        self._slots_by_kind: Counter[tuple[Kind, JobState]] = Counter()
        self.watches_groups = False  # changes of job groups are noted for dependency conditions
        self._changed_groups: dict[str, None] = {}
        self._below: dict[str, Counter[JobState]] = {}  # by job group, until the next change
        self._noted: dict[_Move, Counter[CountKey]] = {}  # buffered number of jobs of each kind, by transition

    @property
    def waiting_now(self) -> PendingCounters:
        """Pending jobs and slots of each limit."""
        self._enter()
        return self.waiting

    def take_waiting(self, waiting: PendingCounters) -> None:
        """Put other limits into effect: recount the pending jobs."""
        self.waiting = waiting
        if waiting:
            self._enter()
            waiting.adopt(_waiting_of(self._jobs_by_user), _waiting_of(self._slots_by_user))

    def count_kinds(self, jobs: Iterable[tuple[Shared, JobState, int]]) -> None:
        """Count by kind from now on: the jobs of these shared facts and states, each with their number, and others."""
        self._enter()
        self.keeps_kinds = True
        for shared, state, count in jobs:
            self._add_kind(shared.sort, state, count)

    def forget_kinds(self) -> None:
        """Count by kind no longer."""
        self.keeps_kinds = False
        self._jobs_by_kind.clear()
        self._slots_by_kind.clear()

    @property
    def jobs_by_kind(self) -> Counter[tuple[Kind, JobState]]:
        """Jobs of each kind by state."""
        self._enter()
        return self._jobs_by_kind

    @property
    def slots_by_kind(self) -> Counter[tuple[Kind, JobState]]:
        """Slots of each kind's jobs by state."""
        self._enter()
        return self._slots_by_kind

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
        """Slots times run limit in seconds of each queue's pending jobs."""
        self._enter()
        return self._work_by_queue

    @property
    def slots_by_application(self) -> Counter[tuple[str, JobState]]:
        """Slots of each application profile's jobs by state."""
        self._enter()
        return self._slots_by_application

    @property
    def slots_by_group(self) -> Counter[tuple[str, JobState]]:
        """Slots of the jobs of each job group itself by state."""
        self._enter()
        return self._slots_by_group

    @property
    def jobs_by_group(self) -> Counter[tuple[str, JobState]]:
        """Jobs of each job group itself by state."""
        self._enter()
        return self._jobs_by_group

    def take_changed_groups(self) -> list[str]:
        """Job groups whose numbers have changed since the last call, with the groups above them."""
        self._enter()
        changed, self._changed_groups = self._changed_groups, {}
        return list(dict.fromkeys(path for group in changed for path in lineage(group)))

    def jobs_below(self, groups: JobGroups, path: str) -> Counter[JobState]:
        """Jobs of a group and of those below it by state."""
        counted, found = self.jobs_by_group, self._below.get(path)
        if found is None:
            found = self._below[path] = Counter()
            for one in groups.below(path):
                found.update({state: number for state in JobState if (number := counted.get((one, state)))})
        return found

    def add(self, shared: Shared, state: JobState, count: int = 1) -> None:
        """Count ``count`` jobs of these shared facts that entered (negative: left) a state."""
        self.move(shared, None, state, count)

    def move(self, shared: Shared, old: JobState | None, new: JobState, count: int = 1) -> None:
        """Count ``count`` jobs of these shared facts that went from one state, or from none, to another."""
        noted = self._noted.get((old, new))
        if noted is None:
            noted = self._noted[old, new] = Counter()
        sort = shared.sort
        noted[sort] = noted.get(sort, 0) + count
        if len(noted) > _NOTED_MAX:
            self._enter()

    def move_each(self, many: Iterable[CountKey], old: JobState, new: JobState) -> None:
        """Count one job of each of these kinds that went from one state to another."""
        noted = self._noted.setdefault((old, new), Counter())
        noted.update(many)
        if len(noted) > _NOTED_MAX:
            self._enter()

    def _enter(self) -> None:
        if not self._noted:
            return
        noted, self._noted = self._noted, {}
        self._below.clear()
        for (old, new), counts in noted.items():
            if old is not None:
                self._add(counts, old, -1)
            self._add(counts, new, 1)

    def _add(self, counts: Counter[CountKey], state: JobState, sign: int) -> None:
        is_over = state in FINAL  # counted by the store, but for job groups
        is_limited = state in WAITING and bool(self.waiting)
        for sort, count in counts.items():
            queue, user, jobs = sort.queue, sort.user, sign * count
            slots = jobs * sort.slots
            if sort.job_group:
                if self.watches_groups:
                    self._changed_groups[sort.job_group] = None
                _count(self._jobs_by_group, (sort.job_group, state), jobs)
                _count(self._slots_by_group, (sort.job_group, state), slots)
            if self.keeps_kinds:
                self._add_kind(sort, state, jobs)
            if is_over:
                continue
            if sort.application:
                self._slots_by_application[sort.application, state] += slots
            self._slots_by_queue[queue, state] += slots
            self._slots_by_user[user, state] += slots
            self._jobs_by_user[user, state] += jobs
            if is_limited:
                self.waiting.add(user, jobs, slots)
            if state is JobState.PEND:
                self._work_by_queue[queue, state] += slots * sort.run_limit_s

    def _add_kind(self, sort: CountKey, state: JobState, jobs: int) -> None:
        kind = Kind(sort.user, sort.queue, sort.application, sort.service_class)
        _count(self._jobs_by_kind, (kind, state), jobs)
        _count(self._slots_by_kind, (kind, state), jobs * sort.slots)


def _count(counter: Counter[tuple[_Of, JobState]], key: tuple[_Of, JobState], number: int) -> None:
    """Add to a counter that has no entry for 0: job groups and users come and go."""
    counter[key] += number
    if not counter[key]:
        del counter[key]


def _waiting_of(counts: Counter[tuple[str, JobState]]) -> Counter[str]:
    """Jobs or slots of each user in the pending states."""
    found: Counter[str] = Counter()
    for (user, state), count in counts.items():
        if state in WAITING:
            found[user] += count
    return found
