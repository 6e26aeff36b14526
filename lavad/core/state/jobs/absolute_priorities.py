"""Absolute priorities of pending jobs in queues with APS_PRIORITY, as the ranks of their entries.

A value depends on the job, and on time in two ways: by grace periods, which end at known moments, and by the growth of
job priorities (JOB_PRIORITY_OVER_TIME). All jobs whose value grows at the common pace are ranked for good by their
value extrapolated to time 0, as jobs of other queues are. So a rank changes only when a grace period or a limit of the
job is reached: that moment is noted, and the job is ranked anew then. Values that grow at another pace, because a limit
or a grace period holds them or the queue has another weight, are ranked anew at an interval. No pass computes a value.

The share of a user (FS) is the same for all jobs of an account and is no part of their ranks: the scheduler adds it
when it chooses between accounts.
"""

import heapq
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from lavad.core.language.requirements.parsed import wants_of
from lavad.core.language.requirements.rusage import Per
from lavad.core.model import PARTS, Request
from lavad.core.model.priorities import absolute as a
from lavad.core.model.windows import NEVER
from lavad.core.state.pending import PendingEntry

if TYPE_CHECKING:
    from lavad.core.model.policy import Policy
    from lavad.core.state.records import ArrayRecord, Job

INTERVAL_S = 60.0  # after which values that do not grow at the common pace are computed again
AT_ONCE = 500  # jobs that one tick ranks anew: the rest follows in the next ones
_SYSTEM = float("-inf")  # rank of jobs with a value set by an administrator: before all calculated ones
_DIGITS = 6
_KEPT_MIN = 4096
_MARGIN_S = 1.0  # after a limit has been reached: rounding must not say that it is still ahead


