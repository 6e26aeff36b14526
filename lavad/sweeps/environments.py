"""Removal of stored environments that no job refers to any more, now and then, in slices.

An environment is needed as long as a job in memory refers to it; a forgotten job is never started again. Invariant:
none is removed that a job was packed with since the sweep began, decided or not.
"""

import asyncio
from itertools import repeat

from lavad.agent_links.spec_cache import SpecShelf
from lavad.core.cluster import Cluster
from lavad.core.state.records import ArrayRecord
from lavad.store.store import Store
from lavad.sweeps.periodic import PeriodicSweep
from protos.jobs_pb2 import JobSpec

LOOKED_AT = 4096  # jobs between two yields to other calls, about 1 ms
READ_AT_ONCE = 100  # specs or hashes


class EnvironmentSweep(PeriodicSweep):
    """Periodic removal of environments without a job."""

    def __init__(self, cluster: Cluster, shelf: SpecShelf, store: Store, every_s: float) -> None:
        super().__init__("environments", every_s)
        self._cluster = cluster
        self._shelf = shelf
        self._store = store

    async def sweep(self) -> int:
        """Remove environments that no job needs; return their number.

        Raises:
            NotNow: the database can't be read at the moment.
        """
        self._shelf.begin_sweep()
        try:
            return await self._remove_all_but(await self._needed())
        finally:
            self._shelf.end_sweep()

    async def _needed(self) -> set[str]:
        """Return the environments of the jobs present when the sweep began."""
        needed: set[str] = set()
        untold: list[int] = []  # submitted by versions that did not note the environment with the job
        for number, record in enumerate(list(self._cluster.jobs.values())):
            if number % LOOKED_AT == LOOKED_AT - 1:
                await asyncio.sleep(0)
            if record.shared.environment:
                needed.add(record.shared.environment)
            else:
                untold.append(record.id)
            if isinstance(record, ArrayRecord) and record.changed:
                jobs = map(self._cluster.element, repeat(record.id), record.changed)
                needed.update(job.shared.environment for job in jobs if job is not None and job.part)
        for start in range(0, len(untold), READ_AT_ONCE):
            specs = await self._store.specs(untold[start : start + READ_AT_ONCE])
            needed.update(JobSpec.FromString(spec).environment_base.hex() for spec in specs.values())
        return needed

    async def _remove_all_but(self, needed: set[str]) -> int:
        removed, after = 0, b""
        while keys := await self._store.environment_keys(after, READ_AT_ONCE):
            after = keys[-1]
            idle = [key for key in keys if key.hex() not in needed and not self._shelf.is_used(key.hex())]
            if idle:
                self._shelf.forget({key.hex() for key in idle})
                self._store.forget_environments(idle)
                removed += len(idle)
        return removed
