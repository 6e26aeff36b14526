"""A bucket's jobs and array elements one after the other, in scheduling order; nothing is changed by looking."""

from collections.abc import Iterator
from itertools import islice

from lavad.core.indexes.pending import Bucket
from lavad.core.records import ArrayRecord
from lavad.core.scheduling.ordering import Rank, Ranking


class Cursor:
    """Stands on one job of a bucket. Elements of an array share a rank and come by index."""

    __slots__ = ("_walk", "index", "job", "key", "rank", "run_limit_s")

    def __init__(self, ranking: Ranking, bucket: Bucket) -> None:
        self.key = bucket.key
        self._walk = _walk(ranking, bucket)

    def advance(self) -> bool:
        """Step to the next job; False at the end, or where the queue starts nothing."""
        found = next(self._walk, None)
        if found is None:
            return False
        self.rank, self.job, self.index, self.run_limit_s = found
        return True

    @property
    def place(self) -> tuple[Rank, int]:
        """Where the job stands among all others."""
        return self.rank, self.index


def _walk(ranking: Ranking, bucket: Bucket) -> Iterator[tuple[Rank, int, int, int]]:
    cluster = ranking.cluster
    for entry in bucket:
        rank = ranking.of(bucket.key, entry)
        if rank is None:
            return
        record = cluster.jobs[entry.job]
        run_limit_s = record.shared.run_limit_s
        if isinstance(record, ArrayRecord):
            for index in islice(record.pending, record.room()):
                yield rank, entry.job, index, run_limit_s
        else:
            yield rank, entry.job, 0, run_limit_s
