"""Calls that wait for a dependency condition (bwait): evaluated again when a job that it refers to has changed.

Invariants: the calls of a user, and the jobs that they refer to, are bounded as those that watch jobs; a condition is
evaluated for a small part of the time, however often its jobs change; a parent that memory forgets meanwhile counts as
it was; nothing is answered that is not durable.
"""

import asyncio
import time
from collections import ChainMap
from collections.abc import AsyncGenerator
from typing import Any, cast

from lavad.api.jobs.history import Stored
from lavad.api.jobs.watch import Watchers
from lavad.core.cluster_view import ClusterView
from lavad.core.commands import Caller
from lavad.core.decide.jobs.dependencies import Evaluation, resolve_for, verdict
from lavad.core.events import Event
from lavad.core.language.dependency import Expression, clauses_of, parse
from lavad.core.model import Key
from lavad.core.model.reasons import Refused
from lavad.engine import Engine
from protos import jobs_pb2 as pb

PAUSE_S = 0.05  # between two evaluations of a condition, at least
PAUSE_SHARE = 50.0  # and in times of what the last one took
CONDITION_MAX = 4094  # characters


class _Wait:
    """One waiting call."""

    def __init__(self, view: ClusterView, condition: Expression) -> None:
        self.condition = condition
        self.jobs = {clause.ref.job for clause in clauses_of(condition) if clause.ref.job}
        self.has_groups = any(clause.ref.group for clause in clauses_of(condition))
        self.changed = asyncio.Event()
        self._view = cast("ClusterView", _View(view, self.jobs))

    def evaluate(self) -> Evaluation:
        return verdict(self._view, self.condition, 0)


class _View:
    """The part of the cluster that conditions are evaluated by, with the jobs as they were when memory forgot them."""

    def __init__(self, view: ClusterView, jobs: set[int]) -> None:
        kept = {job: record for job in jobs if (record := view.jobs.get(job) or view.remembered.get(job)) is not None}
        self.jobs = ChainMap(cast("dict[int, Any]", view.jobs), kept)
        self.remembered = view.remembered
        self.counters = view.counters
        self.external_statuses = view.external_statuses
        self.job_groups = view.job_groups


class Waiters:
    """All calls that wait for conditions, by the jobs that these refer to."""

    def __init__(self, engine: Engine, stored: Stored, watchers: Watchers) -> None:
        self._engine = engine
        self._stored = stored
        self._watchers = watchers
        self._by_job: dict[int, dict[_Wait, None]] = {}
        self._of_groups: dict[_Wait, None] = {}

    async def replies(self, request: pb.WaitRequest, caller: Caller) -> AsyncGenerator[pb.WaitReply, None]:
        """Yield WAITING once the call is registered, and the verdict when there is one.

        Raises:
            Refused: the condition is wrong, or the user has too many calls.
        """
        if len(request.condition) > CONDITION_MAX:
            raise Refused(f"The wait condition is longer than {CONDITION_MAX} characters")
        cluster = self._engine.cluster
        condition = resolve_for(cluster, parse(request.condition), caller.uid, caller.user)
        wait = _Wait(cluster, condition)
        with self._watchers.counted(caller.user, wait.jobs):
            self._enter(wait)
            try:
                yield pb.WaitReply()
                found = await self._found(wait)
            finally:
                self._leave(wait)
        await self._stored.store.flush()  # memory is ahead of the disk
        yield pb.WaitReply(verdict=pb.HOLDS if found.holds else pb.NEVER_HOLDS)

    async def _found(self, wait: _Wait) -> Evaluation:
        while True:
            wait.changed.clear()
            began = time.monotonic()
            found = wait.evaluate()
            if found.holds or found.is_final:
                return found
            await asyncio.sleep(max(PAUSE_S, PAUSE_SHARE * (time.monotonic() - began)))
            await wait.changed.wait()

    def _enter(self, wait: _Wait) -> None:
        listeners = self._engine.listeners
        if self.notify not in listeners:
            listeners.append(self.notify)
        for job in wait.jobs:
            self._by_job.setdefault(job, {})[wait] = None
        if wait.has_groups:
            self._of_groups[wait] = None

    def _leave(self, wait: _Wait) -> None:
        self._of_groups.pop(wait, None)
        for job in wait.jobs:
            waits = self._by_job[job]
            del waits[wait]
            if not waits:
                del self._by_job[job]

    def notify(self, events: list[Event]) -> None:
        """Note durable events."""
        for wait in self._of_groups if events else ():
            wait.changed.set()
        if self._by_job:
            for job in {_job_of(event) for event in events}:
                for wait in self._by_job.get(job, ()):
                    wait.changed.set()


def _job_of(event: Event) -> int:
    """Return the job that an event is about; 0 for none."""
    key = getattr(event, "key", None)
    if isinstance(key, Key):
        return key.job
    job = getattr(event, "job", 0)
    return job if isinstance(job, int) else 0
