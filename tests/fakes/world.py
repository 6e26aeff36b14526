"""A cluster with a random but lawful life: users submit, kill, stop; agents report, fall silent, come back.

Everything goes through ``step``, as in the master; the seed decides everything.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.jobs.changes.elements import parts_of
from lavad.core.events import Event, NewJob
from lavad.core.model import HostFacts, HostShare, JobState, Key, PostState, Request, RoleRequest, Shared, pack_text
from lavad.core.model.advance_reservation import AdvanceReservation, ReservationKind, ReservationTimes
from lavad.core.model.policy import Policy
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import NotNow, Refused
from lavad.core.model.windows import Window
from lavad.core.plan import Grow, Resize, Start, Starts
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import ArrayRecord, Job
from lavad.core.step import step

ROOT = c.Caller("root", 0, True)
RUNNING = frozenset({JobState.STAGING, JobState.RUN, JobState.USUSP, JobState.SSUSP, JobState.UNKWN})
ENDED = frozenset({JobState.DONE, JobState.EXIT})


def new_job(
    name: str = "job",
    user: str = "alice",
    slots: int = 1,
    indices: tuple[range, ...] = (),
    request_id: bytes = b"",
    queue: str = "normal",
    rerunnable: bool = False,
    hold: bool = False,
    spec: bytes = b"spec",
    limit: int = 0,
    dependency: str = "",
    begin_at: float = 0.0,
    tasks_more: int = 0,
    reservation: str = "",
    job_group: str = "",
) -> NewJob:
    """Submission with only the relevant fields given."""
    role = RoleRequest(tasks_min=slots, tasks_max=slots + tasks_more, resizable=tasks_more > 0)
    request = Request((role,), reservation=reservation)
    shared = Shared(
        user, 1000, 1000, queue, "default", request, from_host="login1", rerunnable=rerunnable, job_group=job_group
    )
    text = pack_text(name=name, command="sleep 1", submit_cwd="$HOME/run", output="out.%J")
    return NewJob(0, shared, text, spec, request_id, hold, indices, limit, 0, dependency, begin_at)


def _may_start(record: Job | ArrayRecord) -> bool:
    return bool(_startable(record)) if isinstance(record, ArrayRecord) else record.may_start


def _startable(array: ArrayRecord) -> list[int]:
    return [*array.pending, *sorted(array.listed)]


@dataclass
class World:
    """A cluster, its clock, and every event so far; ``on_events`` is given those of each step."""

    seed: int
    hosts: int = 4
    now: float = 1_700_000_000.0
    cluster: Cluster = field(init=False)
    events: list[Event] = field(default_factory=list)
    on_events: Callable[[list[Event]], None] | None = None
    has_commands: bool = False  # before and after its jobs, which may fail

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.cluster = Cluster(Policy(clean_period_s=600.0))
        self.incarnation = 0

    def do(self, command: c.Command) -> bool:
        """Carry out one command; False when it was refused."""
        try:
            outcome = step(self.cluster, command, self.now)
        except (Refused, NotNow):
            return False
        self.events += outcome.events
        if self.on_events is not None:
            self.on_events(outcome.events)
        return True

    def join(self, number: int, held: tuple[c.HeldAttempt, ...] = ()) -> None:
        """Connect an agent."""
        self.incarnation += 1
        facts = HostFacts(
            f"n{number:03}", 8, 16_000, gpus=2, resources=frozenset({"mpi", "gpu"}), boot_id="b", keeps_leases=True
        )
        self.do(c.AgentHello(facts, self.incarnation, held))

    def begin(self) -> None:
        """All hosts join."""
        for number in range(self.hosts):
            self.join(number)

    def live(self, steps: int) -> None:
        """Make this number of random events."""
        deeds = (
            [self.submit] * 6
            + [self.start] * 20
            + [self.report] * 40
            + [self.control] * 8
            + [self.change_elements] * 3
            + [self.resize] * 8
            + [self.trouble] * 3
            + [self.return_] * 3
            + [self.reserve] * 2
            + [self.administer, self.pass_time]
        )
        for _ in range(steps):
            self.now += self.random.random()
            self.random.choice(deeds)()

    # -- users -----------------------------------------------------------------------------------------------------

    def submit(self) -> None:
        """A plain job, a parallel one or an array."""
        rng = self.random
        indices = self.random.choice([(), (), (range(1, rng.randint(2, 12)),), (range(1, 20, 3), range(30, 33))])
        job = new_job(
            name=rng.choice(["a", "md_npt", "träumerei\udcff"]),
            user=rng.choice(["alice", "bob"]),
            slots=rng.choice([1, 1, 2, 10, 12]),
            indices=indices,
            request_id=rng.randbytes(16),
            rerunnable=rng.random() < 0.4,
            hold=rng.random() < 0.2,
            spec=rng.randbytes(40),
            limit=rng.choice([0, 0, 2]),
            dependency=self.a_condition(),
            begin_at=self.now + rng.choice([-5.0, 20.0, 200.0]) if rng.random() < 0.1 else 0.0,
            tasks_more=0 if indices else rng.choice([0, 6]),
            reservation=rng.choice(["", *self.cluster.reserved.by_name]),
            job_group=("", "/a", "/a/b", "/c")[len(self.cluster.jobs) % 4],
        )
        self.do(c.SubmitJob(job, c.Caller(job.shared.user, 1000)))

    def a_condition(self) -> str:
        """Mostly none; otherwise a dependency on an existing job."""
        rng = self.random
        if rng.random() < 0.7 or not self.cluster.jobs:
            return ""
        job = rng.choice(list(self.cluster.jobs))
        told = [
            "done({})",
            "ended({})",
            "exit({}, > 0)",
            "!started({})",
            "numdone({}, >= 2)",
            "done({}[*])",
            "done({}[2])",
        ]
        return rng.choice(["{}", "{} || done(a)", "!({})"]).format(rng.choice(told).format(job))

    def reserve(self) -> None:
        """An advance reservation is made, changed, or deleted although jobs may run in it."""
        rng, names = self.random, sorted(self.cluster.reserved.by_name)
        begin = self.now + rng.choice([0, 30, 300])
        if not names or rng.random() < 0.5:
            times = ReservationTimes(begin, begin + rng.choice([20, 200]))
            if rng.random() < 0.2:
                times = ReservationTimes(windows=(Window(0, 5000),), skipped=((begin, begin + 60),))
            kind = rng.choice([ReservationKind.USER, ReservationKind.USER, ReservationKind.SYSTEM])
            wanted = AdvanceReservation("", kind, ("alice", "bob"), (), times, is_open=rng.random() < 0.5)
            self.do(c.AddReservation(wanted, rng.choice([1, 4]), (), "", ROOT))
        elif rng.random() < 0.5:
            self.do(c.RemoveReservation(rng.choice(names), ROOT, is_forced=rng.random() < 0.7))
        else:
            self.do(c.ChangeReservation(rng.choice(names), ROOT, is_open=rng.random() < 0.5, description="träum"))

    def control(self) -> None:
        """bkill, bstop, bresume, bmod of something."""
        jobs = self._live
        if not jobs:
            return
        job = self.random.choice(jobs)
        indices = self.random.choice([None, None, Ranges([range(2, 9)]), Ranges.of(3)])
        if self.cluster.attempts and self.random.random() < 0.6:
            job, index, _ = self.random.choice(list(self.cluster.attempts))
            indices = Ranges.of(index) if index else None
        target = c.Target(job, indices)
        record = self.cluster.jobs[job]
        limit = record.limit if isinstance(record, ArrayRecord) else 0
        fields = frozenset(self.random.choice([("name",), ("dependency",), ("run_limit_s",)]))
        condition = self.a_condition()
        changed = new_job(name="changed", user=record.shared.user, slots=2, limit=limit, dependency=condition)
        changed = changed._replace(shared=replace(changed.shared, run_limit_s=self.random.choice((0, 60, 600))))
        states = frozenset(self.random.choice([RUNNING, ENDED, RUNNING | ENDED]))
        anything = c.Target(self.random.choice(list(self.cluster.jobs)))  # also jobs that have ended
        deed = self.random.choice(["kill", "stop", "stop", "resume", "resume", "remove", "signal", "modify", "requeue"])
        commands: dict[str, c.Command] = {
            "kill": c.KillJob(target, ROOT),
            "remove": c.KillJob(target, ROOT, remove=True),
            "stop": c.StopJob(target, ROOT),
            "resume": c.ResumeJob(target, ROOT),
            "signal": c.SignalJob(target, 10, ROOT),
            "requeue": c.RequeueJob(anything, ROOT, states, hold=self.random.random() < 0.3),
            "modify": c.ModifyJob(target, changed, ROOT, "Job Name <changed>", fields),
        }
        self.do(commands[deed])

    def change_elements(self) -> None:
        """bmod or bswitch of some elements of an array, each part of them as the API gives it; or of all of them."""
        rng = self.random
        arrays = [one for one in self.cluster.jobs.values() if isinstance(one, ArrayRecord) and not one.is_over]
        if not arrays:
            return
        array = rng.choice(arrays)
        named = rng.choice([None, Ranges.of(rng.choice(list(array.indices))), Ranges([range(2, 9)])])
        field = rng.choice(["run_limit_s", "queues", "roles.tasks"])
        queues = [queue.name for queue in self.cluster.policy.queues] or ["normal"]
        changed = new_job(name="own", user=array.shared.user, slots=rng.choice([1, 2]), queue=rng.choice(queues))
        changed = changed._replace(shared=replace(changed.shared, run_limit_s=rng.choice((0, 60, 600))))
        changed = changed._replace(array_limit=array.limit)
        try:
            parts = parts_of(array, named)
        except Refused:
            return
        for indices, _ in parts:
            is_whole = parts[0].indices is None and indices is not None
            target = c.Target(array.id, named if indices is not None else None)
            command = c.ModifyJob(target, changed, ROOT, "", frozenset({field}), elements=indices, is_whole=is_whole)
            self.do(command)

    # -- scheduler -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Dispatch a pending job that fits."""
        waiting = [job for job in self.cluster.jobs.values() if job.id in self._live and _may_start(job)]
        if not waiting:
            return
        record = self.random.choice(waiting)
        index = self.random.choice(_startable(record)) if isinstance(record, ArrayRecord) else 0
        allocation = self._place(self.cluster.bearer(record.id, index).shared.request.slots_min)
        if allocation:
            plan = Starts((Start(record.id, index, allocation, "there was room"),))
            self.do(c.ApplyPlan(plan))

    def _place(self, slots: int) -> tuple[HostShare, ...]:
        table, shares = self.cluster.table, []
        names = list(self.cluster.hosts)
        self.random.shuffle(names)
        for name in names:
            free = int(table.slots_free[self.cluster.hosts[name].row])
            if free > 0 and slots:
                part = min(free, slots)
                shares.append(HostShare(name, part, 100, (), (part,)))
                slots -= part
        return () if slots else tuple(shares)

    @property
    def _live(self) -> list[int]:
        """Jobs that have not ended."""
        over = {job for job, index in self.cluster.finished if not index} | set(self.cluster.ended_arrays)
        return [job for job in self.cluster.jobs if job not in over]

    def resize(self) -> None:
        """Grow or shrink a running resizable job, or request another size for it."""
        rng = self.random
        if not self.cluster.resizable:
            return
        key, attempt = rng.choice(list(self.cluster.resizable.items()))
        role = self.cluster.jobs[key.job].shared.request.roles[0]
        if rng.random() < 0.6:
            mine = {share.host for share in attempt.booked}
            more = self._place(rng.randint(1, 3))
            more = tuple(one._replace(memory_mib=0) if one.host in mine else one for one in more)
            self.do(c.ApplyPlan(Resize(grows=(Grow(key, more, "there was room"),))))
        elif rng.random() < 0.7:
            last = attempt.allocation[-1].host
            self.do(c.ShrinkJob(c.Target(key.job), rng.choice(["all", last, f"1*{last}"]), ROOT, rng.choice(["", "x"])))
        else:
            self.do(c.WishSize(c.Target(key.job), rng.choice([0, role.tasks_max]), ROOT))

    # -- agents ----------------------------------------------------------------------------------------------------

    def report(self) -> None:
        """Send the next report of some host about one of its attempts."""
        if self.cluster.attempts:
            self.report_on(self.random.choice(list(self.cluster.attempts.values())))

    def report_on(self, attempt: Attempt) -> None:
        """Send the next report of some host of the attempt."""
        rng, key = self.random, attempt.key
        host = rng.choice(sorted(attempt.unreleased))
        if attempt.over:
            self.do(c.ReportReleased(host, key))
        elif not attempt.launched:
            refuses = rng.random() < 0.2
            pre_exec = rng.choice(["", "host", "queue"]) if self.has_commands else ""
            refusal = c.ReportRefused(host, key, "no such user", True, pre_exec=pre_exec)
            self.do(refusal if refuses else c.ReportStaged(host, key))
        elif self.has_commands and not attempt.started_at and rng.random() < 0.2:
            self.do(c.ReportRefused(attempt.lead, key, "it exited with code 1", pre_exec="job"))
        elif not attempt.started_at:
            self.do(c.ReportStarted(attempt.lead, key, rng.randint(2, 99_999), self.now, "/home/a", "/home/a\udcff/x"))
        elif attempt.resizing.growth or not attempt.resizing.is_told:
            self._answer(attempt)
        elif rng.random() < 0.25:
            self._end(host, key)

    def _answer(self, attempt: Attempt) -> None:
        """Reports of hosts on a resize."""
        rng, key, change = self.random, attempt.key, attempt.resizing
        if not change.growth:
            self.do(c.ReportResized(attempt.lead, key, change.version, rng.random() < 0.2, "exit code 1"))
            return
        host = rng.choice(change.growth).host
        refuses = rng.random() < 0.2
        self.do(c.ReportRefused(host, key, "no such user", True) if refuses else c.ReportStaged(host, key))

    def _end(self, host: str, key: Key) -> None:
        status = self.random.choice([0, 0, 256, 9])
        released = self.random.random() < 0.7
        post = self.random.choice(list(PostState)) if self.has_commands else PostState.NONE
        ended = c.ReportFinished(host, key, status, self.now, "", 1.25, 77, also_released=released, post=post)
        self.do(ended)

    def trouble(self) -> None:
        """Let a host be away until it counts as silent."""
        host = self.cluster.hosts[self.random.choice(sorted(self.cluster.hosts))]
        for other in self.cluster.hosts.values():
            other.seen_at = self.now if other is not host else 0.0
        self.do(c.Tick())

    def return_(self) -> None:
        """Let a silent host return, possibly without the attempts it held."""
        silent = [host for _, host in sorted(self.cluster.hosts.items()) if host.is_silent]
        if silent:
            host = self.random.choice(silent)
            held = tuple(c.HeldAttempt(key, launched=True) for key in host.attempts if self.random.random() < 0.8)
            self.join(int(host.facts.name[1:]), held)

    def administer(self) -> None:
        """A host is closed or opened."""
        closed = [name for name, host in self.cluster.hosts.items() if host.closed_by]
        name = self.random.choice(closed or sorted(self.cluster.hosts))
        self.do(c.OpenHost(name, ROOT) if closed else c.CloseHost(name, ROOT, "disk\nbroken"))

    def pass_time(self) -> None:
        """Let time pass in which every connected host reports."""
        self.now += self.random.choice([5.0, 60.0, 300.0])
        self.tick()

    def tick(self) -> None:
        """Fire due timers, with every host reporting that is not silent."""
        for host in self.cluster.hosts.values():
            host.seen_at = self.now
        self.do(c.Tick())
