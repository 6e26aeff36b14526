"""brsvadd, brsvmod, brsvdel, brsvs: messages to commands, and advance reservations for display."""

import math
from dataclasses import replace
from datetime import datetime, timedelta

from lavad.api import checks
from lavad.config.values import Wrong, windows
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.advance_reservations import records_of
from lavad.core.model.advance_reservation import AdvanceReservation, ReservationKind, ReservationTimes, stretches
from lavad.core.model.reasons import Refused
from lavad.core.state.records import ArrayRecord
from lavad.engine import Engine
from protos import cluster_pb2 as pb

NAME_MAX = 39
WORDS_MAX = 10_000
_CHANGEABLE = frozenset({"times", "holders", "is_open", "description", "queues"})


async def reserve(engine: Engine, request: pb.ReserveRequest, caller: c.Caller) -> pb.ReserveReply:
    """Make, change or delete an advance reservation; the reply has its name.

    Raises:
        Refused: one sentence says why not.
    """
    reply = await engine.execute(_command(request, caller))
    assert isinstance(reply, AdvanceReservation)
    return pb.ReserveReply(name=reply.name)


def _command(request: pb.ReserveRequest, caller: c.Caller) -> c.Command:
    _check(request)
    if request.action == pb.REMOVE_RESERVATION:
        return c.RemoveReservation(request.name, caller, request.is_forced)
    if request.action == pb.ADD_RESERVATION:
        return c.AddReservation(_wanted(request), request.units, tuple(request.hosts), request.requirement, caller)
    if request.action == pb.CHANGE_RESERVATION:
        return _change(request, caller)
    if request.action == pb.SKIP_OCCURRENCES:
        if request.ends_at <= request.begins_at:
            raise Refused("What is disabled must begin before it ends")
        return c.ChangeReservation(request.name, caller, skips=(request.begins_at, request.ends_at))
    if request.action in (pb.ADD_HOSTS, pb.TAKE_HOSTS):
        adds = request.action == pb.ADD_HOSTS
        hosts = tuple(request.hosts)
        asked = c.ChangeReservation(request.name, caller, adds=adds, takes=not adds, units=request.units)
        return replace(asked, named=hosts, select=request.requirement)
    raise Refused(f"Unknown action: {request.action}")


def _check(request: pb.ReserveRequest) -> None:
    if len(request.name) > NAME_MAX or any(letter.isspace() for letter in request.name):
        raise Refused(f"-N: a reservation's name has at most {NAME_MAX} characters and no blanks")
    if max(len(request.hosts), len(request.holders), len(request.queues)) > WORDS_MAX:
        raise Refused(f"More than {WORDS_MAX} names were given at once")
    for moment in (request.begins_at, request.ends_at):
        if not (math.isfinite(moment) and 0 <= moment <= checks.TIME_MAX):
            raise Refused("-b, -e: not a time that can be reached")


def _times(request: pb.ReserveRequest) -> ReservationTimes:
    if not request.windows:
        return ReservationTimes(request.begins_at, request.ends_at)
    try:
        return ReservationTimes(windows=windows(request.windows), text=request.windows)
    except Wrong as error:
        raise Refused(f"-t: {error}") from None


def _wanted(request: pb.ReserveRequest) -> AdvanceReservation:
    kind = (
        ReservationKind.SYSTEM
        if request.for_system
        else ReservationKind.GROUP
        if request.for_group
        else ReservationKind.USER
    )
    if kind is not ReservationKind.SYSTEM and not request.units:
        raise Refused("-n: the number of slots, or of hosts, is missing")
    return AdvanceReservation(
        request.name,
        kind,
        () if kind is ReservationKind.SYSTEM else tuple(request.holders),
        (),
        _times(request),
        is_open=request.is_open,
        is_whole=request.whole_hosts or kind is ReservationKind.SYSTEM,
        suspends=not request.leaves_others,
        queues=tuple(request.queues),
        description=request.description,
    )


def _change(request: pb.ReserveRequest, caller: c.Caller) -> c.ChangeReservation:
    fields = set(request.fields)
    if not fields or not fields <= _CHANGEABLE:
        raise Refused("Nothing that could be changed of a reservation was named")
    return c.ChangeReservation(
        request.name,
        caller,
        times=_times(request) if "times" in fields else None,
        holders=tuple(request.holders) if "holders" in fields else None,
        is_open=request.is_open if "is_open" in fields else None,
        description=request.description if "description" in fields else None,
        queues=tuple(request.queues) if "queues" in fields else None,
    )


def reservations_reply(cluster: Cluster, request: pb.ReservationsRequest, now: float) -> pb.ReservationsReply:
    """List the named advance reservations, or all, by name."""
    known = cluster.reserved.by_name
    names = list(dict.fromkeys(request.names)) or sorted(known)
    reply = pb.ReservationsReply(missing=[name for name in names if name not in known])
    reply.reservations.extend(_record(cluster, known[name], now) for name in names if name in known)
    for rule in cluster.policy.reservation_rules:
        written = dict(rule.written)
        words = {key: written.get(name, "") for key, name in _RULE_WORDS}
        reply.rules.add(name=rule.name, **words)
    return reply


_RULE_WORDS = (("users", "USERS"), ("hosts", "HOSTS"), ("windows", "TIME_WINDOW"))


def _stretches(cluster: Cluster, times: ReservationTimes, now: float) -> list[tuple[float, float]]:
    """Return the whole interval of a single reservation, or those of one week, from Sunday, of a recurring one."""
    if not times.recurs:
        return [(times.begins_at, times.ends_at)]
    zone = cluster.policy.zone
    today = datetime.fromtimestamp(now, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    sunday = today - timedelta(days=today.isoweekday() % 7)
    return list(stretches(times, zone, sunday.timestamp(), (sunday + timedelta(days=7)).timestamp()))


def _record(cluster: Cluster, one: AdvanceReservation, now: float) -> pb.ReservationRecord:
    times, is_active = one.times, cluster.reserved.holds(cluster, one.name, now)
    record = pb.ReservationRecord(
        name=one.name,
        kind=one.kind.value,
        holders=one.holders,
        begins_at=times.begins_at,
        ends_at=times.ends_at,
        windows=times.text,
        is_active=is_active,
        is_open=one.is_open,
        whole_hosts=one.is_whole,
        queues=one.queues,
        description=one.description,
        creator=one.by,
        leaves_others=not one.suspends,
        stretches=[edge for stretch in _stretches(cluster, times, now) for edge in stretch],
    )
    for job in records_of(cluster, one.name):
        runs = bool(job.live) if isinstance(job, ArrayRecord) else job.attempt is not None
        (record.running if runs else record.waiting).append(job.id)
    own = cluster.reserved.own(cluster, one.name, now) if is_active else None
    for host, slots in one.hosts:
        row = cluster.table.rows.get(host)
        most = int(cluster.table.slots_max[row]) if row is not None else 0
        used = int(own[row]) if own is not None and row is not None else 0
        record.hosts.add(host=host, slots=most if one.is_whole else slots, used=used, slots_max=most)
    return record
