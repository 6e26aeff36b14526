"""Position of pending jobs (btop, bbot): a place among jobs of the same priority in the same queue.

A position is a number between those of the two neighbours. If priorities grow with time no two jobs are equal: a job
that moves then counts as if it had waited since the time that gives it its neighbour's rank.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from lavad.core import commands as c
from lavad.core.apply.enqueue import entry
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision, check_owner
from lavad.core.events import JobMoved
from lavad.core.model import WAITING
from lavad.core.model.reasons import Refused
from lavad.core.state.pending import PendingEntry
from lavad.core.state.records import ArrayRecord, Job, place_of

_AS_A_WHOLE = "A job array moves as a whole: name it without an index"
_NARROW = 1e-3  # neighbours closer than this are spread out before a job is put between them


@dataclass(frozen=True, slots=True)
class Reordered:
    """Reply to a move: the place reached, from the top or, negative, from the bottom."""

    place: int


def move(cluster: Cluster, command: c.MoveJob, now: float) -> Decision:
    """Move a job to a place. Held and not yet eligible jobs are not counted."""
    record = _waiting_record(cluster, command)
    if record.shared.queue in cluster.absolute.rules:
        raise Refused(f"Queue <{record.shared.queue}> orders its jobs by absolute priority: bmod -aps moves a job")
    if not command.place:
        raise Refused("Bad position: it counts from 1")
    near = list(islice(_others(cluster, record, command), abs(command.place)))
    passed = near[: abs(command.place) - 1]
    place = len(passed) + 1 if command.place > 0 else -len(passed) - 1
    decision = Decision(reply=Reordered(place))
    if not near:
        return decision
    beyond = near[len(passed)] if len(near) > len(passed) else None
    moves = _between(passed, beyond, 1 if command.place > 0 else -1)
    for number, (position, rank) in moves.items():
        moved = cluster.jobs[number] if number else record
        aged_from = _aged_from(cluster, moved, rank)
        shown = 0 if number else place
        decision.events.append(JobMoved(now, moved.id, position, aged_from, command.caller.user, shown))
    return decision


def _waiting_record(cluster: Cluster, command: c.MoveJob) -> Job | ArrayRecord:
    record = cluster.jobs.get(command.target.job)
    if record is None:
        raise Refused("No matching job found")
    if command.target.indices is not None:
        is_array = isinstance(record, ArrayRecord)
        raise Refused(_AS_A_WHOLE if is_array else "Job array index error: the job is not an array")
    if not _commands_queue(cluster, record, command.caller):
        check_owner(record, command.caller)
    is_waiting = (
        record.state in WAITING if isinstance(record, Job) else bool(record.waiting() or record.held or record.apart)
    )
    if not is_waiting:
        is_over = record.is_over if isinstance(record, ArrayRecord) else record.end is not None
        raise Refused("Job has already finished" if is_over else "Job has already started")
    return record


def _commands_queue(cluster: Cluster, record: Job | ArrayRecord, caller: c.Caller) -> bool:
    """True for administrators of the cluster or of the queue, who move jobs among those of all users."""
    queue = cluster.policy.queue(record.shared.queue)
    return caller.is_administrator or (queue is not None and caller.user in queue.administrators)


def _others(cluster: Cluster, record: Job | ArrayRecord, command: c.MoveJob) -> Iterator[PendingEntry]:
    """The other jobs that count, from the end that places are counted from. Cost: buckets, not jobs."""
    is_for_all = not command.among_own and _commands_queue(cluster, record, command.caller)
    from_bottom = command.place < 0
    rank = None if cluster.policy.priority_growth else entry(cluster, record).rank
    buckets = [
        bucket.of_rank(rank, from_bottom)
        for key, bucket in cluster.pending.buckets.items()
        if key.queue == record.shared.queue and (is_for_all or key.kind.user == record.shared.user)
    ]
    # Elements that were changed by themselves go with their array, so that they are none of the others.
    merged = heapq.merge(*buckets, reverse=from_bottom)
    return (one for one in merged if one.job != record.id and not place_of(one.job)[1])


def _between(before: list[PendingEntry], after: PendingEntry | None, sign: int) -> dict[int, tuple[float, float]]:
    """Position and rank of the job (as number 0) between two others, and of jobs that are shifted to make room for it.

    ``before`` are all jobs before it, from the top (``sign`` 1) or from the bottom (-1); jobs are shifted towards that
    end.
    """
    if after is None:
        return {0: (before[-1].position + sign, before[-1].rank)}
    at, end = len(before), sign * after.position
    first = end
    while at and before[at - 1].rank == after.rank and first - sign * before[at - 1].position < _NARROW:
        at -= 1
        first = sign * before[at].position
    crowd = [one.job for one in before[at:]]
    low = sign * before[at - 1].position if at and before[at - 1].rank == after.rank else first - 2.0
    step = (end - low) / (len(crowd) + 2)
    return {number: (sign * (low + step * (place + 1)), after.rank) for place, number in enumerate([*crowd, 0])}


def _aged_from(cluster: Cluster, record: Job | ArrayRecord, rank: float) -> float:
    growth = cluster.policy.priority_growth
    return (rank + record.priority) / growth if growth else record.aged_from
