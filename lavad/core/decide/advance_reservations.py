"""Advance reservations: brsvadd, brsvmod, brsvdel. Rights to reserve slots, and the hosts that have them free then.

A reservation is for a future time, so running jobs do not matter; other reservations of that time do.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision, denial
from lavad.core.decide.jobs.request import known_request
from lavad.core.language.requirements import host_list
from lavad.core.model import NO_OPTIONS, RoleAsked
from lavad.core.model.advance_reservation import AdvanceReservation, ReservationKind, ReservationTimes, holds
from lavad.core.model.reasons import Refused
from lavad.core.model.windows import is_open
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.state.advance_reservations import Timeline
from lavad.core.state.hosts.table import natural
from lavad.core.state.records import ArrayRecord, Job

RESERVATIONS_MAX = 1000  # at one time: each is compared with all others
SKIPPED_MAX = 100  # of one reservation
_SYSTEM = "system"
_MINE = ""  # key of the reservation that is asked for, among the others


# -- brsvadd -----------------------------------------------------------------------------------------------------------


def add(cluster: Cluster, command: c.AddReservation, now: float) -> Decision:
    """Create a reservation (brsvadd); the reply is the reservation."""
    wanted = command.wanted
    _check_times(wanted.times, now)
    if len(cluster.reserved.by_name) >= RESERVATIONS_MAX:
        raise Refused(f"There are {RESERVATIONS_MAX} advance reservations already; delete some that nobody needs")
    wanted = replace(wanted, by=command.caller.user, kind=_kind(cluster, wanted))
    _check_queues(cluster, wanted.queues)
    holder = _SYSTEM if wanted.kind is ReservationKind.SYSTEM else wanted.holders[0]
    number = cluster.reserved.numbers.get(holder, -1) + 1
    if wanted.name and wanted.name in cluster.reserved.by_name:
        raise Refused(f"Reservation <{wanted.name}> already exists")
    while not wanted.name or wanted.name in cluster.reserved.by_name:
        wanted, number = replace(wanted, name=f"{holder}#{number}"), number + 1
    hosts = _found(cluster, wanted, command.units, command.named, command.select, command.caller, now)
    made = replace(wanted, hosts=hosts)
    _check_allowed(cluster, made, command.caller, now)
    return Decision([e.ReservationSet(now, made, holder, number - 1, command.caller.user)], reply=made)


def _kind(cluster: Cluster, wanted: AdvanceReservation) -> ReservationKind:
    if wanted.kind is ReservationKind.SYSTEM:
        return ReservationKind.SYSTEM
    if not wanted.holders:
        raise Refused("Whom is the reservation for? Name users with -u, a group with -g, or the system with -s")
    unknown = [
        name
        for name in wanted.holders
        if wanted.kind is ReservationKind.GROUP and name not in cluster.policy.user_groups
    ]
    if unknown:
        raise Refused(f"{unknown[0]}: No such user group")
    return (
        ReservationKind.GROUP
        if all(name in cluster.policy.user_groups for name in wanted.holders)
        else ReservationKind.USER
    )


def _check_times(times: ReservationTimes, now: float) -> None:
    if times.recurs:
        return
    if times.ends_at <= times.begins_at:
        raise Refused("The reservation must begin before it ends")
    if times.ends_at <= now:
        raise Refused("The reservation would be over already")


def _check_queues(cluster: Cluster, queues: tuple[str, ...]) -> None:
    for name in queues:
        if cluster.policy.queue(name) is None:
            raise Refused(f"{name}: No such queue")


def _check_allowed(cluster: Cluster, one: AdvanceReservation, caller: c.Caller, now: float) -> None:
    """Refuse what the caller may not reserve: administrators may reserve anything, others what a ResourceReservation
    section of lsb.resources allows."""
    if caller.is_administrator:
        return
    times, zone = one.times, cluster.policy.zone
    for rule in cluster.policy.reservation_rules:
        if caller.user not in rule.users or not all(host in rule.hosts for host, _ in one.hosts):
            continue
        ends = (times.begins_at, times.ends_at - 1) if not times.recurs else ()
        if not rule.windows or (not times.recurs and all(is_open(rule.windows, zone, at) for at in ends)):
            return
    raise Refused(denial(caller))


# -- which hosts -------------------------------------------------------------------------------------------------------


def _count(hosts: int) -> str:
    return "none of these is" if not hosts else "1 of these is" if hosts == 1 else f"{hosts} of these are"


def _found(
    cluster: Cluster,
    wanted: AdvanceReservation,
    units: int,
    words: tuple[str, ...],
    select: str,
    caller: c.Caller,
    now: float,
) -> tuple[tuple[str, int], ...]:
    """Hosts with slots of each, `units` in all, in the order in which the hosts were named."""
    candidates = _candidates(cluster, words, select, caller.host)
    if not candidates:
        raise Refused("No host is named, or none of them satisfies the resource requirement")
    left = _left(cluster, wanted, now)
    if wanted.is_whole:
        free = [name for name in candidates if left(name) == cluster.hosts[name].facts.slots]
        if len(free) < (units or len(candidates)):
            asked = f"{units} hosts" if units else "all the hosts named"
            raise Refused(f"The reservation asks for {asked}; {_count(len(free))} wholly free of others at that time")
        return tuple((name, cluster.hosts[name].facts.slots) for name in free[: units or None])
    return _dealt_out([(name, left(name)) for name in candidates], units)


def _dealt_out(free: list[tuple[str, int]], units: int) -> tuple[tuple[str, int], ...]:
    in_all = sum(slots for _, slots in free)
    if in_all < units or not in_all:
        raise Refused(f"The reservation asks for {units or 'all'} slots; {in_all} are not reserved at that time")
    missing, found = units or in_all, []
    for name, slots in free:
        taken = min(slots, missing)
        if taken > 0:
            found.append((name, taken))
            missing -= taken
    return tuple(found)


def _candidates(cluster: Cluster, words: tuple[str, ...], select: str, from_host: str) -> list[str]:
    policy, table = cluster.policy, cluster.table
    servers = sorted((name for name, host in cluster.hosts.items() if host.facts.server), key=natural)
    host_list.check(words, {**cluster.hosts, **policy.host_groups})
    ranks = host_list.chosen(words, servers, policy.host_groups).ranks
    chosen = sorted(ranks, key=lambda name: (ranks[name], natural(name)))
    if not select:
        return chosen
    request, _ = known_request((RoleAsked(requirement=select),), NO_OPTIONS, policy, table, None, from_host)
    role = request.single_role
    if role is None or request.alternatives:
        raise Refused("-R: a reservation's hosts are chosen by one select section")
    text = role.select
    mask = FreeResources(table).mask(text) if text else None
    return [name for name in chosen if mask is None or mask[table.rows[name]]]


def _left(cluster: Cluster, wanted: AdvanceReservation, now: float) -> Callable[[str], int]:
    """Slots of a host that no other reservation has, at any moment at which this one is to be active."""
    others = {name: one for name, one in cluster.reserved.by_name.items() if name != wanted.name}
    timeline = Timeline({**others, _MINE: wanted}, cluster.policy.zone, now)
    together = [timeline.now, *(moment.names for moment in timeline.moments)]
    together = [names - {_MINE} for names in together if _MINE in names]

    def left(name: str) -> int:
        row, slots = cluster.table.rows[name], cluster.hosts[name].facts.slots
        taken = [sum(int(cluster.reserved.slots(cluster, one)[row]) for one in names) for names in together]
        return max(0, slots - max(taken, default=0))

    return left


# -- brsvmod -----------------------------------------------------------------------------------------------------------


def change(cluster: Cluster, command: c.ChangeReservation, now: float) -> Decision:
    """Change times, hosts or users of a reservation (brsvmod); refused as a whole if its hosts have too few slots
    then."""
    before = _known(cluster, command.name, command.caller)
    made = _with_words(cluster, before, command)
    if command.times is not None:
        made = replace(made, times=_changed_times(cluster, before, command.times, now))
    if command.skips is not None:
        made = replace(made, times=_with_skipped(made.times, command.skips))
    if command.adds:
        made = _with_more(cluster, made, command, now)
    elif command.takes:
        made = _with_less(cluster, made, command)
    elif command.times is not None:
        left = _left(cluster, made, now)
        narrow = [name for name, slots in made.hosts if name in cluster.hosts and left(name) < slots]
        if narrow:
            raise Refused(f"{narrow[0]}: other reservations leave too few slots at that time")
    _check_allowed(cluster, made, command.caller, now)
    number = cluster.reserved.numbers.get(_SYSTEM, -1)
    return Decision([e.ReservationSet(now, made, _SYSTEM, number, command.caller.user)], reply=made)


def _known(cluster: Cluster, name: str, caller: c.Caller) -> AdvanceReservation:
    """The reservation of that name. Refused if it does not exist or the caller may not change it."""
    one = cluster.reserved.by_name.get(name)
    if one is None:
        raise Refused(f"{name}: No such reservation")
    if not caller.is_administrator and one.by != caller.user:
        raise Refused(denial(caller))
    return one


def _with_words(cluster: Cluster, one: AdvanceReservation, command: c.ChangeReservation) -> AdvanceReservation:
    if command.holders is not None:
        if one.kind is ReservationKind.SYSTEM:
            raise Refused("The reservation is for the system; it has no users")
        one = replace(one, holders=command.holders, kind=ReservationKind.USER)
        one = replace(one, kind=_kind(cluster, one))
    if command.is_open is not None:
        one = replace(one, is_open=command.is_open)
    if command.description is not None:
        one = replace(one, description=command.description)
    if command.queues is not None:
        _check_queues(cluster, command.queues)
        one = replace(one, queues=command.queues)
    return one


def _changed_times(cluster: Cluster, one: AdvanceReservation, wanted: ReservationTimes, now: float) -> ReservationTimes:
    """New times of a reservation; a begin or end of 0 keeps the old one."""
    before = one.times
    if wanted.recurs != before.recurs:
        kind = "recurring" if before.recurs else "one-time"
        raise Refused(f"Reservation <{one.name}> is {kind} and stays so")
    if wanted.recurs:
        return replace(wanted, skipped=before.skipped)
    begins_at = wanted.begins_at or before.begins_at
    if begins_at != before.begins_at and holds(before, cluster.policy.zone, now):
        raise Refused(f"Reservation <{one.name}> is active; when it began can't be changed")
    times = ReservationTimes(begins_at, wanted.ends_at or before.ends_at)
    _check_times(times, now)
    return times


def _with_skipped(times: ReservationTimes, skips: tuple[float, float]) -> ReservationTimes:
    if not times.recurs:
        raise Refused("Only occurrences of a recurring reservation can be disabled")
    if len(times.skipped) >= SKIPPED_MAX:
        raise Refused(f"{SKIPPED_MAX} intervals of the reservation are disabled already")
    return replace(times, skipped=(*times.skipped, skips))


def _with_more(
    cluster: Cluster, one: AdvanceReservation, command: c.ChangeReservation, now: float
) -> AdvanceReservation:
    """Hosts and slots added to the reservation, from those that neither it nor other reservations have."""
    beside = replace(one, name=_MINE)
    more = dict(_found(cluster, beside, command.units, command.named, command.select, command.caller, now))
    kept = [(name, slots + more.pop(name, 0)) for name, slots in one.hosts]
    return replace(one, hosts=(*kept, *more.items()))


def _with_less(cluster: Cluster, one: AdvanceReservation, command: c.ChangeReservation) -> AdvanceReservation:
    named_ = set(_candidates(cluster, command.named, command.select, command.caller.host))
    there = [(name, slots) for name, slots in one.hosts if name in named_]
    if not there:
        raise Refused("The reservation has nothing on these hosts")
    gone = dict(there[: command.units or None] if one.is_whole else _dealt_out(there, command.units))
    kept = tuple((name, slots - gone.get(name, 0)) for name, slots in one.hosts if slots > gone.get(name, 0))
    if not kept:
        raise Refused("Nothing would be left of the reservation; delete it with brsvdel")
    return replace(one, hosts=kept)


# -- brsvdel -----------------------------------------------------------------------------------------------------------


def remove(cluster: Cluster, command: c.RemoveReservation, now: float) -> Decision:
    """Remove a reservation (brsvdel); its slots are free for all jobs. Jobs that wait for it stay pending, unless it is
    forced."""
    one = _known(cluster, command.name, command.caller)
    if not command.is_forced and any(jobs_in(cluster, one.name)):
        raise Refused(f"Reservation <{one.name}> has running jobs; delete it with -f and they go on as any others")
    decision = Decision([e.ReservationRemoved(now, one.name, command.caller.user)], reply=one)
    if command.is_forced:
        decision.events += detached(cluster, one.name, command.caller.user, now)
    return decision


def jobs_in(cluster: Cluster, name: str) -> Iterator[Job]:
    """Jobs and elements of that reservation that hold hosts."""
    for record in records_of(cluster, name):
        live = list(record.live.values()) if isinstance(record, ArrayRecord) else [record]
        yield from (job for job in live if job.attempt is not None)


def records_of(cluster: Cluster, name: str) -> Iterator[Job | ArrayRecord]:
    """Jobs and arrays submitted to that reservation that have not ended."""
    for number in sorted(cluster.reserved.jobs.get(name, ())):
        record = cluster.jobs.get(number)
        is_over = record is None or (record.is_over if isinstance(record, ArrayRecord) else record.end is not None)
        if record is not None and not is_over:
            yield record


def detached(cluster: Cluster, name: str, by: str, now: float) -> list[e.Event]:
    """Events that detach all jobs from a removed reservation: from then on they are scheduled as any others."""
    return [e.JobDetached(now, record.id, name, by) for record in records_of(cluster, name)]
