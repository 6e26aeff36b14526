"""Pending reasons of hosts: what keeps each host from taking a job, with the amounts missing."""

from dataclasses import dataclass, field, replace

from lavad.core.cluster_view import ClusterView
from lavad.core.language.requirements import host_list
from lavad.core.language.requirements.fixed_ports import is_port, port_of, ports_of
from lavad.core.language.requirements.parsed import ParsedRole, amount_for, wants_of
from lavad.core.language.requirements.rusage import Reserve
from lavad.core.model import LOAD_INDICES, PARTS, Request, RoleRequest
from lavad.core.model import reasons as r
from lavad.core.model.demand import Demand
from lavad.core.model.host_config import NO_CHECKPOINTS, NO_COMMANDS, NO_COPIES
from lavad.core.model.reasons import PendingReason, Reason
from lavad.core.model.rules.queues import Threshold
from lavad.core.scheduling.capacity.allowance import NO_CONSTRAINTS, Allowance
from lavad.core.scheduling.capacity.constraint import Ceilings
from lavad.core.scheduling.capacity.free_resources import FreeResources, HostFree, smallest_share
from lavad.core.scheduling.capacity.usable_hosts import is_avoided
from lavad.core.scheduling.placement import cpus, gpus
from lavad.core.scheduling.placement.host_part import gpus_for, room_for
from lavad.core.scheduling.placement.place import place
from lavad.core.scheduling.placement.within_limits import CappedResources
from lavad.core.state.hosts.load_thresholds import exceeded
from lavad.core.state.hosts.table import HostTable
from lavad.core.state.records import Claim, Host


@dataclass(frozen=True, slots=True)
class HostReason:
    """Reason for which a host cannot take even one part; ``lack`` is the amount missing, in the unit of ``what``."""

    reason: Reason
    what: str = ""
    lack: float = 0.0


@dataclass(slots=True)
class _Found:
    """Hosts excluded by one reason, with the amounts missing on each."""

    hosts: list[str] = field(default_factory=list)
    lacks: list[float] = field(default_factory=list)
    what: str = ""


def host_reasons(
    cluster: ClusterView,
    demand: Demand,
    waited_s: float = 0.0,
    allowance: Allowance = NO_CONSTRAINTS,
    claim: Claim | None = None,
    bounds: tuple[Threshold, ...] = (),
) -> list[PendingReason]:
    """One reason for each cause, with the hosts it excludes; empty if the request fits.

    Args:
        bounds: the load thresholds of the job's queue.
        claim: slots gathered by the job, or being cleared for it; they count as free.
    """
    if not any(host.facts.server for host in cluster.hosts.values()):
        return [PendingReason(r.NO_SLOTS.saying("No host has joined the cluster yet"))]
    request, table = demand.request, _with_claim(cluster.table, claim)
    ceilings = allowance.limit(demand).on_hosts
    if place(_room_for(table, ceilings), request, waited_s) is not None:
        return []
    room = FreeResources(table)
    by_cause: dict[Reason, _Found] = {}
    usable = dict[str, int]()  # hosts that the job could use, now or when they are back, and their slots
    free = dict[str, int]()  # of those that fit a part of it now, each counted once whatever roles it fits
    for role in request.roles:
        for name, host in cluster.hosts.items():
            if not host.facts.server:
                continue
            cause = cause_on(cluster, room, request, role, name, bounds)
            if cause is not None and cause.reason.code == r.NO_SLOTS.code:
                cause = _saved_on(room, host, role, claim) or cause
            cause = _of_constraints(allowance, demand, role, host.row, cause)
            if cause is None or not cause.reason.rules_out or cause.reason in _AWAY:
                usable[name] = host.facts.slots
            if cause is not None:
                _note(by_cause, name, cause)
            else:
                slots = int(table.slots_free[host.row])
                free[name] = slots if ceilings is None else ceilings.slots_on(host.row, slots)
    told = _told(by_cause, request, sum(free.values()), len(free), sum(usable.values()))
    return [replace(one, advice=_models(cluster, request)) if one.code == r.GPU_MODEL.code else one for one in told]


