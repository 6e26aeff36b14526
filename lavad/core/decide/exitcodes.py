"""Whether the way a job ended sends it back to wait: by bsub -Q, else by its queue's REQUEUE_EXIT_VALUES."""

from lavad.core.cluster import Cluster
from lavad.core.records import Attempt, Job
from lavad.core.requeue import parse


def by_exit_code(cluster: Cluster, job: Job, attempt: Attempt, status: int) -> tuple[bool, bool]:
    """Does the way a job ended send it back to wait, and away from its host?"""
    if status & 0x7F:
        return False, False  # killed by a signal
    queue = cluster.policy.queue(job.shared.queue)
    values = job.shared.requeue_exit_values or (queue.defaults.requeue_exit_values if queue is not None else "")
    if not values:
        return False, False
    most = queue.requeue_limit if queue is not None else None
    if most is not None and attempt.key.attempt > most:
        return False, False
    rules, code = parse(values), status >> 8 & 0xFF
    return code in rules.codes, code in rules.excluding