class AbsolutePriorities:
    """Ranks under one policy. ``growth`` is that of job priorities, per second, in all queues.

    ``_as_of``: when jobs were ranked last, if not with the value of their submission; ``_due``: when they have to be
    again. Both hold jobs whose values change with time only.
    """

    def __init__(self, policy: "Policy") -> None:
        self.rules = {queue.name: queue.absolute for queue in policy.queues if queue.absolute is not None}
        self._priorities = {queue.name: float(queue.priority) for queue in policy.queues}
        self._profiles = {name: float(one.priority) for name, one in policy.applications.items() if one.priority}
        self.growth = policy.priority_growth
        self._paces = {name: self._pace_of(rule) for name, rule in self.rules.items()}
        self._pace = max(self._paces.values(), key=abs, default=0.0)  # common one
        self._as_of: dict[int, float] = {}
        self._due: dict[int, float] = {}
        self._heap: list[tuple[float, int]] = []
        self.pruned_at = _KEPT_MIN

    def is_like(self, other: "AbsolutePriorities") -> bool:
        """True if both give the same jobs the same values."""
        return self._facts == other._facts

    @property
    def _facts(self) -> tuple[object, ...]:
        if not self.rules:
            return ()
        return self.rules, self._priorities, self._profiles, self.growth

    def _pace_of(self, rule: a.AbsolutePriority) -> float:
        """Growth of values, per second, while no limit or grace period holds them."""
        return rule.of(a.WORK).weight * rule.of(a.JPRIORITY).weight * self.growth

    # -- values ------------------------------------------------------------------------------------------------------

    def amounts(self, record: "Job | ArrayRecord", at: float) -> Mapping[str, float]:
        """Amounts of the job at a time, by subfactor."""
        shared = record.shared
        priority = record.priority + self.growth * (at - record.aged_from) if self.growth else record.priority
        own = {
            a.JPRIORITY: priority,
            a.QPRIORITY: self._priorities.get(shared.queue, 0.0),
            a.APP: self._profiles.get(shared.application, 0.0),
        }
        return {**own, **_resources(shared.request)}

    def value(self, record: "Job | ArrayRecord", at: float) -> float:
        """Value of a job at a time, without the share of its user; that of an administrator if there is one."""
        given = given_of(record)
        if given.kind == a.SYSTEM:
            return given.value
        rule = self.rules[record.shared.queue]
        return rule.value(self.amounts(record, at), at - record.submitted_at) + given.value

    # -- ranks -------------------------------------------------------------------------------------------------------

    def entry(self, record: "Job | ArrayRecord") -> PendingEntry:
        """Entry of a job of such a queue in its bucket; the same until the job is noted or ranked anew."""
        given = given_of(record)
        if given.kind == a.SYSTEM:
            return PendingEntry(_SYSTEM, -given.value, record.number)
        at = self._as_of.get(record.number, record.submitted_at)
        return PendingEntry(round(self._pace * at - self.value(record, at), _DIGITS), record.position, record.number)

    def note(self, record: "Job | ArrayRecord") -> None:
        """Note when a job that has been entered in its bucket has to be ranked anew."""
        at = self._next_change(record, self._as_of.get(record.number, record.submitted_at))
        if at < NEVER and self._due.get(record.number) != at:
            self._due[record.number] = at
            heapq.heappush(self._heap, (at, record.number))

    def _next_change(self, record: "Job | ArrayRecord", since: float) -> float:
        if given_of(record).kind == a.SYSTEM:
            return NEVER
        rule = self.rules[record.shared.queue]
        ends = [record.submitted_at + grace_s for grace_s in rule.grace_ends]
        first = min([end for end in ends if end > since], default=NEVER)
        if not self._pace:
            return first
        if self._pace_now(record, rule, since) != self._pace:
            return min(first, since + INTERVAL_S)
        return min(first, *self._limits_reached(record, rule, since))

    def _pace_now(self, record: "Job | ArrayRecord", rule: a.AbsolutePriority, at: float) -> float:
        """Growth of the job's value, 0 while a limit or a grace period holds it."""
        waited_s, amounts = at - record.submitted_at, self.amounts(record, at)
        inner = rule.of(a.JPRIORITY)
        outer = rule.of(a.WORK)
        held = waited_s < max(inner.grace_s, outer.grace_s)
        held = held or bool(inner.limit and abs(inner.weight * amounts[a.JPRIORITY]) >= inner.limit)
        held = held or bool(outer.limit and abs(rule.part(a.WORK, amounts, waited_s)) >= outer.limit)
        return 0.0 if held else self._paces[record.shared.queue]

    def _limits_reached(self, record: "Job | ArrayRecord", rule: a.AbsolutePriority, since: float) -> Iterator[float]:
        """Times at which the growing value reaches the limit of JPRIORITY and that of WORK."""
        yield NEVER
        inner, outer = rule.of(a.JPRIORITY), rule.of(a.WORK)
        amounts = self.amounts(record, since)
        pace = inner.weight * self.growth
        if inner.limit and pace:
            end = inner.limit if pace > 0 else -inner.limit
            yield since + max(0.0, (end - inner.weight * amounts[a.JPRIORITY]) / pace) + _MARGIN_S
        pace *= outer.weight
        if outer.limit and pace:
            end = outer.limit if pace > 0 else -outer.limit
            yield since + max(0.0, (end - rule.part(a.WORK, amounts, since - record.submitted_at)) / pace) + _MARGIN_S

    # -- time --------------------------------------------------------------------------------------------------------

    @property
    def due_at(self) -> float:
        """Time at which a job has to be ranked anew next."""
        return self._heap[0][0] if self._heap else NEVER

    def take_due(self, now: float) -> list[int]:
        """Take jobs that have to be ranked anew by now, as many as one tick may have."""
        found: list[int] = []
        while self._heap and self._heap[0][0] <= now and len(found) < AT_ONCE:
            at, job = heapq.heappop(self._heap)
            if self._due.get(job) == at:
                del self._due[job]
                found.append(job)
        return found

    def rank_as_of(self, job: int, at: float) -> None:
        """Rank a job by its value at that time: its entry is another one from now on."""
        self._as_of[job] = at

    def forget(self, job: int) -> None:
        """Forget when a job was ranked last: it is in no bucket."""
        self._as_of.pop(job, None)

    def kept(self) -> list[int]:
        """Jobs whose ranks are of other times than their submission, if so many have come since the last call that
        some of them may be over; else none."""
        if len(self._as_of) < self.pruned_at:
            return []
        return list(self._as_of)

    def pruned(self) -> None:
        """Note that all jobs that are over have been forgotten."""
        self.pruned_at = max(_KEPT_MIN, 2 * len(self._as_of))


def given_of(record: "Job | ArrayRecord") -> a.Given:
    """The value that an administrator has set of the job."""
    conditions = record.conditions
    return conditions.absolute if conditions is not None else a.NOTHING_GIVEN


@lru_cache(maxsize=8192)
def _resources(request: Request) -> dict[str, float]:
    """Slots, and memory and swap in MiB that a request asks for; amounts for each host count once."""
    memory = swap = 0.0
    for role in request.roles:
        memory += role.memory_mib
        for one in wants_of(role).reserves:
            amount = one.largest / PARTS * (role.tasks_max if one.per is Per.TASK else 1)
            memory += amount if one.name == "mem" else 0.0
            swap += amount if one.name == "swp" else 0.0
    return {a.PROC: float(request.slots_max), a.MEM: memory, a.SWAP: swap}
