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
        self.left: dict[str, tuple[int, int, int, int]] = {}  # slots, memory, gpu bits, attempts

    def fits(self, start: Start, exclusive: bool) -> bool:
        """Is every host of the start usable and wide enough? Nothing is taken."""
        return all(self._share_fits(share, exclusive) for share in start.allocation)

    def _share_fits(self, share: HostShare, exclusive: bool) -> bool:
        table = self.cluster.table
        row = table.rows.get(share.host)
        if row is None or not table.usable[row] or table.taken_whole[row]:
            return False
        slots, memory, gpus, attempts = self._left_on(share.host, row)
        wanted = sum(1 << gpu for gpu in share.gpus)
        if exclusive and attempts:
            return False
        return share.slots <= slots and share.memory_mib <= memory and wanted & gpus == wanted

    def _left_on(self, host: str, row: int) -> tuple[int, int, int, int]:
        left = self.left.get(host)
        if left is None:
            table = self.cluster.table
            left = (
                int(table.slots_free[row]),
                int(table.memory_free_mib[row]),
                table.gpu_free[row],
                int(table.attempts[row]),
            )
            self.left[host] = left
        return left

    def take(self, start: Start, exclusive: bool) -> None:
        """Book the start."""
        for share in start.allocation:
            slots, memory, gpus, attempts = self.left[share.host]
            wanted = sum(1 << gpu for gpu in share.gpus)
            slots_left = 0 if exclusive else slots - share.slots
            self.left[share.host] = (slots_left, memory - share.memory_mib, gpus & ~wanted, attempts + 1)


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
