"""Replay of submissions through the master's own core in virtual time, with agents that never fail and take no time.

Invariants: at each time first all ends, then all arrivals, then one scheduling pass; ``step`` decides everything; the
same submissions under the same policy give the same schedule.
"""

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.model import FINAL, LOAD_INDICES, Allocation, HostFacts, Key
from lavad.core.model.allocation import slots_of
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import NotNow, Refused
from lavad.core.orders import LaunchOrder, Order, ReleaseOrder, ResizeOrder, SignalOrder, StageOrder
from lavad.core.passes import slice_pass
from lavad.core.queries.pending_reasons import explain
from lavad.core.scheduling.worklist import Worklist
from lavad.core.state.limits import UNLIMITED
from lavad.core.state.records import ArrayRecord, Job
from lavad.core.step import step
from lavad.gc_tuning import seldom_collected
from lavad.simulator.replay.report import Ran
from lavad.simulator.replay.workload import Submission

SLICE_STEPS = 1_000_000  # no caller waits for a reply between slices here
TICK_EVERY = 1000  # ends between ticks, which let the cluster forget ended jobs
RETRY_S = 60.0  # interval of bsub's retries at MAX_PEND_JOBS
LOOK_S = 60.0  # interval of passes under a policy that follows the clock, while jobs are pending
PATIENCE_S = 15 * 86_400.0  # time windows recur weekly: a job that has not started after two of them never will
STUCK_NAMED_MAX = 3  # jobs named in an error message
STOP_SIGNALS = (18, 19)  # CONT and STOP, which are simulated from the events
KILLED = 9  # as an exit status
IDLE_MIN = 10_000.0  # minutes of keyboard idle time


class StuckError(Exception):
    """Jobs left that will never start; the message says how many, and why the first of them do not.

    ``places`` are the indices of their submissions, ``reason`` is why the first one does not start.
    """

    def __init__(self, message: str, places: Sequence[int], reason: str) -> None:
        super().__init__(message)
        self.places, self.reason = places, reason


@dataclass(slots=True)
class _Run:
    """A running or stopped attempt; a stopped one has ``ends_at`` 0 and its remaining run time in ``left_s``.

    Of an elastic one ``slots`` count since ``sized_at``.
    """

    key: Key
    lead: str
    ends_at: float
    left_s: float = 0.0
    stopped_at: float = 0.0
    stopped_s: float = 0.0
    slots: int = 0
    sized_at: float = 0.0