def _of_constraints(
    allowance: Allowance, demand: Demand, role: RoleRequest, row: int, cause: HostReason | None
) -> HostReason | None:
    """Reason of the first constraint that forbids the host, where another cause does not go before it."""
    is_full = cause is not None and cause.reason.code == r.NO_SLOTS.code
    for constraint in allowance.constraints:
        if cause is None or (is_full and constraint.has_reason_on_full_hosts):
            reason = constraint.reason_on(demand, role, row)
            if reason is not None:
                return HostReason(reason)
    return cause


def _models(cluster: ClusterView, request: Request) -> str:
    """Models of GPUs in the cluster, for advice; empty unless the requested model is missing."""
    asked = [wanted for role in request.roles if (wanted := wants_of(role).gpus) is not None and wanted.model]
    facts = [host.facts for host in cluster.hosts.values()]
    missing = next((one for one in asked if not any(gpus.has_model(host, one) for host in facts)), None)
    if missing is None:
        return ""
    models = sorted({device.model for host in facts for device in host.devices})
    size = f" with {_size(missing.model_memory_mib)}" if missing.model_memory_mib else ""
    return f"no host has a GPU of model {missing.model}{size}; there are {', '.join(models)}"


def _with_claim(table: HostTable, claim: Claim | None) -> HostTable:
    """Host table with the shares of the job's own claim free."""
    if claim is None:
        return table
    twin = table.copy()
    for share in claim.allocation:
        twin.give_back(twin.rows[share.host], share, False)
    return twin


def _saved_on(room: FreeResources, host: Host, role: RoleRequest, claim: Claim | None) -> HostReason | None:
    """Reason for a host whose slots would suffice without the claims of other jobs; None for all other hosts."""
    mine = (claim.job, claim.index) if claim is not None else None
    others = {key: share.slots for key, share in sorted(host.claims.items()) if key != mine}
    if not others or room.table.slots_free[host.row] + sum(others.values()) < smallest_share(role)[0]:
        return None
    names = ", ".join(f"{job}[{index}]" if index else str(job) for job, index in others)
    return HostReason(r.SAVED_UP.with_details(f"Job: {names}"))


def _room_for(table: HostTable, ceilings: Ceilings | None) -> FreeResources:
    """Free resources that constraints leave to this job."""
    room = FreeResources(table)
    return room if ceilings is None else CappedResources(room, ceilings)


def _note(by_cause: dict[Reason, _Found], name: str, cause: HostReason) -> None:
    found = by_cause.setdefault(cause.reason, _Found())
    found.hosts.append(name)
    if cause.what:
        found.what = cause.what
        found.lacks.append(cause.lack)


def _told(
    by_cause: dict[Reason, _Found], request: Request, free_slots: int, free_hosts: int, slots: int
) -> list[PendingReason]:
    told = [
        PendingReason(reason, tuple(dict.fromkeys(found.hosts)), _advice(found) or _too_large(reason, request))
        for reason, found in by_cause.items()
    ]
    is_too_large = 0 < slots < request.slots_min
    if is_too_large or (free_hosts and free_slots < request.slots_min):
        advice = f"it needs {request.slots_min} slots; the hosts it could use have "
        advice += f"{slots} in all, so that it can't start" if is_too_large else f"{free_slots} free"
        full = by_cause.get(r.NO_SLOTS, _Found()).hosts  # reported in the same line
        told = [one for one in told if one.reason != r.NO_SLOTS]
        told.insert(0, PendingReason(r.NO_SLOTS, tuple(dict.fromkeys(full)), advice))
    elif free_hosts:
        told.insert(0, _apart(request, free_slots))
    return told


_AWAY = frozenset({r.CLOSED, r.UNREACHABLE, r.HOST_WINDOW})


def _too_large(reason: Reason, request: Request) -> str:
    """Advice about hosts that have fewer slots than a part of the job needs on one host."""
    return f"it needs {max(smallest_share(role)[0] for role in request.roles)} slots on one host" * (
        reason == r.SLOT_LIMIT
    )


