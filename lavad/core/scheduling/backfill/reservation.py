"""The reservation of a blocked job."""

from lavad.core.apply.enqueue import entry
from lavad.core.cluster_view import ClusterView
from lavad.core.scheduling.queueing.ordering import Rank
from lavad.core.state.pending import BucketKey


class Reservation:
    """Reservation of a blocked job that later jobs must not delay. ``place`` is its rank and its array index."""

    __slots__ = ("entry", "job", "key", "place", "start_at")

    def __init__(self, cluster: ClusterView, place: tuple[Rank, int], key: BucketKey, job: int) -> None:
        self.place = place
        self.key = key
        self.job = job
        self.entry = entry(cluster, cluster.bearer(job, place[1]))  # its position in its bucket
        self.start_at: float | None = None

    @property
    def index(self) -> int:
        return self.place[1]
