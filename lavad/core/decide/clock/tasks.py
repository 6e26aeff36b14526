"""Times of jobs of tasks: delayed actions of their policies, pauses before restarts, and waits for other hosts."""

from collections.abc import Iterator

from lavad.core import events as e
from lavad.core.apply.tasks.events import note
from lavad.core.cluster import Cluster
from lavad.core.model.windows import NEVER
from lavad.core.state.records import Job
from lavad.core.state.tasks import JobTasks


def look_at_tasks(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Note jobs for which something is due; events follow from that."""
    for job, tasks in _timed(cluster):
        if any(at <= now for at in _times(tasks)):
            note(cluster, job)
    yield from ()


def next_task_action(cluster: Cluster, now: float) -> float:
    """Time of the next delayed action, end of a pause or of a wait for other hosts."""
    return min((at for _, tasks in _timed(cluster) for at in _times(tasks) if at > now), default=NEVER)


def _times(tasks: JobTasks) -> Iterator[float]:
    yield from (one.at for one in tasks.delayed)
    yield from tasks.pauses
    if tasks.replacement is not None:
        yield tasks.replacement.until


def _timed(cluster: Cluster) -> list[tuple[Job, JobTasks]]:
    """Running jobs with such times; others are forgotten here."""
    found: list[tuple[Job, JobTasks]] = []
    for place in list(cluster.timed_tasks):
        job = cluster.element(*place)
        if job is None or job.attempt is None or job.tasks is None or not any(True for _ in _times(job.tasks)):
            del cluster.timed_tasks[place]
        else:
            found.append((job, job.tasks))
    return found
