"""Who waits for a job to change: told after each durable event, so that nobody polls (bsub -K)."""

import asyncio
from collections.abc import Iterable

from lavad.api import translate
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.events import Event
from lavad.core.model import FINAL, JobState, Key
from protos import jobs_pb2

QUEUE_MAX = 1000


class Watchers:
    """Queues of changes by job."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._queues: dict[int, set[asyncio.Queue[jobs_pb2.JobChange]]] = {}
        self._ends: dict[int, list[asyncio.Event]] = {}

    def add(self, jobs: Iterable[int]) -> "asyncio.Queue[jobs_pb2.JobChange]":
        """A queue that gets every change of these jobs."""
        queue: asyncio.Queue[jobs_pb2.JobChange] = asyncio.Queue(QUEUE_MAX)
        for job in jobs:
            self._queues.setdefault(job, set()).add(queue)
        return queue

    def remove(self, jobs: Iterable[int], queue: "asyncio.Queue[jobs_pb2.JobChange]") -> None:
        """The watcher has gone."""
        for job in jobs:
            queues = self._queues.get(job)
            if queues is not None:
                queues.discard(queue)
                if not queues:
                    del self._queues[job]

    def notify(self, events: list[Event]) -> None:
        """Events are durable: tell those who wait."""
        if self._ends:
            self._notify_ends(events)
        if not self._queues:
            return
        for event in events:
            job = _job_of(event)
            queues = self._queues.get(job)
            for index in _indices_of(event) if queues else ():
                for queue in queues or ():
                    if not queue.full():  # a watcher that does not read gets the present state when it does
                        queue.put_nowait(self.change(job, index))

    async def until_over(self, jobs: Iterable[int]) -> None:
        """Until all these jobs have ended, durably."""
        for job in jobs:
            if not self.is_over(job):
                await self._end_of(job)

    async def _end_of(self, job: int) -> None:
        ended = asyncio.Event()
        self._ends.setdefault(job, []).append(ended)
        try:
            await ended.wait()
        finally:
            waiting = self._ends.get(job, [])
            if ended in waiting:  # the watcher has gone before the job ended
                waiting.remove(ended)
                if not waiting:
                    del self._ends[job]

    def _notify_ends(self, events: list[Event]) -> None:
        for job in {_job_of(event) for event in events}:
            if job in self._ends and self.is_over(job):
                for ended in self._ends.pop(job):
                    ended.set()

    def change(self, job: int, index: int) -> jobs_pb2.JobChange:
        """The present state of a job or element."""
        state = self.cluster.present_state(job, index) or JobState.EXIT
        found = self.cluster.element(job, index)
        message = jobs_pb2.JobChange(job=job, index=index, state=translate.state_message(state))
        if found is not None and found.attempt is not None:
            message.hosts.extend(share.host for share in found.attempt.allocation)
        if found is not None and found.end is not None:
            message.exit_status = found.end.status
            message.exit_reason = found.end.reason
            message.hosts.extend(share.host for share in found.end.hosts)
        return message

    def is_over(self, job: int) -> bool:
        """Has the job, or every element of the array, ended?"""
        record = self.cluster.jobs.get(job)
        if record is None:
            return True
        return record.is_over if hasattr(record, "is_over") else record.state in FINAL


def _job_of(event: Event) -> int:
    """The job whose state the event may have changed; 0 for none."""
    key = getattr(event, "key", None)
    if isinstance(key, Key):
        return key.job
    return event.job if isinstance(event, e.PendingEnded | e.PendingHeld | e.PendingFreed) else 0


def _indices_of(event: Event) -> Iterable[int]:
    """Its elements; there may be a million."""
    key = getattr(event, "key", None)
    if isinstance(key, Key):
        return (key.index,)
    return event.indices if isinstance(event, e.PendingEnded | e.PendingHeld | e.PendingFreed) else ()
