"""Builders of domain values for tests: a test gives only the fields that matter to it.

``Story`` holds a cluster and a clock, with the operations of tests: submit, plan, report, tick. It checks the
invariants after every step.
"""

from collections.abc import Generator
from dataclasses import replace
from typing import Any, TypeVar

from lavad.core import commands as c
from lavad.core import invariants
from lavad.core.cluster import Cluster
from lavad.core.decide.jobs.reorder import Reordered
from lavad.core.decide.jobs.submit import Submitted
from lavad.core.events import Event, NewJob
from lavad.core.model import HostFacts, JobState, Key, Launch, Request, RoleRequest, Shared, SpecialOptions, pack_text
from lavad.core.model.advance_reservation import AdvanceReservation, ReservationKind, ReservationTimes
from lavad.core.model.policy import Policy
from lavad.core.model.ranges import Ranges
from lavad.core.notices import RevokeOrder
from lavad.core.orders import Order
from lavad.core.passes import slice_pass
from lavad.core.scheduling.worklist import Worklist
from lavad.core.state.records import ArrayRecord, Job
from lavad.core.step import Outcome, step

ROOT = c.Caller("root", 0, is_administrator=True)
ANN = c.Caller("ann", 1000)
BOB = c.Caller("bob", 1001)
WITH_PRIORITIES = Policy(user_priority_max=10)  # the default user priority is 5
BEGIN = 1_000_000.0
Answer = TypeVar("Answer")
SLICES_MAX = 2000  # of one pass; more means that it makes no progress


