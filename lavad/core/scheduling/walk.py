"""A bucket's jobs and array elements one after the other, in scheduling order; nothing is changed by looking."""

from itertools import islice

from lavad.core.indexes.pending import Bucket
from lavad.core.records import ArrayRecord
from lavad.core.scheduling.ordering import Rank, Ranking


class Cursor:
    """Stands on one job of a bucket. Elements of an array share a rank and come by index."""

    __slots__ = ("_bucket", "_elements", "_passed", "_ranking", "index", "job", "key", "rank", "run_limit_s")

    rank: Rank
    job: int
    index: int
    run_limit_s: int

    def __init__(self, ranking: Ranking, bucket: Bucket) -> None:
        self.key = bucket.key
        self._ranking = ranking
        self._bucket = bucket
        self._passed = 0  # entries
        self._elements: islice[int] | None = None  # of the array it stands on

    def advance(self) -> bool:
        """Step to the next job; False at the end, or where the queue starts nothing."""
        if self._elements is not None and self._advance_in_array():
            return True
        while self._passed < len(self._bucket):
            entry = self._bucket.at(self._passed)
            rank = self._ranking.of(self.key, entry)
            if rank is None:
                return False
            self._passed += 1
            record = self._ranking.cluster.jobs[entry.job]
            self.rank, self.job, self.index, self.run_limit_s = rank, entry.job, 0, record.shared.run_limit_s
            if not isinstance(record, ArrayRecord):
                return True
            self._elements = islice(record.pending, record.room())
            if self._advance_in_array():
                return True
        return False

    def _advance_in_array(self) -> bool:
        assert self._elements is not None
        index = next(self._elements, None)
        if index is None:
            self._elements = None
            return False
        self.index = index
        return True

    @property
    def place(self) -> tuple[Rank, int]:
        """Where the job stands among all others."""
        return self.rank, self.index
