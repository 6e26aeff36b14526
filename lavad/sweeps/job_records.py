"""Removal of the records of jobs that ended long ago, now and then, in slices.

A job that memory still has, or that another job depends on, stays. One slice is a few rows of a few jobs, however large
an array is, so that no commit waits for it.
"""

import asyncio
import time
from collections.abc import Callable

from lavad.core.cluster import Cluster
from lavad.store.store import Store
from lavad.sweeps.periodic import PeriodicSweep

AT_ONCE = 50  # jobs in one commit
PAUSE_SHARE = 9.0  # pause after a commit, in times of what it took: the rest of the writer's time is the jobs'


class RecordSweep(PeriodicSweep):
    """Periodic removal of the records of ended jobs.

    Args:
        kept_s: how long they are kept after the job's end; 0: for ever.
    """

    def __init__(
        self, cluster: Cluster, store: Store, clock: Callable[[], float], kept_s: float, every_s: float
    ) -> None:
        super().__init__("records", every_s)
        self._cluster = cluster
        self._store = store
        self._clock = clock
        self._kept_s = kept_s

    async def run(self) -> None:
        """Sweep at intervals, unless records are kept for ever."""
        if self._kept_s:
            await super().run()

    async def sweep(self) -> int:
        """Remove the records of jobs that ended before the period; return their number.

        Raises:
            NotNow: the database can't be read at the moment.
        """
        before = self._clock() - max(self._kept_s, self._cluster.policy.clean_period_s)
        removed, after = 0, (0.0, 0)
        while found := await self._store.expired(before, after, AT_ONCE):
            after = found[-1]
            jobs = [job for _, job in found if not self._is_needed(job)]
            removed += len(jobs)
            while jobs:
                began = time.monotonic()
                self._store.purge(jobs)
                await self._store.flush()
                await asyncio.sleep(PAUSE_SHARE * (time.monotonic() - began))
                jobs = await self._store.present(jobs)
        return removed

    def _is_needed(self, job: int) -> bool:
        return job in self._cluster.jobs or job in self._cluster.remembered
