"""Advance reservations as the future sees them: what is set apart of which hosts from when to when.

For thinking about jobs that start later; what a job that starts now may have is ``Withheld``.
"""

from collections.abc import Iterator
from typing import NamedTuple

from lavad.core.cluster import Cluster
from lavad.core.indexes.ends import expected_end
from lavad.core.model import Key
from lavad.core.records import Attempt
from lavad.core.scheduling.leeway import Moment, Rest


class Stretch(NamedTuple):
    """One time for which slots (by row) are set apart."""

    begin: float
    end: float
    name: str
    slots: tuple[tuple[int, int], ...]

    def covers(self, at: float) -> bool:
        """Does it go on then?"""
        return self.begin <= at < self.end


def stretches_of(cluster: Cluster, now: float) -> list[Stretch]:
    """Of all advance reservations, in the week to come, in order of time."""
    reserved, found = cluster.reserved, []
    for begin, end, name in reserved.timeline(cluster, now).stretches:
        slots = reserved.slots(cluster, name)
        rows = slots.nonzero()[0]
        found.append(Stretch(begin, end, name, tuple(zip(rows.tolist(), slots[rows].tolist(), strict=True))))
    return sorted(found)


def ends_by_reservation(cluster: Cluster, stretches: list[Stretch]) -> Iterator[tuple[Attempt, str, float]]:
    """Attempts that run in a reservation, and when others may have what they hold.

    That is never before the stretch is over in which they end. Jobs of a closed one are ended with it.
    """
    for name, jobs in cluster.reserved.jobs.items():
        one = cluster.reserved.by_name.get(name)
        mine = [stretch for stretch in stretches if stretch.name == name]
        for attempt in [attempt for job in sorted(jobs) for attempt in cluster.attempts_of(job)] if one else ():
            end = _end_of(cluster, attempt.key)
            if one is not None and not one.is_open and mine:
                end = min(end, mine[0].end)
            yield attempt, name, next((stretch.end for stretch in mine if stretch.covers(end)), end)


def _end_of(cluster: Cluster, key: Key) -> float:
    record = cluster.jobs.get(key.job)
    return expected_end(cluster.attempts[key], record.shared.run_limit_s if record is not None else 0, 0).at


def moments_of(cluster: Cluster, stretches: list[Stretch], now: float) -> Iterator[Moment]:
    """What is left of reserved hosts whenever a stretch begins, if nothing more starts."""
    for stretch in stretches:
        if stretch.begin > now:
            one = cluster.reserved.by_name[stretch.name]
            moment = Moment(stretch.begin, frozenset(one.queues))
            together = {other.name: dict(other.slots) for other in stretches if other.covers(stretch.begin)}
            for row, _ in stretch.slots:
                moment.rows[row] = Rest(_left(cluster, together, row, stretch.begin))
            yield moment


def _left(cluster: Cluster, together: dict[str, dict[int, int]], row: int, at: float) -> int:
    """Slots of a host that are neither set apart then, nor held by jobs that should run then."""
    apart = {name: slots.get(row, 0) for name, slots in together.items()}
    own, held = dict.fromkeys(apart, 0), 0
    for key, share in cluster.hosts[cluster.table.names[row]].attempts.items():
        record = cluster.jobs.get(key.job)
        name = record.shared.request.reservation if record is not None else ""
        if _end_of(cluster, key) <= at:
            continue
        if name in own:
            own[name] += share.slots
        else:
            held += share.slots
    apart_or_used = sum(max(slots, own[name]) for name, slots in apart.items())
    return int(cluster.table.slots_max[row]) - held - apart_or_used
