"""Times of jobs of tasks: delayed actions of their policies."""

from collections.abc import Iterator

from lavad.core import events as e
from lavad.core.apply.tasks.events import note
from lavad.core.cluster import Cluster
from lavad.core.model.windows import NEVER
from lavad.core.state.records import Job


def look_at_tasks(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Note jobs with delayed actions that are due; events follow from that."""
    for job in _timed(cluster):
        if job.tasks is not None and any(one.at <= now for one in job.tasks.delayed):
            note(cluster, job)
    yield from ()


def next_task_action(cluster: Cluster) -> float:
    """Time of the next delayed action."""
    return min((one.at for job in _timed(cluster) if job.tasks is not None for one in job.tasks.delayed), default=NEVER)


def _timed(cluster: Cluster) -> list[Job]:
    """Running jobs with delayed actions; others are forgotten here."""
    found: list[Job] = []
    for place in list(cluster.timed_tasks):
        job = cluster.element(*place)
        if job is None or job.attempt is None or job.tasks is None or not job.tasks.delayed:
            del cluster.timed_tasks[place]
        else:
            found.append(job)
    return found
