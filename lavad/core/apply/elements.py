"""Elements of arrays that were changed by themselves: jobs of their own, each with the parameters of its part.

While such an element waits it is in ``apart`` of its array and, if the array lets it start, in a bucket by itself. Once
ended it counts by the shared facts of its array, as all others do, so that the array is forgotten as a whole.
"""

from lavad.core import events as e
from lavad.core import lifecycle
from lavad.core.apply.enqueue import list_array, list_element, unlist_element
from lavad.core.cluster import Cluster
from lavad.core.model import JobState
from lavad.core.model.ranges import Ranges, keys_in
from lavad.core.state.attempts import JobEnd
from lavad.core.state.records import ArrayRecord, Job

S = JobState


def made_element(array: ArrayRecord, index: int, state: JobState) -> Job:
    """Make a job of an element, with the parameters of its array."""
    job = Job(array.id, index, array.shared, array.text, array.submitted_at, state)
    job.array, job.priority, job.position, job.aged_from = array, array.priority, array.position, array.aged_from
    return job


def set_apart(array: ArrayRecord, indices: Ranges) -> None:
    """Make jobs of those of these elements that wait in the array's sets; they keep its parameters for now."""
    for waiting, state in ((array.pending, S.PEND), (array.blocked, S.PEND), (array.held, S.PSUSP)):
        chosen = waiting.intersection(indices)
        waiting.difference_update(chosen)
        for index in chosen:
            job = array.apart[index] = made_element(array, index, state)
            job.attempts, job.postponed_reason = array.attempts.get(index, 0), array.postponed.get(index, "")


def taken(cluster: Cluster, array: ArrayRecord, index: int) -> Job:
    """Take the element off those that wait."""
    job = array.apart[index]
    unlist_element(cluster, array, job)
    del array.apart[index]
    if not array.apart:
        cluster.capped.discard(array.id)
    return job


def end(cluster: Cluster, array: ArrayRecord, event: e.PendingEnded, final: JobState) -> None:
    """End those of the event's elements that wait by themselves."""
    for index in keys_in(array.apart, event.indices) if array.apart else ():
        job = taken(cluster, array, index)
        lifecycle.check(job.state, event, final)
        cluster.counters.move(job.shared, job.state, final)
        job.state, job.end = final, JobEnd(event.at, 0, event.reason)
        count_end(cluster, array, job)
        array.note_end(index, final)
        for known in (array.attempts, array.retries, array.postponed):
            known.pop(index, None)
        cluster.finished[array.id, index] = job


def count_end(cluster: Cluster, array: ArrayRecord, job: Job) -> None:
    """Count an element that has ended with the others of its array."""
    cluster.counters.add(job.shared, job.state, -1)
    cluster.counters.add(array.shared, job.state)


def shift(cluster: Cluster, array: ArrayRecord, event: e.PendingHeld | e.PendingFreed, new: JobState) -> None:
    """Hold or free those of the event's elements that wait by themselves."""
    for index in keys_in(array.apart, event.indices) if array.apart else ():
        job = array.apart[index]
        if job.state is not new:
            lifecycle.check(job.state, event, new)
            cluster.counters.move(job.shared, job.state, new)
            job.state = new
            list_element(cluster, array, job)


def put_back(cluster: Cluster, array: ArrayRecord, job: Job, event: e.JobRequeued) -> None:
    """Let an element that was requeued wait again: among the others, or by itself if it was changed so."""
    index = job.index
    del array.live[index]
    array.attempts[index] = job.attempts
    array.postponed[index] = event.reason
    if index in array.changed:
        job.postponed_reason = event.reason
        array.apart[index] = job
        list_element(cluster, array, job)
    elif event.hold:
        array.held.add(index)
    else:
        array.admit(Ranges.of(index))
    array.counts[job.state] -= 1
    list_array(cluster, array)


def revive(cluster: Cluster, array: ArrayRecord, event: e.JobRevived, target: JobState) -> None:
    """Let those of the event's elements that were changed by themselves wait again."""
    for index in [index for index in event.indices if index in array.changed] if array.changed else ():
        job = cluster.finished.pop((array.id, index), None)
        if job is None:  # its parameters are forgotten with it
            array.changed.discard(index)
            continue
        cluster.counters.add(array.shared, job.state, -1)
        array.forget_end(index)
        job.state, job.end = target, None
        cluster.counters.add(job.shared, target)
        array.attempts.update({index: job.attempts} if job.attempts else {})
        array.apart[index] = job
        list_element(cluster, array, job)