def _apart(request: Request, free_slots: int) -> PendingReason:
    """Reason for free slots that would suffice together: the job says how its tasks stand, or they do not fit."""
    reason = _together(request)
    if reason != r.SPAN or any(map(_has_span, request.roles)):
        return PendingReason(reason)
    only_slots = all(role.has_only(_SLOTS_ALONE) for role in request.roles)
    if not only_slots:
        return PendingReason(r.TOGETHER)
    sizes = " or ".join(map(str, sorted({role.slots_per_task for role in request.roles})))
    return PendingReason(
        r.NO_SLOTS, (), f"its tasks need {sizes} slots each; the {free_slots} free slots are scattered"
    )


_SLOTS_ALONE = frozenset({
    "tasks_min", "tasks_max", "slots_per_task", "launch", "name", "command", "resizable", "spares", "select", "order",
    "gpus_per_task",
})  # fmt: skip


def _has_span(role: RoleRequest) -> bool:
    return bool(role.one_host or role.ptile or role.ptile_by or role.block or role.stripe)


_PORTS_SHOWN = 3


def _together(request: Request) -> Reason:
    """Reason for which hosts that each fit cannot be combined."""
    if request.cu or any(role.cu for role in request.roles):
        return r.COMPUTE_UNITS
    if request.same or any(role.same for role in request.roles):
        return r.SAME
    ports = sorted({port for role in request.roles for port in ports_of(wants_of(role).reserves)})
    if ports:
        shown = ", ".join(map(str, ports[:_PORTS_SHOWN])) + ", ..." * (len(ports) > _PORTS_SHOWN)
        return r.PORTS_APART.with_details(f"port {shown}: each host has it once")
    return r.SPAN


def _advice(found: _Found) -> str:
    """Text on the smallest amount missing: ``2 hosts have the slots but 3 GB too little memory``."""
    if not found.lacks:
        return ""
    least = min(found.lacks)
    hosts = sum(lack == least for lack in found.lacks)
    have = "host has" if hosts == 1 else "hosts have"
    return f"{hosts} {have} the slots but {_amount(least, found.what)}"


def _amount(lack: float, what: str) -> str:
    if what in _WORDS:
        return f"{_size(lack)} too little {_WORDS[what]}"
    number = int(lack) if lack == int(lack) else round(lack, 3)
    if what == "GPU":
        return f"{number} GPU{'s' if number != 1 else ''} too few"
    return f"{number} too little of {what}"


_WORDS = {"mem": "memory", "swp": "swap space", "tmp": "temporary space"}


def _size(mib: float) -> str:
    if mib < 1024:
        return f"{mib:.0f} MB"
    return f"{mib / 1024:.1f} GB".replace(".0 GB", " GB")


def cause_on(
    cluster: ClusterView,
    room: FreeResources,
    request: Request,
    role: RoleRequest,
    name: str,
    bounds: tuple[Threshold, ...],
) -> HostReason | None:
    """First reason that excludes this host for this role, or None; the order of checks is the priority."""
    host, table = cluster.hosts[name], room.table
    row = host.row
    slots = smallest_share(role)[0]
    unusable = _not_for_it(room, request, row)
    if unusable is not None:
        return HostReason(unusable)
    checks = (
        (not host.is_connected or host.is_silent, r.UNREACHABLE),
        (host.is_closed, r.CLOSED),
        (host.lock is not None, r.LOCKED),
        (host.is_shut, r.HOST_WINDOW),
        (host.is_busy, r.BUSY),
        (not table.usable[row], r.RECENT_FAILURE),
        (bool(beyond := exceeded(table, row, bounds, stop=False)), r.QUEUE_BUSY.with_details(", ".join(beyond))),
        (bool(role.select) and not room.mask(role.select)[row], r.REQUIREMENT),
        (bool(table.taken_whole[row]), r.RUNNING_EXCLUSIVE),
        (row in table.kept, r.UNIT_KEPT),
        (request.exclusive and bool(host.attempts), r.EXCLUSIVE),
        (host.facts.slots < slots, r.SLOT_LIMIT),
        (bool(table.slots_free[row] < slots), r.NO_SLOTS),
    )
    found = next((HostReason(reason) for holds, reason in checks if holds), None)
    return found or _lack(room, role, row)


