"""badmin perfmon: how many calls and jobs the master had in each sample period, and the least, most and mean of that.

Nothing is counted while it is off. The samples themselves are not kept, so it costs the same however long it is on.
"""

import asyncio
import os
import resource
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from lavad.core.events import AttemptDispatched, Event, JobFinished, JobSubmitted, PendingEnded
from lavad.core.model.reasons import Refused
from lavad.engine import Engine
from protos import cluster_pb2 as pb

PERIOD_S = 60
PERIOD_MAX_S = 86_400
QUERIES, JOB_QUERIES, HOST_QUERIES, QUEUE_QUERIES = (
    "Total queries",
    "  Jobs information queries",
    "  Hosts information queries",
    "  Queue information queries",
)
REQUESTS, SUBMITTED = "Job submission requests", "Jobs submitted"
DISPATCHED, COMPLETED = "Jobs dispatched", "Jobs completed"
INTERVAL, BUCKETS = "Scheduling interval in second(s)", "Job buckets"
COUNTS = (QUERIES, JOB_QUERIES, HOST_QUERIES, QUEUE_QUERIES, REQUESTS, SUBMITTED, DISPATCHED, COMPLETED)

# Calls that change nothing, by their method.
QUERY_KINDS = {
    **dict.fromkeys(("List", "Explain", "History", "Accounts", "Usage", "Dependencies", "Watch"), JOB_QUERIES),
    **dict.fromkeys(("Hosts", "Resources"), HOST_QUERIES),
    "Queues": QUEUE_QUERIES,
    **dict.fromkeys(
        ("Info", "Users", "Groups", "Parameters", "Limits", "Pools", "HostPartitions", "Status", "Reservations",
         "Applications", "JobGroups", "ControlHistory"),
        "",
    ),
}  # fmt: skip


class Figures:
    """Last, greatest and least value of a metric in the samples so far, and their sum."""

    def __init__(self) -> None:
        self.samples = 0
        self.last = self.most = self.least = self.total = 0.0

    def add(self, value: float) -> None:
        """Take a sample."""
        self.most = max(self.most, value) if self.samples else value
        self.least = min(self.least, value) if self.samples else value
        self.samples += 1
        self.last = value
        self.total += value

    def message(self, name: str) -> pb.PerformanceMetric:
        """Return the figures for the wire."""
        mean = self.total / self.samples if self.samples else 0.0
        return pb.PerformanceMetric(
            name=name, last=self.last, max=self.most, min=self.least, mean=mean, total=self.total
        )


class PerformanceMonitor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Monitor of one master. Its part as an interceptor counts the calls."""

    def __init__(self, engine: Engine, passes: Callable[[], int]) -> None:
        self._engine = engine
        self._passes = passes
        self._period_s = PERIOD_S
        self._timer: asyncio.TimerHandle | None = None
        self._begin()

    def _begin(self) -> None:
        self._started_at = self._sampled_at = 0.0
        self._counts = dict.fromkeys(COUNTS, 0)
        self._figures = {name: Figures() for name in (*COUNTS, INTERVAL, BUCKETS)}
        self._passes_before = self._passes()

    @property
    def is_on(self) -> bool:
        """True between start and stop."""
        return self._timer is not None

    # -- control -----------------------------------------------------------------------------------------------------

    def follow(self, is_wanted: bool, period_s: int) -> None:
        """Start it where the configuration wants it and it is off."""
        if is_wanted and not self.is_on:
            self.start(period_s)

    def start(self, period_s: int) -> None:
        """Begin to count; 0 is the usual sample period.

        Raises:
            Refused: it is on already, or the period can't be.
        """
        if self.is_on:
            raise Refused("Performance monitoring is on already; badmin perfmon setperiod changes its sample period")
        self._period_s = _checked(period_s or PERIOD_S)
        self._begin()
        self._started_at = self._engine.clock()
        self._engine.listeners.append(self._notify)
        self._wait()

    def stop(self) -> None:
        """Count no more, and forget the figures.

        Raises:
            Refused: it is off.
        """
        self._check_on()
        assert self._timer is not None
        self._timer.cancel()
        self._timer = None
        self._engine.listeners.remove(self._notify)

    def set_period(self, period_s: int) -> None:
        """Change the sample period; the sample under way is left out.

        Raises:
            Refused: it is off, or the period can't be.
        """
        self._check_on()
        assert self._timer is not None
        self._period_s = _checked(period_s)
        self._timer.cancel()
        self._reset()
        self._wait()

    def _check_on(self) -> None:
        if not self.is_on:
            raise Refused("Performance monitoring is off; badmin perfmon start begins it")

    # -- counting ----------------------------------------------------------------------------------------------------

    async def intercept_service(self, continuation: Any, handler_call_details: grpc.HandlerCallDetails) -> Any:
        """Count a query, and return its handler as it is."""
        if self._timer is not None:
            kind = QUERY_KINDS.get(str(handler_call_details.method).rpartition("/")[2])
            if kind is not None:
                self._counts[QUERIES] += 1
                if kind:
                    self._counts[kind] += 1
        return await continuation(handler_call_details)

    def _notify(self, events: list[Event]) -> None:
        counts = self._counts
        for event in events:
            if isinstance(event, JobSubmitted):
                counts[REQUESTS] += 1
                counts[SUBMITTED] += sum(map(len, event.job.indices)) or 1
            elif isinstance(event, AttemptDispatched):
                counts[DISPATCHED] += 1
            elif isinstance(event, JobFinished):
                counts[COMPLETED] += 1
            elif isinstance(event, PendingEnded):
                counts[COMPLETED] += len(event.indices)

    # -- sampling ----------------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._period_s, self._sample)

    def _sample(self) -> None:
        for name, count in self._counts.items():
            self._figures[name].add(count)
        passes = self._passes() - self._passes_before
        if passes:
            self._figures[INTERVAL].add(self._period_s / passes)
        self._figures[BUCKETS].add(len(self._engine.cluster.pending.buckets))
        self._sampled_at = self._engine.clock()
        self._reset()
        self._wait()

    def _reset(self) -> None:
        self._counts = dict.fromkeys(COUNTS, 0)
        self._passes_before = self._passes()

    # -- answer ------------------------------------------------------------------------------------------------------

    def reply(self) -> pb.PerformanceReply:
        """Return the figures, if it is on."""
        reply = pb.PerformanceReply(is_on=self.is_on, period_s=self._period_s)
        if self.is_on:
            reply.started, reply.sampled = self._started_at, self._sampled_at
            reply.counts.extend(self._messages(COUNTS))
            reply.scheduler.extend(self._messages((INTERVAL, BUCKETS)))
            reply.files_used = len(os.listdir("/proc/self/fd"))
            reply.files_max = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return reply

    def _messages(self, names: tuple[str, ...]) -> Iterator[pb.PerformanceMetric]:
        return (self._figures[name].message(name) for name in names)


def _checked(period_s: int) -> int:
    if not 0 < period_s <= PERIOD_MAX_S:
        raise Refused(f"The sample period is from 1 to {PERIOD_MAX_S} seconds")
    return period_s
