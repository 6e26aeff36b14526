"""A trace through the master's own core in virtual time: the event heap, and agents that never fail and take no time.

Invariants: at each moment first everything that ends, then everything that arrives, then one scheduling pass; ``step``
decides everything; the same trace under the same policy gives the same schedule. What the other hosts of a parallel job
report (staged, released) is applied as what it always leads to here.
"""

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from lavad.core import commands as c
from lavad.core.apply import give_back_all
from lavad.core.cluster import Cluster
from lavad.core.events import AttemptLaunched, NewJob
from lavad.core.model import Allocation, HostFacts, Key, Request, RoleRequest, Shared
from lavad.core.policy import Policy
from lavad.core.reasons import Refused
from lavad.core.scheduling.cycle import Agenda, slice_pass
from lavad.core.step import step
from lavad.simulator.report import Ran
from lavad.simulator.swf import TraceJob

SLICE_STEPS = 1_000_000  # nobody waits for a reply between slices here
TICK_EVERY = 1000  # ends between ticks, which let the cluster forget what has ended


_NOBODY = c.Caller("trace", 0)


class Overrun(Enum):
    """What becomes of a job that would run past its estimate."""

    KILL = "kill"
    EXTEND = "extend"
    RUN_ON = "runon"


@dataclass(frozen=True, slots=True)
class Machine:
    """Equal hosts."""

    hosts: int
    slots: int

    @property
    def processors(self) -> int:
        return self.hosts * self.slots


class StuckError(Exception):
    """Jobs are left that will never start; the message says how many."""


def times_of(job: TraceJob, overrun: Overrun) -> tuple[int, int]:
    """(how long it will run, what the scheduler is told)."""
    if overrun is Overrun.KILL:
        return min(job.run_s, job.estimate_s), job.estimate_s
    if overrun is Overrun.EXTEND:
        return job.run_s, max(job.run_s, job.estimate_s)
    return job.run_s, job.estimate_s


class Replay:
    """One trace on one machine. ``refused`` counts jobs that the queue did not take, by its reason."""

    def __init__(
        self,
        jobs: Sequence[TraceJob],
        machine: Machine,
        policy: Policy,
        overrun: Overrun = Overrun.KILL,
    ) -> None:
        self.refused: Counter[str] = Counter()
        self.cluster = Cluster(policy)
        self.agenda = Agenda()
        self._jobs = jobs
        self._machine = machine
        self._starts: dict[int, int] = {}  # by place in the trace
        self._runs: dict[int, int] = {}
        self._overrun = overrun
        self._queue = policy.default_queue
        self._ends: list[tuple[int, int, Key, Allocation]] = []  # (when, number in the trace, attempt, where)
        self._numbers: dict[int, int] = {}  # the cluster's job -> place in the trace
        self._kinds: dict[tuple[int, int, int, int], Shared] = {}
        self._requests: dict[int, Request] = {}
        self._ended = 0

    def run(self) -> list[Ran]:
        """From the first arrival to the last end; the jobs in the order of the trace.

        Raises:
            StuckError: jobs are left that will never start.
        """
        self._join_hosts(self._jobs[0].submit_s if self._jobs else 0)
        arrivals, at = self._jobs, 0
        while at < len(arrivals) or self._ends:
            now = self._next_moment(at)
            while self._ends and self._ends[0][0] == now:
                self._end(now)
            while at < len(arrivals) and arrivals[at].submit_s == now:
                self._submit(at, now)
                at += 1
            self._schedule(now)
        return self._ran()

    def _ran(self) -> list[Ran]:
        if self._numbers:
            raise StuckError(f"{len(self._numbers)} jobs can never start on this machine under this policy")
        return [
            Ran(job.number, job.submit_s, self._starts[at], self._runs[at], job.processors)
            for at, job in enumerate(self._jobs)
            if at in self._starts
        ]

    def _next_moment(self, at: int) -> int:
        if at == len(self._jobs):
            return self._ends[0][0]
        arrival = self._jobs[at].submit_s
        return min(arrival, self._ends[0][0]) if self._ends else arrival

    def _join_hosts(self, now: int) -> None:
        for number in range(self._machine.hosts):
            facts = HostFacts(f"n{number:05}", self._machine.slots)
            step(self.cluster, c.AgentHello(facts, 1), now, has_agents=False)

    def _submit(self, at: int, now: int) -> None:
        job = self._jobs[at]
        run, estimate = times_of(job, self._overrun)
        submit = c.SubmitJob(NewJob(0, self._shared(job, estimate), b"", b"", b""), _NOBODY)
        try:
            reply = step(self.cluster, submit, now, has_agents=False).reply
        except Refused as refusal:
            self.refused[str(refusal)] += 1
            return
        self._numbers[reply.job] = at
        self._runs[at] = run

    def _shared(self, job: TraceJob, estimate_s: int) -> Shared:
        kind = (job.user, job.group, job.processors, estimate_s)
        known = self._kinds.get(kind)
        if known is None:
            user, request = f"user{job.user}", self._request(job.processors)
            known = Shared(user, job.user, job.group, self._queue, "default", request, run_limit_s=estimate_s)
            self._kinds[kind] = known
        return known

    def _request(self, slots: int) -> Request:
        known = self._requests.get(slots)
        if known is None:
            known = self._requests[slots] = Request((RoleRequest(tasks_min=slots, tasks_max=slots),))
        return known

    def _schedule(self, now: int) -> None:
        is_complete = not self.agenda.has_work(self.cluster, now)
        while not is_complete:
            plan = slice_pass(self.cluster, self.agenda, SLICE_STEPS, now)
            is_complete = plan.is_complete
            if plan.starts:
                dropped = step(self.cluster, c.ApplyPlan(plan), now, has_agents=False).reply
                assert not dropped, f"{dropped} starts of a fresh plan do not hold"
            for start in plan.starts:
                number = self._numbers[start.job]
                self._starts[number] = now
                end = now + self._runs[number]
                key = Key(start.job, start.index, 1)
                heapq.heappush(self._ends, (end, number, key, start.allocation))
                if len(start.allocation) > 1:
                    self.cluster.apply(AttemptLaunched(now, key))

    def _end(self, now: int) -> None:
        """An agent that stages, starts and clears in no time tells everything in its last report."""
        _, _, key, allocation = heapq.heappop(self._ends)
        del self._numbers[key.job]
        lead = allocation[0].host
        step(self.cluster, c.ReportFinished(lead, key, 0, now, also_released=True), now, has_agents=False)
        if len(allocation) > 1:
            give_back_all(self.cluster, key)
        self._ended += 1
        if self._ended % TICK_EVERY == 0:
            step(self.cluster, c.Tick(), now, has_agents=False)