def in_one_go(work: Generator[None, None, Answer]) -> Answer:
    """The value of work that comes in pieces."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


def a_host(name: str = "n1", slots: int = 4, memory_mib: int = 8000, gpus: int = 0, **facts: Any) -> HostFacts:
    """Host facts as its agent reports them."""
    return HostFacts(name, slots, memory_mib, gpus, **facts)


def a_role(slots: int = 1, **role: Any) -> RoleRequest:
    """One role; ``slots`` is its number of tasks unless ``tasks_min`` and ``tasks_max`` are given."""
    return RoleRequest(**{"tasks_min": slots, "tasks_max": slots, **role})


def a_job(
    slots: int = 1,
    caller: c.Caller = ANN,
    queue: str = "normal",
    array: str = "",
    limit: int = 0,
    hosts: tuple[str, ...] = (),
    exclusive: bool = False,
    rerunnable: bool = False,
    hold: bool = False,
    priority: int = 0,
    request_id: bytes = b"",
    name: str = "",
    roles: tuple[RoleRequest, ...] = (),
    run_limit_s: int = 0,
    dependency: str = "",
    begin_at: float = 0.0,
    terminate_at: float = 0.0,
    ends_orphan: bool = False,
    requeue: str = "",
    project: str = "default",
    request: Request | None = None,
    reservation: str = "",
    service_class: str = "",
    interactive: str = "",
    job_group: str = "",
    application: str = "",
    command: str = "",
    **role: Any,
) -> NewJob:
    """Submission. ``array`` is an index list such as "1-10"; other arguments are those of its only role."""
    if request is None:
        request = Request(roles or (a_role(slots, **role),), hosts, exclusive)
    elif hosts or exclusive:
        request = replace(request, hosts=hosts, exclusive=exclusive)
    if reservation:
        request = replace(request, reservation=reservation)
    if service_class:
        request = replace(request, service_class=service_class)
    shared = Shared(caller.user, caller.uid, caller.uid, queue, project, request, rerunnable=rerunnable)
    shared = replace(shared, run_limit_s=run_limit_s, terminate_at=terminate_at)
    indices = Ranges.parse(array).parts()
    special = SpecialOptions(requeue_exit_values=requeue, interactive=interactive)
    shared = replace(shared, special=special, job_group=job_group, application=application)
    text = pack_text(name=name, command=command)
    terms = (dependency, begin_at, ends_orphan)
    return NewJob(0, shared, text, b"", request_id, hold, indices, limit, priority, *terms)


def each(slots: int = 2, **job: Any) -> NewJob:
    """Job whose command is started on every host, one task on each."""
    return a_job(slots, **{"ptile": 1, "launch": Launch.EACH, **job})


class Story:
    """A cluster with its hosts connected, whose time passes only by calls of the test."""

    def __init__(self, *hosts: HostFacts, policy: Policy | None = None) -> None:
        self.now = BEGIN
        self.cluster = Cluster(policy or Policy())
        self.worklist = Worklist()
        self.events: list[Event] = []
        self.incarnations: dict[str, int] = {}
        for facts in hosts:
            self.join(facts)

    # -- commands

    def do(self, command: c.Command) -> Outcome:
        """One step, with the invariants checked after it."""
        outcome = step(self.cluster, command, self.now)
        self.events.extend(outcome.events)
        invariants.check(self.cluster)
        assert not self.cluster.task_news, "something that happened to tasks was not decided upon"
        return outcome

    def join(self, facts: HostFacts, held: tuple[c.HeldAttempt, ...] = ()) -> list[Order]:
        """Connect the host's agent; the orders it receives."""
        incarnation = self.incarnations[facts.name] = self.incarnations.get(facts.name, 0) + 1
        return self.do(c.AgentHello(facts, incarnation, held)).orders

    def back(self, name: str, *held: c.HeldAttempt) -> list[Order]:
        """A host that is known opens a new session, holding these attempts; that it stays goes without saying."""
        orders = self.join(self.cluster.hosts[name].facts, held)
        return [one for one in orders if one != RevokeOrder(name, -1.0)]

    def submit(self, job: NewJob) -> int:
        """The number of the new job."""
        reply = self.do(c.SubmitJob(job, c.Caller(job.shared.user, job.shared.uid))).reply
        assert isinstance(reply, Submitted)
        return reply.job

    def kill(self, job: int, indices: str = "", caller: c.Caller = ANN, remove: bool = False) -> Outcome:
        """bkill."""
        return self.do(c.KillJob(self.target(job, indices), caller, remove))

    def reserve(
        self,
        slots: int = 0,
        begin: float = 0.0,
        end: float = 3600.0,
        hosts: tuple[str, ...] = (),
        users: tuple[str, ...] = ("ann",),
        caller: c.Caller = ROOT,
        select: str = "",
        **words: Any,
    ) -> AdvanceReservation:
        """brsvadd, with times in seconds from now; ``windows`` make it a recurring one."""
        windows = words.pop("windows", ())
        times = ReservationTimes(windows=windows) if windows else ReservationTimes(self.now + begin, self.now + end)
        kind = words.pop("kind", ReservationKind.USER)
        wanted = AdvanceReservation(words.pop("name", ""), kind, users, (), times, **words)
        reply = self.do(c.AddReservation(wanted, slots, hosts, select, caller)).reply
        assert isinstance(reply, AdvanceReservation)
        return reply

    def move(self, job: int, place: int, caller: c.Caller = ANN) -> int:
        """btop or, with a negative place, bbot; the place reached."""
        reply = self.do(c.MoveJob(c.Target(job), place, caller)).reply
        assert isinstance(reply, Reordered)
        return reply.place

    @staticmethod
    def target(job: int, indices: str = "") -> c.Target:
        """A job, or these elements of it."""
        return c.Target(job, Ranges.parse(indices) if indices else None)

    # -- time and scheduling

    def wait(self, seconds: float) -> Outcome:
        """Let time pass without reports; then fire due timers."""
        self.now += seconds
        return self.do(c.Tick())

    def hear(self, *names: str) -> None:
        """Note a report of these hosts."""
        for name in names:
            if self.cluster.heard(name, self.now):
                self.do(c.AgentHeard(name))

    def plan(self, steps: int = 100_000) -> list[Order]:
        """One whole pass, slice by slice; the orders it leads to."""
        orders: list[Order] = []
        for _ in range(SLICES_MAX):
            plan = slice_pass(self.cluster, self.worklist, steps, self.now)
            orders += self.do(c.ApplyPlan(plan)).orders
            if plan.is_complete:
                return orders
        raise AssertionError(f"a pass has not ended after {SLICES_MAX} slices")

    def run(self, job: NewJob) -> Key:
        """Submit, dispatch, stage and start a job; its key."""
        number = self.submit(job)
        self.plan()
        key = self.key(number)
        attempt = self.cluster.attempts[key]
        if not attempt.launched:
            for share in attempt.allocation:
                self.staged(share.host, key)
        self.started(attempt.lead, key)
        return key

    # -- reports

    def staged(self, host: str, key: Key) -> Outcome:
        """The host is ready for the attempt."""
        return self.do(c.ReportStaged(host, key))

    def started(self, host: str, key: Key) -> Outcome:
        """The command runs there."""
        return self.do(c.ReportStarted(host, key, 4711, self.now))

    def finished(self, host: str, key: Key, status: int = 0, released: bool = True) -> Outcome:
        """The command has ended there."""
        return self.do(c.ReportFinished(host, key, status, self.now, also_released=released))

    def refused(self, host: str, key: Key, host_fault: bool = False) -> Outcome:
        """The order was not carried out."""
        return self.do(c.ReportRefused(host, key, "no", host_fault))

    def released(self, host: str, key: Key) -> Outcome:
        """Report that no process of the attempt is left there."""
        return self.do(c.ReportReleased(host, key))

    def runs_there(self, host: str, key: Key) -> c.HeldAttempt:
        """Entry of a hello for a running attempt."""
        return c.HeldAttempt(key, c.ReportStarted(host, key, 4711, self.now), True)

    # -- looking

    def key(self, job: int, index: int = 0) -> Key:
        """Key of the newest attempt."""
        found = self.cluster.element(job, index)
        assert found is not None
        return found.key

    def state(self, job: int, index: int = 0) -> JobState | None:
        """The state of a job or an element."""
        return self.cluster.present_state(job, index)

    def job(self, job: int, index: int = 0) -> Job:
        """A plain job or a live or lately ended element."""
        found = self.cluster.element(job, index)
        assert found is not None
        return found

    def array(self, job: int) -> ArrayRecord:
        """An array."""
        found = self.cluster.jobs[job]
        assert isinstance(found, ArrayRecord)
        return found

    def where(self, job: int, index: int = 0) -> list[str]:
        """The hosts a job holds, the lead first."""
        attempt = self.job(job, index).attempt
        return [] if attempt is None else [share.host for share in attempt.allocation]


def a_cluster(*hosts: HostFacts, policy: Policy | None = None) -> Story:
    """Story with these hosts connected; by default two of four slots."""
    return Story(*(hosts or (a_host("n1"), a_host("n2"))), policy=policy)
