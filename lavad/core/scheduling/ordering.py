"""Which bucket goes next: queue priority, then job priority, then place in the queue."""

from typing import NamedTuple

from lavad.core.indexes.pending import BucketKey, Entry
from lavad.core.model import Policy


class Rank(NamedTuple):
    """Smaller goes first. Queues of equal priority are served together in order of submission."""

    queue: int
    job_priority: int
    position: float
    job: int


def rank_of(policy: Policy, key: BucketKey, head: Entry) -> Rank | None:
    """Rank of a bucket by its first entry; None when its queue does not start jobs."""
    queue = policy.by_name.get(key.queue)
    if queue is None or not queue.active:
        return None
    return Rank(-queue.priority, head.rank, head.position, head.job)
