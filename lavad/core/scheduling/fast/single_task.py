"""Fast path of most starts: a single-task job goes to the first host with room for it, without the gate.

It applies where no limit, share, pool, reservation or window can refuse a job, and costs a fraction of asking all of
them. All other jobs are left to ``cycle``, which decides the same one job after the other (a property test).
"""

from lavad.core.cluster_view import ClusterView
from lavad.core.model import HostShare
from lavad.core.model.tuples import new as _new
from lavad.core.plan import Start
from lavad.core.scheduling.backfill.gate import BackfillGate
from lavad.core.scheduling.budget import WORK_OF_A_REFUSAL, WORK_OF_A_START
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement import gpus as devices
from lavad.core.scheduling.queueing.cursor import JobCursor
from lavad.core.scheduling.queueing.ordering import QueueEntry, Rank
from lavad.core.scheduling.worklist import Worklist
from lavad.core.state.pending import Bucket, BucketKey

_IN_ORDER = "in order"
_ONE_TASK = (1,)


class SingleTaskStarts:
    """Starts of one slice that need no admission by the gate.

    ``_passed`` holds, for each bucket with starts, their number, the queue entry of its next job, and the bucket.
    """

    def __init__(
        self, cluster: ClusterView, worklist: Worklist, room: FreeResources, gate: BackfillGate, starts: list[Start]
    ) -> None:
        self._cluster = cluster
        self._worklist = worklist
        self._room = room
        self._gate = gate
        self._starts = starts
        self._passed: dict[BucketKey, tuple[int, QueueEntry, Bucket]] = {}
        self._waits: dict[str, bool] = {}  # by queue

    @property
    def may_run(self) -> bool:
        """True if no constraint could refuse a job that fits."""
        worklist = self._worklist
        has_others = worklist.share_queues or worklist.plain.unblocked or worklist.reached or worklist.behind_heads
        return self._gate.is_open and not has_others and not worklist.limited.called

    def cursor(self, key: BucketKey) -> JobCursor | None:
        """Cursor on the next job of a bucket with starts made here, for the plain path."""
        passed = self._passed.pop(key, None)
        return JobCursor(self._worklist.ranking, self._cluster.pending.buckets[key], passed[0]) if passed else None

    def run(self, entry: QueueEntry | None, begun: dict[BucketKey, JobCursor], steps: int) -> QueueEntry | None:
        """Start jobs, that of ``entry`` among them, until ``steps`` are spent or a job needs the plain path.

        Buckets that have ``begun`` on the plain path stay there.

        Returns:
            The queue entry of the bucket served last if it has another job; it is not in the heap.
        """
        order, due, passed = self._worklist.plain.order, self._worklist.due, self._passed
        buckets, room, starts, names = self._cluster.pending.buckets, self._room, self._starts, self._room.table.names
        slots_open, begins_with, refused_sizes = self._gate.slots_open, len(starts), self._worklist.refused_sizes or ()
        narrowed, ranking = room.narrowed, self._worklist.ranking
        steady = ranking.steady
        while room.work < steps:
            if entry is not None:
                entry = order.push_pop(entry)
            elif order:
                entry = order.pop()
            else:
                break
            key = entry[4]
            if key.task_size is None or key not in due or key in begun:
                break
            known = passed.get(key)
            if known is None:
                at, bucket = 0, buckets.get(key)
                if bucket is None or bucket.arrays or bucket.head() != entry[1:4]:
                    break
                if narrowed and key.request in narrowed:
                    break
                if (key.deadline or steady.get(key.queue) != entry[0]) and ranking.steady_queue(key) != entry[0]:
                    break
            elif known[1] is entry:
                at, _, bucket = known
            else:
                break
            slots, memory_mib, gpus = key.task_size
            if (slots > slots_open or key.task_size in refused_sizes) and self._may_refuse(key):
                self._refuse(entry)
                entry = None
                continue
            if slots > slots_open:
                break
            found = room.front(slots, gpus).first_with(memory_mib)
            if found is None:
                break
            row, free = found
            chosen = devices.of_any_kind(room.table.facts[row], free, gpus) if gpus else ()
            free.take(slots, memory_mib, chosen)
            slots_open -= slots
            share = _new(HostShare, (names[row], slots, memory_mib, chosen, _ONE_TASK, (), (), (), (), ()))
            starts.append(_new(Start, (entry[3], 0, (share,), _IN_ORDER)))
            room.work += WORK_OF_A_START
            later = bucket.get(at + 1)
            if later is not None:
                entry = entry[0], *later, key
                passed[key] = at + 1, entry, bucket
            else:
                entry = None
                passed.pop(key, None)
                due.discard(key)
        room.version += len(starts) - begins_with
        self._gate.note_starts(starts[begins_with:], slots_open)
        return entry

    def _may_refuse(self, key: BucketKey) -> bool:
        """True if a job of this bucket just waits when it does not fit: it gets no reservation and preempts no jobs."""
        name = key.queue
        if name not in self._waits:
            queue = self._cluster.policy.by_name[name]
            makes_reservations = queue.in_order or queue.backfill_depth
            self._waits[name] = not makes_reservations and name not in self._cluster.preemption_rules.preemptors
        return self._waits[name]

    def _refuse(self, entry: QueueEntry) -> None:
        """Block the bucket: its first job does not fit, nor do the others."""
        key, worklist = entry[4], self._worklist
        self._room.work += WORK_OF_A_REFUSAL
        self._passed.pop(key, None)
        worklist.blocked.add(key, worklist.need_of(key), _new(Rank, entry[:4]))
        worklist.tried.add(key)
        worklist.due.discard(key)

    def note_refused(self, key: BucketKey) -> None:
        """Record the task size of a bucket that fitted on no host: larger requests are skipped."""
        if key.task_size is not None and self._gate.is_open and not self._room.is_narrowed(key.request):
            self._worklist.refused_sizes.add(key.task_size)
