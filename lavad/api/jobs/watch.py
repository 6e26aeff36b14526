"""Calls that watch jobs: notified after each durable event, so that none of them polls (bsub -K).

Invariants: the calls of a user and the jobs they watch are bounded; a change is one message, however many calls it goes
to; a call that does not read keeps a bounded number of changes, and then gets the present state.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Collection, Iterable, Iterator

from lavad.api import translate
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.events import Event
from lavad.core.model import FINAL, JobState, Key
from lavad.core.model.reasons import Refused
from protos import jobs_pb2

UNREAD_MAX = 1000
CALLS_PER_USER = 2048
JOBS_PER_USER = 20_000  # summed over these calls


class Watch:
    """One watching call: its unread changes, and its jobs that have not ended."""

    def __init__(self, jobs: Iterable[int]) -> None:
        self.jobs = tuple(dict.fromkeys(jobs))
        self.open = set(self.jobs)
        self.has_missed = False
        self._unread: deque[jobs_pb2.JobChange] = deque()
        self._arrived = asyncio.Event()

    def put(self, change: jobs_pb2.JobChange) -> None:
        """Queue one change; beyond the bound only the fact that there were more is kept."""
        if len(self._unread) < UNREAD_MAX:
            self._unread.append(change)
        else:
            self.has_missed = True
        self._arrived.set()

    def take(self) -> jobs_pb2.JobChange | None:
        """Return the oldest unread change, or None."""
        return self._unread.popleft() if self._unread else None

    async def wait(self) -> None:
        """Wait until there is something to read."""
        self._arrived.clear()
        if not self._unread:
            await self._arrived.wait()


class Watchers:
    """All watching calls, by job and by user."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._watches: dict[int, set[Watch]] = {}
        self._ends: dict[int, list[asyncio.Event]] = {}
        self._of_user: dict[str, tuple[int, int]] = {}  # calls and jobs

    @contextlib.contextmanager
    def counted(self, user: str, jobs: Collection[int]) -> Iterator[None]:
        """Count a call of this user about these jobs while it lasts.

        Raises:
                Refused: the user has too many.
        """
        calls, watched = self._of_user.get(user, (0, 0))
        if calls >= CALLS_PER_USER:
            raise Refused(f"User {user} waits for jobs in {calls} calls at once, which is the limit")
        if watched + len(jobs) > JOBS_PER_USER:
            wanted = watched + len(jobs)
            raise Refused(f"User {user} would wait for {wanted} jobs at once; the limit is {JOBS_PER_USER}")
        self._count(user, 1, len(jobs))
        try:
            yield
        finally:
            self._count(user, -1, -len(jobs))

    def _count(self, user: str, calls: int, jobs: int) -> None:
        before = self._of_user.pop(user, (0, 0))
        if before[0] + calls:
            self._of_user[user] = (before[0] + calls, before[1] + jobs)

    @contextlib.contextmanager
    def watching(self, jobs: Iterable[int]) -> Iterator[Watch]:
        """Register a watch that gets every change of these jobs."""
        watch = Watch(jobs)
        for job in watch.jobs:
            self._watches.setdefault(job, set()).add(watch)
        try:
            yield watch
        finally:
            for job in watch.jobs:
                watches = self._watches[job]
                watches.discard(watch)
                if not watches:
                    del self._watches[job]

    def close_ended(self, watch: Watch, jobs: Iterable[int]) -> None:
        """Remove jobs that have ended from the watch."""
        watch.open.difference_update([job for job in jobs if self.is_over(job)])

    def notify(self, events: list[Event]) -> None:
        """Notify watching calls of durable events."""
        if self._ends:
            self._notify_ends(events)
        if not self._watches:
            return
        for event in events:
            job = _job_of(event)
            watches = self._watches.get(job)
            for index in _indices_of(event) if watches else ():
                change = self.change(job, index)
                for watch in watches or ():
                    watch.put(change)

    async def until_over(self, jobs: Iterable[int]) -> None:
        """Wait until all these jobs have ended, durably."""
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
            if ended in waiting:  # the watcher left before the job ended
                waiting.remove(ended)
                if not waiting:
                    del self._ends[job]

    def _notify_ends(self, events: list[Event]) -> None:
        for job in {_job_of(event) for event in events}:
            if job in self._ends and self.is_over(job):
                for ended in self._ends.pop(job):
                    ended.set()

    def change(self, job: int, index: int) -> jobs_pb2.JobChange:
        """Build the present state of a job or element."""
        state = self.cluster.present_state(job, index) or JobState.EXIT
        found = self.cluster.element(job, index)
        message = jobs_pb2.JobChange(job=job, index=index, state=translate.state_message(state))
        if found is not None and found.attempt is not None:
            message.hosts.extend(share.host for share in found.attempt.allocation)
        if found is not None and found.end is not None:
            message.exit_status = found.end.status
            message.exit_reason = found.end.reason
            message.hosts.extend(share.host for share in found.end.hosts)
        message.attempt = found.attempts if found is not None else 0
        return message

    def is_over(self, job: int) -> bool:
        """Return True if the job, or every element of the array, has ended."""
        record = self.cluster.jobs.get(job)
        if record is None:
            return True
        return record.is_over if hasattr(record, "is_over") else record.state in FINAL


def _job_of(event: Event) -> int:
    """Return the job whose state the event may have changed; 0 for none."""
    key = getattr(event, "key", None)
    if isinstance(key, Key):
        return key.job
    return event.job if isinstance(event, e.PendingEnded | e.PendingHeld | e.PendingFreed) else 0


def _indices_of(event: Event) -> Iterable[int]:
    """Yield the elements that the event changed; there may be a million."""
    key = getattr(event, "key", None)
    if isinstance(key, Key):
        return (key.index,)
    return event.indices if isinstance(event, e.PendingEnded | e.PendingHeld | e.PendingFreed) else ()
