"""Entry of pending jobs into their buckets."""

from collections.abc import Iterable, Iterator

from lavad.core.cluster import Cluster
from lavad.core.cluster_view import ClusterView
from lavad.core.model import FINAL, JobState, Shared
from lavad.core.model.tuples import new as _new
from lavad.core.state.pending import PendingEntry
from lavad.core.state.records import ArrayRecord, Job, place_of


def entry(cluster: ClusterView, record: Job | ArrayRecord) -> PendingEntry:
    """Entry of a pending job or array in its bucket.

    All priorities grow alike while jobs are pending, so the value extrapolated to time 0 ranks them for good.
    """
    absolute = cluster.absolute
    if absolute.rules and record.shared.queue in absolute.rules:
        return absolute.entry(record)
    growth = absolute.growth
    rank = round(growth * record.aged_from - record.priority, 6) if growth else -record.priority
    return _new(PendingEntry, (rank, record.position, record.id if not record.index else record.number))


def add(cluster: Cluster, record: Job | ArrayRecord) -> None:
    """Add a job, an array or an element by itself to its bucket."""
    cluster.pending.add(record.shared, entry(cluster, record), isinstance(record, ArrayRecord) or record.index > 0)
    if cluster.absolute.rules:
        _note(cluster, record)


def _note(cluster: Cluster, record: Job | ArrayRecord) -> None:
    """Note when a job that has been added has to be ranked anew, if it has an absolute priority."""
    if record.shared.queue in cluster.absolute.rules:
        cluster.absolute.note(record)


def is_listed(record: Job | ArrayRecord) -> bool:
    """True if a pending job, an element by itself, or an array with an element to start, is in its bucket."""
    if isinstance(record, ArrayRecord):
        return record.room() > 0
    return record.may_start if record.array is None else record.array.may_start(record)


def pending_record(cluster: Cluster, number: int) -> Job | ArrayRecord | None:
    """The record of an entry; None if it does not wait any more."""
    job, index = place_of(number)
    record = cluster.jobs.get(job)
    return record.apart.get(index) if index and isinstance(record, ArrayRecord) else record


def rank_anew(cluster: Cluster, now: float) -> None:
    """Rank jobs anew whose absolute priority changes by now. Volatile, since it follows from jobs and time alone."""
    absolute = cluster.absolute
    for number in absolute.take_due(now):
        record = pending_record(cluster, number)
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
        record = pending_record(cluster, number)
        if record is None or not is_listed(record):
            absolute.forget(number)
    if kept:
        absolute.pruned()


def waiting_counts(record: Job | ArrayRecord) -> list[tuple[JobState, int]]:
    """Number of pending jobs by state; of an array, of the elements that have its own parameters."""
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
            for job in (*record.live.values(), *record.apart.values()):
                yield job.shared, job.state, 1
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
    if array.apart and array.is_full is not array.was_full:
        list_apart(cluster, array)


def list_apart(cluster: Cluster, array: ArrayRecord) -> None:
    """Put the elements that wait by themselves into their buckets, or take them out, as the array allows.

    Costs as much as there are of them: once for each start and end while the array is at its job limit.
    """
    array.was_full = array.is_full
    cluster.capped.discard(array.id)
    for job in array.apart.values():
        list_element(cluster, array, job)


def list_element(cluster: Cluster, array: ArrayRecord, job: Job) -> None:
    """Put an element that waits by itself into its bucket if it may start, else take it out."""
    if array.limit:
        cluster.capped.add(array.id)
    is_open = array.may_start(job)
    if is_open is not (job.index in array.listed):
        (array.listed.add if is_open else array.listed.discard)(job.index)
        if is_open:
            add(cluster, job)
        else:
            cluster.pending.remove(job.shared, entry(cluster, job))


def unlist_element(cluster: Cluster, array: ArrayRecord, job: Job) -> None:
    """Take an element that waits by itself out of its bucket: it starts, ends or is changed."""
    if job.index in array.listed:
        array.listed.discard(job.index)
        cluster.pending.remove(job.shared, entry(cluster, job))


def list_job(cluster: Cluster, job: Job) -> None:
    """Put a plain job into its bucket if it may start, else take it out."""
    if job.may_start:
        cluster.pending.add(job.shared, entry(cluster, job), False)
        if cluster.absolute.rules:
            _note(cluster, job)
    else:
        cluster.pending.remove(job.shared, entry(cluster, job))
