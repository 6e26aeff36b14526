"""Suggestions of commands that let a pending job start: changes of its request, and others.

A suggestion is a command line with ``{}`` for the job. Each has been tried on the present hosts.
"""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lavad.core.cluster_view import ClusterView
from lavad.core.decide.jobs.request import known_request
from lavad.core.model import Request, RoleAsked, Shared
from lavad.core.model import reasons as r
from lavad.core.model.demand import demand_of
from lavad.core.model.reasons import PendingReason, Refused
from lavad.core.model.rules.queues import Queue
from lavad.core.queries.backfill_reasons import delayed_by
from lavad.core.queries.pending_reasons import explain
from lavad.core.queries.request_changes import (
    Advice,
    counsel,
    given_up,
    idle_hosts,
    is_of_requirement,
    options,
    requirement_text,
    role_of,
)
from lavad.core.scheduling.backfill.reservations import ReservationTable
from lavad.core.scheduling.capacity.constraints import allowance_of
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.place import place
from lavad.core.scheduling.placement.within_limits import LimitedPlacer
from lavad.core.state.records import ArrayRecord, Job

if TYPE_CHECKING:
    from lavad.core.state.hosts.table import HostTable

HOSTS_NAMED_MAX = 16


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Commands that help a job.

    ``is_hopeless``: unchanged it would not start on idle hosts; ``is_for_later``: the commands help only later.
    ``costs`` names for each command what the job's requirement loses; empty if the command itself shows it.
    """

    commands: tuple[str, ...] = ()
    is_hopeless: bool = False
    is_for_later: bool = False
    costs: tuple[str, ...] = ()


def remedies(
    cluster: ClusterView,
    record: Job | ArrayRecord,
    index: int,
    now: float,
    reservation_table: ReservationTable | None = None,
) -> Generator[None, None, Suggestions]:
    """Find commands each of which alone would let the job start; divided into pieces, as ``counsel`` is."""
    request = cluster.pending.request_of(record.shared)
    found = explain(cluster, record, index, now, reservation_table)
    yield
    if [one.code for one in found] == [r.HELD_BACK.code]:
        held = delayed_by(cluster, reservation_table, record, index, now)
        return Suggestions((f"bmod -W {held.minutes} {{}}",) if held is not None and held.minutes else ())
    if place(FreeResources(cluster.table), request) is not None:
        return Suggestions(tuple(_beside_room(cluster, record, found)))
    if any(one.code in _OWN for one in found):
        return Suggestions()  # two obstacles: no single command helps
    reopened = _reopening(cluster, request, found)
    said = yield from counsel(cluster, request)
    elsewhere = _to_another_queue(cluster, record) if request.queue_hosts is not None else []
    typed = [(one, as_typed(cluster, record.shared, one)) for one in said.changes]
    if said.is_for_later:
        idle = idle_hosts(cluster)
        changes = [
            (one, made) for one, made in typed if made is not None and place(FreeResources(idle), made) is not None
        ]
    else:
        changes = [(one, made) for one, made in typed if made and _may_start(cluster, record.shared, made, now)]
    commands = [*reopened, *elsewhere, *(f"bmod {options(one)} {{}}" for one, _ in changes)]
    costs = [given_up(role_of(request), role_of(made)) for _, made in changes]
    costs = [*[""] * (len(commands) - len(costs)), *costs] if any(costs) else []
    return Suggestions(tuple(commands), said.is_hopeless, said.is_for_later and not reopened, tuple(costs))


def as_typed(cluster: ClusterView, shared: Shared, advice: Advice) -> Request | None:
    """Request of the job after the command, its queue's requirement included; None if the queue refuses that -R."""
    if not is_of_requirement(advice.change):
        return advice.request
    role = role_of(advice.request)
    gpus = f"num={role.gpus}{'/task' if role.gpus_per_task else ''}" if role.gpus else None
    asked = RoleAsked(
        role.tasks_min, role.tasks_max, role.slots_per_task, requirement_text(role), role.gpu or gpus, role.launch,
        role.name, role.command, role.resizable,
    )  # fmt: skip
    options, queue = shared.request.options, cluster.policy.queue_for(shared.queue, shared.application)
    try:
        made, _ = known_request((asked,), options, cluster.policy, cluster.table, queue, shared.from_host)
    except Refused:
        return None
    return cluster.pending.request_of(replace(shared, request=made))


