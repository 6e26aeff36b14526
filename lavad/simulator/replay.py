"""Submissions through the master's own core in virtual time: the event heap, and agents that never fail and take no
time.

Invariants: at each moment first everything that ends, then everything that arrives, then one scheduling pass; ``step``
decides everything; the same submissions under the same policy give the same schedule. What the other hosts of a
parallel job report (staged, released) is applied as what it always leads to here.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence

from lavad.core import commands as c
from lavad.core.apply import give_back_all
from lavad.core.cluster import Cluster
from lavad.core.events import AttemptLaunched
from lavad.core.model import Allocation, HostFacts, Key
from lavad.core.plan import Start
from lavad.core.policy import Policy
from lavad.core.reasons import Refused
from lavad.core.scheduling.cycle import Agenda, slice_pass
from lavad.core.step import step
from lavad.simulator.report import Ran
from lavad.simulator.workload import Submission

SLICE_STEPS = 1_000_000  # nobody waits for a reply between slices here
TICK_EVERY = 1000  # ends between ticks, which let the cluster forget what has ended


class StuckError(Exception):
    """Jobs are left that will never start; the message says how many."""


class Replay:
    """Submissions on some hosts. ``refused`` counts jobs that the queues did not take, by the reason they gave."""

    def __init__(self, submissions: Sequence[Submission], hosts: Iterable[HostFacts], policy: Policy) -> None:
        self.refused: Counter[str] = Counter()
        self.cluster = Cluster(policy)
        self.agenda = Agenda()
        self._submissions = submissions
        self._hosts = hosts
        self._ran: list[tuple[int, Ran]] = []
        self._ends: list[tuple[float, int, Key, Allocation]] = []  # (when, place of the submission, attempt, where)
        self._places: dict[int, int] = {}  # the cluster's job -> place of its submission
        self._left = 0  # jobs and elements that were taken and have not started
        self._ended = 0

    def run(self) -> list[Ran]:
        """From the first arrival to the last end; what ran, in the order in which it was submitted.

        Raises:
            StuckError: jobs are left that will never start.
        """
        arrivals, at = self._submissions, 0
        self._join_hosts(arrivals[0].at if arrivals else 0)
        while at < len(arrivals) or self._ends:
            now = self._next_moment(at)
            while self._ends and self._ends[0][0] == now:
                self._end(now)
            while at < len(arrivals) and arrivals[at].at == now:
                self._submit(at, now)
                at += 1
            self._schedule(now)
        if self._left:
            raise StuckError(f"{self._left} jobs can never start on this machine under this policy")
        return [ran for _, ran in sorted(self._ran, key=lambda entry: (entry[0], entry[1].index))]

    def _next_moment(self, at: int) -> float:
        if at == len(self._submissions):
            return self._ends[0][0]
        arrival = self._submissions[at].at
        return min(arrival, self._ends[0][0]) if self._ends else arrival

    def _join_hosts(self, now: float) -> None:
        for facts in self._hosts:
            step(self.cluster, c.AgentHello(facts, 1), now, has_agents=False)

    def _submit(self, at: int, now: float) -> None:
        _, _, job, runs = self._submissions[at]
        submit = c.SubmitJob(job, c.Caller(job.shared.user, job.shared.uid))
        try:
            reply = step(self.cluster, submit, now, has_agents=False).reply
        except Refused as refusal:
            self.refused[str(refusal)] += len(runs)
            return
        self._places[reply.job] = at
        self._left += len(runs)

    def _schedule(self, now: float) -> None:
        is_complete = not self.agenda.has_work(self.cluster, now)
        while not is_complete:
            plan = slice_pass(self.cluster, self.agenda, SLICE_STEPS, now)
            is_complete = plan.is_complete
            if plan.starts:
                dropped = step(self.cluster, c.ApplyPlan(plan), now, has_agents=False).reply
                assert not dropped, f"{dropped} starts of a fresh plan do not hold"
            for start in plan.starts:
                self._start(start, now)

    def _start(self, start: Start, now: float) -> None:
        place, allocation = self._places[start.job], start.allocation
        number, submitted, _, runs = self._submissions[place]
        run_s = runs[start.index]
        slots = allocation[0].slots if len(allocation) == 1 else sum([share.slots for share in allocation])
        self._ran.append((place, Ran(number, submitted, now, run_s, slots, start.index)))
        self._left -= 1
        key = Key(start.job, start.index, 1)
        heapq.heappush(self._ends, (now + run_s, place, key, allocation))
        if len(allocation) > 1:
            self.cluster.apply(AttemptLaunched(now, key))

    def _end(self, now: float) -> None:
        """An agent that stages, starts and clears in no time tells everything in its last report."""
        _, _, key, allocation = heapq.heappop(self._ends)
        lead = allocation[0].host
        step(self.cluster, c.ReportFinished(lead, key, 0, now, also_released=True), now, has_agents=False)
        if len(allocation) > 1:
            give_back_all(self.cluster, key)
        self._ended += 1
        if self._ended % TICK_EVERY == 0:
            step(self.cluster, c.Tick(), now, has_agents=False)
