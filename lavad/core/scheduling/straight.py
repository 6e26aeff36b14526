"""The short way of most starts: a job of one task goes to the first host with room for it, and nobody minds.

That is so where no limit, share, pool, reservation or window has a say, and it costs a fraction of asking all of them.
Whatever is not that simple is left to ``cycle``, which does the same one job after the other (a property test).
"""

import heapq

from lavad.core.cluster import Cluster
from lavad.core.indexes.pending import Bucket, BucketKey
from lavad.core.model import HostShare
from lavad.core.plan import Start
from lavad.core.scheduling import devices
from lavad.core.scheduling.agenda import Agenda
from lavad.core.scheduling.backfill import Gate
from lavad.core.scheduling.ordering import Turn
from lavad.core.scheduling.room import Room
from lavad.core.scheduling.walk import Cursor

WORK_OF_A_START = 16  # hosts that could be looked at in the time that a start takes besides
_IN_ORDER = "in order"
_ONE_TASK = (1,)
_new = tuple.__new__  # two tuples for each start: their own constructors take longer than finding the host


class StraightStarts:
    """Starts of one slice that need not ask anybody. ``passed``: how many jobs of each bucket it has started."""

    def __init__(self, cluster: Cluster, agenda: Agenda, room: Room, gate: Gate, starts: list[Start]) -> None:
        self._cluster = cluster
        self._agenda = agenda
        self._room = room
        self._gate = gate
        self._starts = starts
        self._passed: dict[BucketKey, int] = {}

    @property
    def may_run(self) -> bool:
        """Is there nobody who has to be asked?"""
        agenda = self._agenda
        has_others = agenda.lanes or agenda.plain.woken or agenda.reached or agenda.barred or agenda.tenants
        return self._gate.is_open and not has_others and not agenda.limited.called

    def cursor(self, key: BucketKey) -> Cursor | None:
        """On the next job of a bucket of which jobs were started here: others go on with it."""
        passed = self._passed.pop(key, 0)
        return Cursor(self._agenda.ranking, self._cluster.pending.buckets[key], passed) if passed else None

    def run(self, turn: Turn | None, begun: dict[BucketKey, Cursor], steps: int) -> Turn | None:
        """Start jobs, the one of ``turn`` among them, until so much was done or a job has to go the long way.

        Those of buckets that have ``begun`` on the long way stay there.

        Returns:
            The turn of the bucket that was served last, not in the lane's heap now, if it has another job.
        """
        order, due, passed = self._agenda.plain.order, self._agenda.due, self._passed
        buckets, room, starts, names = self._cluster.pending.buckets, self._room, self._starts, self._room.table.names
        slots_open, begins_with = self._gate.slots_open, len(starts)
        while room.work < steps:
            if turn is not None:
                turn = heapq.heappushpop(order, turn)
            elif order:
                turn = heapq.heappop(order)
            else:
                break
            key = turn[4]
            if key.chunk is None or key not in due or key in begun:
                break
            at, bucket = passed.get(key, 0), buckets.get(key)
            if bucket is None or (at == 0 and not self._is_simple(key, bucket, turn[0])) or bucket.at(at) != turn[1:4]:
                break
            slots, memory_mib, gpus = key.chunk
            found = room.front(slots, gpus).first_with(memory_mib) if slots <= slots_open else None
            if found is None:
                break
            row, free = found
            chosen = devices.of_any_kind(room.table.facts[row], free, gpus) if gpus else ()
            free.take(slots, memory_mib, chosen)
            slots_open -= slots
            share = _new(HostShare, (names[row], slots, memory_mib, chosen, _ONE_TASK, (), (), (), ()))
            starts.append(_new(Start, (turn[3], 0, (share,), _IN_ORDER)))
            room.work += WORK_OF_A_START
            at += 1
            if at < len(bucket):
                passed[key] = at
                turn = (turn[0], *bucket.at(at), key)
            else:
                passed.pop(key, None)
                due.discard(key)
                turn = None
        room.version += len(starts) - begins_with
        self._gate.note_starts(starts[begins_with:], slots_open)
        return turn

    def _is_simple(self, key: BucketKey, bucket: Bucket, queue: int) -> bool:
        """Do ranks depend on nothing else, and are the bucket's jobs no arrays and free to go to any host?"""
        is_steady = not bucket.arrays and self._agenda.ranking.steady_queue(key) == queue
        return is_steady and not self._room.is_narrowed(key.request)