def _may_start(cluster: ClusterView, shared: Shared, request: Request, now: float) -> bool:
    """True if such a request would start now, within its allowance."""
    allowance, demand = allowance_of(cluster, now), demand_of(shared, request)
    if allowance.why(demand) is not None:
        return False
    return LimitedPlacer(FreeResources(cluster.table), allowance).place(demand) is not None


def _beside_room(cluster: ClusterView, record: Job | ArrayRecord, found: Iterable[PendingReason]) -> list[str]:
    """Commands for a job that fits, if exactly one thing holds it back."""
    own = [one for one in found if one.code in _OWN]
    if any(one.code == r.HELD_BACK.code for one in found):
        return []
    if len(own) != 1:
        return []
    return _OWN[own[0].code](cluster, record)


def _to_another_queue(cluster: ClusterView, record: Job | ArrayRecord) -> list[str]:
    """Command to switch to the queue of highest priority that would accept and start the job."""
    for queue in sorted(cluster.policy.queues, key=lambda queue: -queue.priority):
        moved = replace(record.shared, queue=queue.name)
        is_other = queue.name != record.shared.queue and _may_preempt(queue, record.shared)
        if is_other and place(FreeResources(cluster.table), cluster.pending.request_of(moved)) is not None:
            return [f"bswitch {queue.name} {{}}"]
    return []


def _may_preempt(queue: Queue, shared: Shared) -> bool:
    limit = queue.run_limit_s
    is_short_enough = not limit or 0 < shared.run_limit_s <= limit
    may_be_exclusive = queue.is_exclusive_allowed or not shared.request.exclusive
    return queue.open and queue.active and shared.user in queue.users and is_short_enough and may_be_exclusive


def _more_elements(cluster: ClusterView, record: Job | ArrayRecord) -> list[str]:
    array = record if isinstance(record, ArrayRecord) else record.array
    assert array is not None, f"job {record.id} is no array and no element"
    return [f'bmod -J "%{array.limit + 1}" {array.id}']


def _reopening(cluster: ClusterView, request: Request, found: Iterable[PendingReason]) -> list[str]:
    """Command for an administrator to open the fewest closed hosts, in their order."""
    closed = [name for one in found if one.code == r.CLOSED.code for name in one.hosts]
    table: HostTable = cluster.table.copy()
    for number, name in enumerate(closed[:HOSTS_NAMED_MAX], start=1):
        host = cluster.hosts[name]
        table.set_usable(host.row, host.is_connected and not host.is_silent)
        if place(FreeResources(table), request) is not None:
            return [f"badmin hopen {' '.join(closed[:number])}"]
    return []


_Remedy = Callable[[ClusterView, Job | ArrayRecord], list[str]]

_OWN: dict[int, _Remedy] = {
    r.HELD_BY_USER.code: lambda cluster, record: ["bresume {}"],
    r.BEGIN_TIME.code: lambda cluster, record: [f"bmod -bn {record.id}"],  # of all elements, as the next two
    r.DEPENDENCY.code: lambda cluster, record: [f"bmod -wn {record.id}"],
    r.NEVER_SATISFIED.code: lambda cluster, record: [f"bmod -wn {record.id}"],
    r.ARRAY_LIMIT.code: _more_elements,
    r.QUEUE_INACTIVE.code: _to_another_queue,
    r.QUEUE_WINDOW.code: _to_another_queue,
}
