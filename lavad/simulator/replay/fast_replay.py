"""Replay without preemption or requeue, as under the textbook policies: a faster form of the same schedule.

Agent reports between the start and the end of an attempt then change nothing and are left out; they are most of a
replay's time. Each job is one submission, one start and one end (a property test compares the schedules).
"""

import heapq

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.apply.allocate import give_back_all
from lavad.core.apply.events import apply_event
from lavad.core.model import Key
from lavad.core.passes import slice_pass
from lavad.core.step import step
from lavad.simulator.replay.replay import SLICE_STEPS, Replay


class BriefReplay(Replay):
    """Replay of submissions without agents' answers."""

    def _play(self) -> float:
        arrivals, at, ends, now = self._submissions, 0, self._ends, 0.0
        arrival = arrivals[0].at if arrivals else None
        while ends or arrival is not None:
            now = ends[0][0] if arrival is None or (ends and ends[0][0] < arrival) else arrival
            while ends and ends[0][0] == now:
                self._end(heapq.heappop(ends)[2], now)
            while arrival == now:
                self._submit(at, now)
                at += 1
                arrival = arrivals[at].at if at < len(arrivals) else None
            if self.worklist.has_work(self.cluster, now):
                self._schedule(now)
        return now

    def _schedule(self, now: float) -> None:
        cluster, worklist, is_complete = self.cluster, self.worklist, False
        while not is_complete:
            plan = slice_pass(cluster, worklist, SLICE_STEPS, now)
            is_complete = plan.is_complete
            if not plan.is_empty:
                outcome = step(cluster, c.ApplyPlan(plan), now, has_agents=False)
                assert not outcome.reply, "parts of a fresh plan do not hold"
                for event in outcome.events:
                    if type(event) is e.AttemptDispatched:
                        self._launch(event, now)

    def _launch(self, event: e.AttemptDispatched, now: float) -> None:
        """Start the attempt; a parallel job starts when all hosts have answered."""
        key, allocation = event.key, event.allocation
        place, until = self._note_start(key, allocation, now)
        heapq.heappush(self._ends, (until, place, key))
        if len(allocation) > 1:
            apply_event(self.cluster, e.AttemptLaunched(now, key))

    def _end(self, key: Key, now: float) -> None:
        """Report the end of the job by its lead host and the release by all hosts."""
        allocation = self.cluster.attempts[key].allocation
        is_gang = len(allocation) > 1
        self._do(c.ReportFinished(allocation[0].host, key, 0, now, also_released=not is_gang), now)
        if is_gang:
            give_back_all(self.cluster, key)
        self._note_end(now)

    def _do(self, command: c.Command, now: float) -> object:
        return step(self.cluster, command, now, has_agents=False).reply
