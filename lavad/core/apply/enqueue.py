"""Entry of pending jobs into their buckets."""

from collections.abc import Iterable, Iterator

from lavad.core.cluster import Cluster
from lavad.core.cluster_view import ClusterView
from lavad.core.model import FINAL, JobState, Shared
from lavad.core.model.tuples import new as _new
from lavad.core.state.pending import PendingEntry
from lavad.core.state.records import ArrayRecord, Job


def entry(cluster: ClusterView, record: Job | ArrayRecord) -> PendingEntry:
    """Entry of a pending job or array in its bucket.

    All priorities grow alike while jobs are pending, so the value extrapolated to time 0 ranks them for good.
    """
    absolute = cluster.absolute
    if absolute.rules and record.shared.queue in absolute.rules:
        return absolute.entry(record)
    growth = absolute.growth
    rank = round(growth * record.aged_from - record.priority, 6) if growth else -record.priority
    return _new(PendingEntry, (rank, record.position, record.id))


def add(cluster: Cluster, record: Job | ArrayRecord) -> None:
    """Add a job or array to its bucket."""
    cluster.pending.add(record.shared, entry(cluster, record), isinstance(record, ArrayRecord))
    if cluster.absolute.rules:
        _note(cluster, record)


def _note(cluster: Cluster, record: Job | ArrayRecord) -> None:
    """Note when a job that has been added has to be ranked anew, if it has an absolute priority."""
    if record.shared.queue in cluster.absolute.rules:
        cluster.absolute.note(record)


def is_listed(record: Job | ArrayRecord) -> bool:
    """True if a pending job, or an element of an array, is in its bucket."""
    return record.room() > 0 if isinstance(record, ArrayRecord) else record.may_start


def rank_anew(cluster: Cluster, now: float) -> None:
    """Rank jobs anew whose absolute priority changes by now. Volatile, since it follows from jobs and time alone."""
    absolute = cluster.absolute
    for number in absolute.take_due(now):
        record = cluster.jobs.get(number)
        if record is None or not is_listed(record) or record.shared.queue not in absolute.rules:
            if record is None or not is_listed(record):
                absolute.forget(number)
            continue
        before = absolute.entry(record)
        absolute.rank_as_of(number, now)
        after = absolute.entry(record)
        if after != before:
            cluster.pending.move(record.shared, before, after)
        absolute.note(record)
    for number in (kept := absolute.kept()):
        record = cluster.jobs.get(number)
        if record is None or not is_listed(record):
            absolute.forget(number)
    if kept:
        absolute.pruned()


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


def counted(records: Iterable[Job | ArrayRecord]) -> Iterator[tuple[Shared, JobState, int]]:
    """Shared facts, state and number of all jobs and elements of the records, ended ones included."""
    for record in records:
        if isinstance(record, ArrayRecord):
            for state, count in (*waiting_counts(record), *ended_counts(record)):
                yield record.shared, state, count
            for job in record.live.values():
                yield record.shared, job.state, 1
        else:
            yield record.shared, record.state, 1


def list_array(cluster: Cluster, array: ArrayRecord) -> None:
    """Put the array into its bucket if elements of it may start, else take it out."""
    if array.room() > 0:
        cluster.pending.add(array.shared, entry(cluster, array), True)
        if cluster.absolute.rules:
            _note(cluster, array)
    else:
        cluster.pending.remove(array.shared, entry(cluster, array))


def list_job(cluster: Cluster, job: Job) -> None:
    """Put a plain job into its bucket if it may start, else take it out."""
    if job.may_start:
        cluster.pending.add(job.shared, entry(cluster, job), False)
        if cluster.absolute.rules:
            _note(cluster, job)
    else:
        cluster.pending.remove(job.shared, entry(cluster, job))
