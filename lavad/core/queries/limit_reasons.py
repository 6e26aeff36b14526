"""Pending reasons of limits, with LSF's numbers and words, and advice."""

from collections.abc import Iterator

from lavad.core.cluster import Cluster
from lavad.core.language.requirements.parsed import wants_of
from lavad.core.language.requirements.rusage import Per
from lavad.core.model import PARTS, Request, RoleRequest, Shared
from lavad.core.model import reasons as r
from lavad.core.model.reasons import PendingReason
from lavad.core.scheduling.capacity.free_resources import chunk_of
from lavad.core.scheduling.capacity.headroom import Headroom
from lavad.core.state.limits import DEVICES, JOBS, MEMORY, SLOTS, Counter, LimitKind, Rule, text_of

K = LimitKind
# Nothing left at all, and too little left for a parallel job.
_OVERALL = {
    K.QUEUE: (r.QUEUE_SLOTS, r.QUEUE_SLOTS_PARALLEL),
    K.QUEUE_USER: (r.QUEUE_USER_SLOTS, r.QUEUE_USER_SLOTS_PARALLEL),
    K.USER: (r.USER_SLOTS, r.USER_SLOTS_PARALLEL),
    K.GROUP: (r.GROUP_SLOTS, r.GROUP_SLOTS_PARALLEL),
}
_ON_HOSTS = {
    K.QUEUE_PROCESSOR: r.QUEUE_PROCESSOR,
    K.QUEUE_HOST: r.QUEUE_HOST,
    K.QUEUE_REST: r.JUST_STARTED,
    K.USER_PROCESSOR: r.USER_PROCESSOR,
    K.GROUP_PROCESSOR: r.GROUP_PROCESSOR,
    K.HOST_USER: r.HOST_USER,
    K.UNKNOWN_USER: r.UNKNOWN_USER,
}
_OF_GROUPS = frozenset({K.GROUP, K.GROUP_PROCESSOR})


class LimitReasons:
    """Limits that keep one pending job waiting."""

    def __init__(self, cluster: Cluster, shared: Shared, now: float) -> None:
        self._headroom = Headroom(cluster.limits, cluster.table, now)
        self._consumer = cluster.limits.consumer(shared.user, shared.queue, shared.project)
        self._shared = shared
        self.ceilings = self._headroom.ceilings(self._consumer) if self._consumer.is_of_hosts else None

    def overall(self) -> list[PendingReason]:
        """Limits that leave too little on any hosts."""
        request, headroom = self._shared.request, self._headroom
        found = list(headroom.all_blocking(self._consumer, request))
        for counter in self._consumer.overall:
            if counter not in found and least_of_job(counter.rule.what, request) > headroom.left(counter):
                found.append(counter)
        return [self._reason(counter) for counter in found]

    def _reason(self, counter: Counter) -> PendingReason:
        rule, left = counter.rule, self._headroom.left(counter)
        pair = _OVERALL.get(rule.kind)
        if pair is None:
            return PendingReason(r.NAMED_LIMIT, text_of(counter), advice=self._advice(counter))
        code, text = pair[1] if left > 0 and self._shared.request.slots_min > 1 else pair[0]
        return PendingReason(code, text + _group_of(rule), advice=self._advice(counter))

    def _advice(self, counter: Counter) -> str:
        where = counter.rule.kind.value.replace("of a group", f"of group {counter.rule.name}")
        return f"{where}: {counter.used:g} of {counter.rule.amount:g} in use"

    def on_host(self, row: int, role: RoleRequest) -> tuple[int, str] | None:
        """First limit that forbids the smallest part of the role on this host, or None."""
        if self.ceilings is None:
            return None
        return next(self._causes(row, role), None)

    def _causes(self, row: int, role: RoleRequest) -> Iterator[tuple[int, str]]:
        for counter in self._consumer.on_hosts:
            if self._headroom.left_on(counter)[row] < least_on_host(counter.rule.what, role):
                code, text = _ON_HOSTS.get(counter.rule.kind, (r.NAMED_LIMIT, text_of(counter)))
                yield code, text + _group_of(counter.rule)
        for counter in self._consumer.among_hosts:
            is_short = self._headroom.left(counter) < least_on_host(counter.rule.what, role)
            if is_short and self._headroom.members(counter.rule)[row]:
                yield r.NAMED_LIMIT, text_of(counter)


def least_on_host(what: str, role: RoleRequest) -> float:
    """Minimum of a limited resource that the role takes on a host where it has a task.

    The resource is slots, jobs, MiB of memory, devices, or a cluster-wide resource.
    """
    slots, memory_mib, gpus = chunk_of(role)
    if what == SLOTS:
        return slots
    if what == JOBS:
        return 1.0
    if what in DEVICES:
        return gpus
    reserved = sum(_reserved(what, role, slots // role.slots_per_task, (Per.TASK, Per.HOST)))
    return memory_mib + reserved if what == MEMORY else reserved


def least_of_job(what: str, request: Request) -> float:
    """Minimum of a rusage resource that the job takes on any hosts, over all alternatives.

    0 for slots, jobs and devices, which every request counts.
    """
    if what in (SLOTS, JOBS, *DEVICES):
        return 0.0
    choices = [request.roles, *(one.roles for one in request.alternatives)]
    return min(sum(_least_of_role(what, role) for role in roles) for roles in choices)


def _least_of_role(what: str, role: RoleRequest) -> float:
    return (role.memory_mib if what == MEMORY else 0.0) + sum(_reserved(what, role, role.tasks_min, tuple(Per)))


def _reserved(what: str, role: RoleRequest, tasks: int, per: tuple[Per, ...]) -> Iterator[float]:
    """Amounts of a resource that the role reserves for ``tasks`` tasks on one host, in the units ``per`` only."""
    for one in wants_of(role).reserves:
        if one.name == what and one.per in per:
            yield one.largest * (tasks if one.per is Per.TASK else 1) / PARTS


def _group_of(rule: Rule) -> str:
    """Text with the user's group and its limit, or with the user unknown to the host."""
    if rule.kind is K.UNKNOWN_USER:
        return f" (User: {rule.name})"
    return f" (Group: {rule.name}, Limit Value: {rule.amount:g})" if rule.kind in _OF_GROUPS else ""


def limit_reasons(cluster: Cluster, shared: Shared, now: float) -> LimitReasons | None:
    """Limit reasons of such a job; None if there are no limits."""
    return LimitReasons(cluster, shared, now) if cluster.limits else None
