"""Entry of pending jobs into their buckets."""

from lavad.core.cluster import Cluster
from lavad.core.cluster_view import ClusterView
from lavad.core.model import FINAL, JobState
from lavad.core.model.tuples import new as _new
from lavad.core.state.pending import PendingEntry
from lavad.core.state.records import ArrayRecord, Job


def entry(cluster: ClusterView, record: Job | ArrayRecord) -> PendingEntry:
    """Entry of a pending job or array in its bucket.

    All priorities grow alike while jobs are pending, so the value extrapolated to time 0 ranks them for good.
    """
    growth = cluster.policy.priority_growth
    rank = round(growth * record.aged_from - record.priority, 6) if growth else -record.priority
    return _new(PendingEntry, (rank, record.position, record.id))


def waiting_counts(record: Job | ArrayRecord) -> list[tuple[JobState, int]]:
    """Number of pending jobs or elements by state."""
    if isinstance(record, ArrayRecord):
        return [(JobState.PEND, len(record.pending) + len(record.blocked)), (JobState.PSUSP, len(record.held))]
    return [(record.state, 1)]


def ended_counts(record: Job | ArrayRecord) -> list[tuple[JobState, int]]:
    """Number of ended jobs or elements by state."""
    if isinstance(record, ArrayRecord):
        return [(JobState.DONE, record.done), (JobState.EXIT, record.exited)]
    return [(record.state, int(record.state in FINAL))]


def list_array(cluster: Cluster, array: ArrayRecord) -> None:
    """Put the array into its bucket if elements of it may start, else take it out."""
    if array.room() > 0:
        cluster.pending.add(array.shared, entry(cluster, array), True)
    else:
        cluster.pending.remove(array.shared, entry(cluster, array))


def list_job(cluster: Cluster, job: Job) -> None:
    """Put a plain job into its bucket if it may start, else take it out."""
    if job.may_start:
        cluster.pending.add(job.shared, entry(cluster, job), False)
    else:
        cluster.pending.remove(job.shared, entry(cluster, job))
