"""Input of a replay: hosts, and submissions with their run times; a trace is converted here.

Invariants: submissions come in order of time; run times are known to the replay alone, never to the scheduler.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from lavad.core.commands import Caller, SubmitJob
from lavad.core.events import NewJob
from lavad.core.model import HostFacts, Request, RoleRequest, Shared
from lavad.core.model.policy import Policy
from lavad.simulator.replay.swf import TraceJob

HOSTS_MAX = 100_000


class Overrun(Enum):
    """Treatment of jobs that would run past their estimate."""

    KILL = "kill"
    EXTEND = "extend"
    RUN_ON = "runon"


class Elastic(NamedTuple):
    """Share of the jobs that are elastic, in percent: they run with half to twice their processors, and the same work
    (linear speedup)."""

    percent: int = 0

    def takes(self, number: int) -> bool:
        """Return True if the job of that number is one of them: always the same ones, and more with a larger share."""
        return number * _SPREAD % _WHOLE * 100 < self.percent * _WHOLE


RIGID = Elastic()
ELASTIC_QUEUE = "elastic"
_SPREAD, _WHOLE = 2_654_435_761, 1 << 32  # Knuth's multiplicative hash


class Submission(NamedTuple):
    """A job or an array to submit. ``runs``: seconds by index, index 0 for a plain job."""

    number: int  # id in the source
    at: float
    command: SubmitJob
    runs: Mapping[int, float]
    work: float = 0.0  # of an elastic job: slots times seconds


@dataclass(frozen=True, slots=True)
class Machine:
    """Equal hosts."""

    hosts: int
    slots: int

    @property
    def processors(self) -> int:
        return self.hosts * self.slots

    def facts(self) -> Iterator[HostFacts]:
        """Yield the facts that the agents of these hosts would report."""
        return (HostFacts(f"n{number:05}", self.slots, cpus=self.slots) for number in range(self.hosts))


def times_of(job: TraceJob, overrun: Overrun) -> tuple[int, int]:
    """Return (run time, estimate given to the scheduler), in seconds."""
    if overrun is Overrun.KILL:
        return min(job.run_s, job.estimate_s), job.estimate_s
    if overrun is Overrun.EXTEND:
        return job.run_s, max(job.run_s, job.estimate_s)
    return job.run_s, job.estimate_s


def of_trace(
    jobs: Iterable[TraceJob],
    policy: Policy,
    overrun: Overrun = Overrun.KILL,
    elastic: Elastic = RIGID,
    processors: int = 0,
) -> list[Submission]:
    """Convert a trace's jobs: users are user1, user2, ..., groups group1, ...; any free slots will do.

    A job goes to the queue that has its number in the trace (queue3, or just 3), else to the default queue; an elastic
    one to the queue ``elastic`` if there is one.

    Args:
        processors: of the machine; elastic jobs grow no further.
    """
    maker = _Maker(policy)
    made = []
    for job in jobs:
        run, estimate = times_of(job, overrun)
        most = min(2 * job.processors, processors) if elastic.takes(job.number) else 0
        new = NewJob(0, maker.shared(job, estimate, most), b"", b"", b"")
        work = float(run * job.processors) if most else 0.0
        made.append(Submission(job.number, job.submit_s, SubmitJob(new, maker.caller(job.user)), {0: run}, work))
    return made


class _Maker:
    """Builder of shared objects, each once."""

    def __init__(self, policy: Policy) -> None:
        self._default = policy.default_queue
        self._names = {queue.name for queue in policy.queues}
        self._kinds: dict[tuple[int, int, str, int, int, int], Shared] = {}
        self._requests: dict[tuple[int, int], Request] = {}
        self._queues: dict[int, str] = {}
        self._callers: dict[int, Caller] = {}

    def caller(self, user: int) -> Caller:
        known = self._callers.get(user)
        if known is None:
            known = self._callers[user] = Caller(f"user{user}", user)
        return known

    def shared(self, job: TraceJob, estimate_s: int, most: int = 0) -> Shared:
        """Shared facts of the job; ``most`` slots if it is elastic, else 0."""
        queue = ELASTIC_QUEUE if most and ELASTIC_QUEUE in self._names else self._queue(job.queue)
        kind = (job.user, job.group, queue, job.processors, estimate_s, most)
        known = self._kinds.get(kind)
        if known is None:
            request = self._request(job.processors, most)
            estimate_s *= 2 if most else 1  # at its least size
            known = self._kinds[kind] = Shared(
                f"user{job.user}", job.user, job.group, queue, "default", request, run_limit_s=estimate_s
            )
        return known

    def _request(self, slots: int, most: int) -> Request:
        known = self._requests.get((slots, most))
        if known is None:
            role = RoleRequest(tasks_min=slots, tasks_max=slots)
            if most:
                role = RoleRequest(tasks_min=(slots + 1) // 2, tasks_max=most, resizable=True)
            known = self._requests[slots, most] = Request((role,))
        return known

    def _queue(self, number: int) -> str:
        known = self._queues.get(number)
        if known is None:
            names = (f"queue{number}", str(number))
            known = self._queues[number] = next((name for name in names if name in self._names), self._default)
        return known