class Replay:
    """Replay of submissions on some hosts. ``refused`` counts rejected jobs by the reason."""

    def __init__(self, submissions: Sequence[Submission], hosts: Iterable[HostFacts], policy: Policy) -> None:
        self.refused: Counter[str] = Counter()
        self.cluster = Cluster(policy)
        self.worklist = Worklist()
        self._submissions, self._began_at = _from_zero(submissions)
        self._hosts = hosts
        self._follows_clock = _follows_clock(policy)
        self._ran: dict[tuple[int, int], Ran] = {}  # by index of the submission and of the element
        self._ends: list[tuple[float, int, Key]] = []  # (time, index of the submission, attempt)
        self._running: dict[Key, _Run] = {}
        self._places: dict[int, int] = {}  # the cluster's job -> index of its submission
        self._put_off: list[tuple[float, int]] = []  # submissions to repeat: (time, index)
        self._work: dict[Key, float] = {}  # left of each running elastic attempt, in slots times seconds
        self._left = 0  # accepted jobs and elements that have not ended
        self._ended = 0
        self._last_change = self._submissions[0].at if submissions else 0.0  # reservations recur for ever

    def run(self) -> list[Ran]:
        """Run from the first arrival to the last end; return what ran, in the order of submission.

        Raises:
            StuckError: jobs are left that will never start.
        """
        for facts in self._hosts:
            step(self.cluster, c.AgentHello(facts, 1), self._last_change, has_agents=False)
            self.cluster.observe_load(facts.name, _idle(facts))
        with seldom_collected():
            now = self._play()
        left = self._left + sum(len(self._submissions[place].runs) for _, place in self._put_off)
        if left:
            raise self._complaint(left, now)
        ran = [self._ran[key] for key in sorted(self._ran)]
        if not self._began_at:
            return ran
        return [_later(one, self._began_at) for one in ran]

    def _play(self) -> float:
        """Process all events; return the time of the last one."""
        arrivals, at, now = self._submissions, 0, self._last_change
        while (moment := self._next_moment(at, now)) is not None:
            now = moment
            while self._ends and self._ends[0][0] == now:
                self._end_next(now)
            while self._put_off and self._put_off[0][0] <= now:
                self._submit(heapq.heappop(self._put_off)[1], now)
            while at < len(arrivals) and arrivals[at].at == now:
                self._submit(at, now)
                at += 1
            self._do(c.Tick(), now)
            self._schedule(now)
        return now

    def _complaint(self, left: int, now: float) -> StuckError:
        """Build the error: the number of jobs left, and why the first of them can't start."""
        stuck = list(islice(self._stuck(now), STUCK_NAMED_MAX))
        told = [f"job {label}, of {slots} slots: {reason}" for label, slots, reason in stuck]
        more = f"; and {left - len(told)} more" if left > len(told) else ""
        noun = "job" if left == 1 else "jobs"
        reasons = f": {'; '.join(told)}{more}" if told else ""
        message = f"{left} {noun} can never start on this machine under this policy{reasons}"
        living = {self._places[number] for number, record in self.cluster.jobs.items() if _lives(record)}
        places = sorted(living | {place for _, place in self._put_off})
        return StuckError(message, places, stuck[0][2] if stuck else "it waits, or is stopped, for ever")

    def _stuck(self, now: float) -> Iterator[tuple[str, int, str]]:
        """Yield name, slots and first pending reason of pending jobs."""
        for number, record in self.cluster.jobs.items():
            for index in record.pending if isinstance(record, ArrayRecord) else (0,):
                why = explain(self.cluster, record, index, now, self.worklist.reservation_table)
                if why:
                    name = self._submissions[self._places[number]].number
                    label = f"{name}[{index}]" if index else str(name)
                    advice = f" ({why[0].advice})" if why[0].advice else ""
                    yield label, record.shared.request.slots_min, f"{why[0].text}{advice}"

    # -- time ---------------------------------------------------------------------------------------------------------

    def _next_moment(self, at: int, now: float) -> float | None:
        """Return the time of the next event; None at the end."""
        ends = self._ends
        arrival = self._submissions[at].at if at < len(self._submissions) else None
        while ends and ends[0][2] not in self._running:
            heapq.heappop(ends)
        return min(self._moments(arrival, now), default=None)

    def _moments(self, arrival: float | None, now: float) -> Iterator[float]:
        if arrival is not None:
            yield arrival
        if self._ends:
            yield self._ends[0][0]
        if self._put_off and now - self._last_change < PATIENCE_S:
            yield max(now, self._put_off[0][0])
        if self._left:
            if self.cluster.alarms:
                yield max(now, self.cluster.alarms[0][0])
            if self.cluster.limits.rest_ends_at < UNLIMITED:
                yield max(now, self.cluster.limits.rest_ends_at)
            if self._follows_clock and now - self._last_change < PATIENCE_S:
                yield (now // LOOK_S + 1) * LOOK_S

    # -- events -------------------------------------------------------------------------------------------------------

    def _submit(self, at: int, now: float) -> None:
        _, _, command, runs, _ = self._submissions[at]
        try:
            reply = self._do(command, now)
        except NotNow:
            heapq.heappush(self._put_off, (now + RETRY_S, at))
            return
        except Refused as refusal:
            self.refused[str(refusal)] += len(runs)
            return
        self._places[reply.job] = at
        self._left += len(runs)

    def _schedule(self, now: float) -> None:
        is_complete = not self.worklist.has_work(self.cluster, now)
        while not is_complete:
            plan = slice_pass(self.cluster, self.worklist, SLICE_STEPS, now)
            is_complete = plan.is_complete
            if not plan.is_empty:
                dropped = self._do(c.ApplyPlan(plan), now)
                assert not dropped, f"{dropped} parts of a fresh plan do not hold"

    def _end_next(self, now: float) -> None:
        """Report the next end by the job's hosts, and process its consequences."""
        key = heapq.heappop(self._ends)[2]
        run = self._running.get(key)
        if run is None or run.ends_at != now:
            return  # it was stopped meanwhile, or ended early
        del self._running[key]
        if key in self._work:
            self._note_elastic_end(key, now)
        self._do(c.ReportFinished(run.lead, key, 0, now, also_released=True), now)
        self._note_end(now)

    def _note_end(self, now: float) -> None:
        self._left -= 1
        self._last_change = now
        self._ended += 1
        if self._ended % TICK_EVERY == 0:
            self._do(c.Tick(), now)

    def _do(self, command: c.Command, now: float) -> Any:
        """Run a step and the agents' immediate answers to its orders; return the reply to the command."""
        outcome = step(self.cluster, command, now)
        reply, answers = outcome.reply, deque(self._answers(outcome.events, outcome.orders, now))
        while answers:
            outcome = step(self.cluster, answers.popleft(), now)
            answers.extend(self._answers(outcome.events, outcome.orders, now))
        return reply

    # -- the agents ---------------------------------------------------------------------------------------------------

    def _answers(self, events: Iterable[e.Event], orders: Iterable[Order], now: float) -> Iterator[c.Command]:
        """Yield the agents' answers to orders; suspend and resume jobs as the events say."""
        for event in events:
            if isinstance(event, e.JobSuspended):
                self._stop(event.key, now)
            elif isinstance(event, e.JobResumed):
                self._go_on(event.key, now)
            elif isinstance(event, e.AttemptResized):
                self._resize(event.key, slots_of(event.allocation), now)
        for order in orders:
            match order:
                case StageOrder(launch_now=True):
                    yield c.ReportStarted(self._start(order.key, now), order.key, 1, now)
                case StageOrder():
                    yield c.ReportStaged(order.host, order.key)
                case LaunchOrder() if order.host == self.cluster.attempts[order.key].lead:
                    yield c.ReportStarted(self._start(order.key, now), order.key, 1, now)
                case SignalOrder() if order.signal not in STOP_SIGNALS:
                    yield from self._kill(order, now)
                case ResizeOrder() if order.host == order.allocation[0].host:
                    yield c.ReportResized(order.host, order.key, order.version)
                case ReleaseOrder():
                    yield c.ReportReleased(order.host, order.key)

    def _start(self, key: Key, now: float) -> str:
        """Start the attempt; return its lead host."""
        allocation = self.cluster.attempts[key].allocation
        place, until = self._note_start(key, allocation, now)
        run = self._running[key] = _Run(key, allocation[0].host, until, slots=slots_of(allocation), sized_at=now)
        work = self._submissions[place].work
        if work:
            self._work[key] = work
            until = run.ends_at = now + work / run.slots
        heapq.heappush(self._ends, (until, place, key))
        return allocation[0].host

    def _note_start(self, key: Key, allocation: Allocation, now: float) -> tuple[int, float]:
        """Record the start; return the index of its submission and its end time unless it is stopped."""
        place, index = self._places[key.job], key.index
        number, submitted, _, runs, _ = self._submissions[place]
        run_s = runs[index]
        self._ran[place, index] = Ran(number, submitted, now, run_s, slots_of(allocation), index)
        self._last_change = now
        return place, now + run_s

    def _kill(self, order: SignalOrder, now: float) -> Iterator[c.Command]:
        """End the job before its time, to be requeued; its other hosts get a release order."""
        run = self._running.get(order.key)
        if run is not None and run.lead == order.host:
            del self._running[order.key]
            self._work.pop(order.key, None)
            yield c.ReportFinished(run.lead, order.key, KILLED, now, order.reason, also_released=True)

    def _resize(self, key: Key, slots: int, now: float) -> None:
        """Continue an elastic job at another size; one that was stopped has its remaining time at the new size."""
        run, work = self._running.get(key), self._work.get(key)
        if run is None or work is None or slots == run.slots:
            return
        if run.ends_at:
            work = self._work[key] = max(0.0, work - run.slots * (now - run.sized_at))
            run.ends_at = now + work / slots
            heapq.heappush(self._ends, (run.ends_at, self._places[key.job], key))
        else:
            run.left_s *= run.slots / slots
        run.slots, run.sized_at = slots, now

    def _note_elastic_end(self, key: Key, now: float) -> None:
        """Note how long an elastic job has run, whose size has changed meanwhile."""
        del self._work[key]
        place = self._places[key.job]
        ran = self._ran[place, key.index]
        run_s, work = now - ran.start_s - ran.stopped_s, self._submissions[place].work
        self._ran[place, key.index] = ran._replace(run_s=run_s, work=work)

    def _stop(self, key: Key, now: float) -> None:
        run = self._running.get(key)
        if run is not None and run.ends_at:
            run.left_s, run.ends_at, run.stopped_at = run.ends_at - now, 0.0, now
            if key in self._work:
                self._work[key] -= run.slots * (now - run.sized_at)

    def _go_on(self, key: Key, now: float) -> None:
        run = self._running.get(key)
        if run is not None and not run.ends_at:
            place = self._places[key.job]
            run.ends_at, run.stopped_s = now + run.left_s, run.stopped_s + now - run.stopped_at
            run.sized_at = now
            self._ran[place, key.index] = self._ran[place, key.index]._replace(stopped_s=run.stopped_s)
            heapq.heappush(self._ends, (run.ends_at, place, key))


def _from_zero(submissions: Sequence[Submission]) -> tuple[Sequence[Submission], float]:
    """Shift submissions so that none is before time 0, which the core takes for the beginning of all time."""
    first = submissions[0].at if submissions else 0
    if first >= 0:
        return submissions, 0
    return [one._replace(at=one.at - first) for one in submissions], first


def _later(ran: Ran, seconds: float) -> Ran:
    return ran._replace(submit_s=ran.submit_s + seconds, start_s=ran.start_s + seconds)


def _idle(facts: HostFacts) -> list[float]:
    """Return the load of a host that only runs jobs: all memory, swap and /tmp free, and long idle."""
    sizes = {"tmp": facts.tmp_mib, "swp": facts.swap_mib, "mem": facts.memory_mib, "it": IDLE_MIN}
    return [sizes.get(index, 0.0) for index in LOAD_INDICES]


def _lives(record: Job | ArrayRecord) -> bool:
    """Return True if the job, or any element of it, has not ended."""
    return not record.is_over if isinstance(record, ArrayRecord) else record.state not in FINAL


def _follows_clock(policy: Policy) -> bool:
    """Return True if the time of day, or of waiting, alone can let a job start."""
    of_queues = any(
        queue.dispatch_windows or queue.run_windows or queue.preempts or queue.slot_reserve_s for queue in policy.queues
    )
    of_hosts = any(rule.dispatch_windows for rule in policy.host_rules.values())
    return of_queues or of_hosts or any(limit.windows for limit in policy.limits)