_LACKS = (
    (NO_COMMANDS, r.LACKS_COMMANDS), (NO_COPIES, r.LACKS_COPIES), (NO_CHECKPOINTS, r.LACKS_CHECKPOINTS),
)  # fmt: skip


def _not_for_it(room: FreeResources, request: Request, row: int) -> Reason | None:
    """Reason for which the host is not usable at all: an exclusive resource, the queue's HOSTS or -m; else None."""
    if not request.has_host_preferences or room.usable(request).contains[row]:
        return None
    if is_avoided(room.table, request, row):
        avoided = request.avoids & room.table.facts[row].exclusive_resources
        return next((why for name, why in _LACKS if name in avoided), r.REQUIREMENT)
    queue = request.queue_hosts
    if queue is None or room.table.names[row] in queue.names:
        return r.NOT_NAMED
    is_asked_for = any(not one.is_excluded for one in host_list.parse(request.hosts))
    if is_asked_for and room.usable(replace(request, queue_hosts=None)).contains[row]:
        return r.NAMED_NOT_OF_QUEUE
    return r.NOT_OF_QUEUE


def _lack(room: FreeResources, role: RoleRequest, row: int) -> HostReason | None:
    """Resource that is short on a host with enough slots, or None."""
    free, wants = room.free(row), wants_of(role)
    tasks = role.tasks_min if role.one_host else 1
    if room_for(room, row, role, wants, tasks, True) >= tasks:
        return None
    if free.memory_mib < role.memory_mib:
        return HostReason(r.MEMORY, "mem", role.memory_mib - free.memory_mib)
    for one in wants.reserves:
        lack = _lack_of(room, free, row, one, tasks)
        if lack is not None:
            return lack
    return _lack_of_devices(room, free, role, wants, row, tasks)


def _lack_of(room: FreeResources, free: HostFree, row: int, one: Reserve, tasks: int) -> HostReason | None:
    left = room.left(one.name, row) if one.name != "mem" else None
    reason = reserving(room, one.name)
    if one.name != "mem" and left is None:
        return HostReason(reason)
    amount = free.memory_mib * PARTS if left is None else left.amount
    need = amount_for(one, tasks, left is not None and left.is_shared, True) + one.threshold
    if is_port(one.name) and need > amount:
        return HostReason(reason)
    return HostReason(reason, one.name, (need - amount) / PARTS) if need > amount else None


def reserving(room: FreeResources, name: str) -> Reason:
    """LSF's reason for a resource that cannot be reserved, and that of a fixed port."""
    if is_port(name):
        return r.PORTS.with_details(f"port {port_of(name)}")
    names = [*LOAD_INDICES, *sorted(room.table.site.resources)]
    place_ = names.index(name) if name in names else len(names)
    return Reason(r.RESERVING + place_, f"Job's requirements for reserving resource ({name}) not satisfied")


def _lack_of_devices(
    room: FreeResources, free: HostFree, role: RoleRequest, wants: ParsedRole, row: int, tasks: int
) -> HostReason:
    need = gpus_for(role, tasks)
    there = free.gpus.bit_count()
    if wants.gpus is not None:
        if not gpus.can_prepare(room.table.facts[row], wants.gpus):
            return HostReason(r.GPU_MODE if room.table.facts[row].has_mps or wants.gpus.mps == "no" else r.MPS)
        if room.table.facts[row].devices and not gpus.has_model(room.table.facts[row], wants.gpus):
            return HostReason(r.GPU_MODEL)
        there = gpus.usable(room.table.facts[row], free, wants.gpus).bit_count()
    if there < need:
        return HostReason(r.GPUS, "GPU", need - there)
    if wants.gpus is not None and gpus.choose(room.table.facts[row], free, wants.gpus, need) is None:
        return HostReason(r.GPU_TOPOLOGY)
    if wants.affinity is None:
        return HostReason(r.SPAN)
    facts = room.table.facts[row]
    if cpus.choose(facts.topology, free.cpus, wants.affinity, tasks) is not None:
        return HostReason(r.NEARNESS)
    return HostReason(r.AFFINITY if facts.topology else r.NO_TOPOLOGY)
