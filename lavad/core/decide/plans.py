"""A plan becomes dispatches. Every start is verified again: the plan may be older than the cluster."""

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision
from lavad.core.model import HostShare, JobState, Key
from lavad.core.plan import Start
from lavad.core.records import ArrayRecord


class _Room:
    """What is left on each host as the plan's starts are accepted one after the other."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.left: dict[str, _Left] = {}

    def fits(self, start: Start, exclusive: bool) -> bool:
        """Is every host of the start usable and wide enough? Nothing is taken."""
        known = self.left
        for share in start.allocation:
            left = known.get(share.host) or self._look_up(share.host)
            if share.slots > left.slots or (exclusive and left.attempts):
                return False
            if (share.memory_mib or share.gpus) and not left.holds(share):
                return False
        return True

    def _look_up(self, host: str) -> "_Left":
        table = self.cluster.table
        row = table.rows.get(host)
        if row is None or not table.is_open(row):
            return _NOTHING
        slots, memory, _ = table.room_of(row)
        left = self.left[host] = _Left(slots, memory, table.gpu_free[row], int(table.attempts[row]))
        return left

    def take(self, start: Start, exclusive: bool) -> None:
        """Book the start."""
        for share in start.allocation:
            left = self.left[share.host]
            left.slots = 0 if exclusive else left.slots - share.slots
            left.attempts += 1
            left.memory_mib -= share.memory_mib
            if share.gpus:
                left.gpus &= ~_bits(share)


class _Left:
    """What a host still has."""

    __slots__ = ("attempts", "gpus", "memory_mib", "slots")

    def __init__(self, slots: int, memory_mib: int, gpus: int, attempts: int) -> None:
        self.slots = slots
        self.memory_mib = memory_mib
        self.gpus = gpus
        self.attempts = attempts

    def holds(self, share: HostShare) -> bool:
        """Has it the memory and the very devices of the share?"""
        wanted = _bits(share)
        return share.memory_mib <= self.memory_mib and wanted & self.gpus == wanted


_NOTHING = _Left(-1, -1, 0, 0)  # of a host that may take nothing now


def _bits(share: HostShare) -> int:
    return sum(1 << gpu for gpu in share.gpus)


def apply_plan(cluster: Cluster, command: c.ApplyPlan, now: float) -> Decision:
    """Dispatch every start that still holds; the reply is how many did not."""
    room = _Room(cluster)
    taken: dict[int, set[int]] = {}
    decision = Decision(reply=0)
    for start in command.plan.starts:
        exclusive = _is_waiting(cluster, start, taken)
        if exclusive is None or not room.fits(start, exclusive):
            decision.reply += 1
            continue
        room.take(start, exclusive)
        taken.setdefault(start.job, set()).add(start.index)
        decision.events.append(_dispatch(cluster, start, now))
    return decision


def _is_waiting(cluster: Cluster, start: Start, taken: dict[int, set[int]]) -> bool | None:
    """Whether the job is exclusive, or None when it does not wait any more."""
    record = cluster.jobs.get(start.job)
    before = taken.get(start.job, ())
    if record is None or start.index in before:
        return None
    if isinstance(record, ArrayRecord):
        if start.index not in record.pending or record.room() <= len(before):
            return None
    elif record.state is not JobState.PEND or start.index:
        return None
    return record.shared.request.exclusive


def _dispatch(cluster: Cluster, start: Start, now: float) -> e.AttemptDispatched:
    record = cluster.jobs[start.job]
    before = record.attempts.get(start.index, 0) if isinstance(record, ArrayRecord) else record.attempts
    key = Key(start.job, start.index, before + 1)
    return e.AttemptDispatched(now, key, start.allocation, len(start.allocation) == 1, start.reason)
