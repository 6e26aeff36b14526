"""Random users of a simulated cluster: they submit, kill, stop, resume and change jobs."""

import random
from dataclasses import replace
from typing import Any

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.jobs.control import waiting_of
from lavad.core.events import NewJob
from lavad.core.model import SUSPENDED, JobState, Launch, Request, RoleRequest, Shared, pack_text
from lavad.core.model.ranges import Ranges
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.place import place
from lavad.core.state.records import ArrayRecord, place_of
from lavad.simulator.cluster.checkers import Violation
from lavad.simulator.cluster.fleet import Behaviour
from lavad.simulator.cluster.world import World

TROUBLE_S = 150.0  # users submit and faults happen
ANSWER_TIMEOUT_S = 3.0
ROOT = c.Caller("root", 0, True)


class Users:
    """Users who submit, kill, stop and resume jobs; answers are recorded in the history."""

    def __init__(self, world: World, jobs: int) -> None:
        self.world = world
        self.rng = world.rng
        self._switches = random.Random(world.seed)  # apart: what else a seed leads to stays as it was
        self.jobs = jobs
        self.known: list[int] = []

    def begin(self) -> None:
        """Spread the users' actions over the trouble phase."""
        for number in range(self.jobs):
            self.world.after(self.rng.uniform(0, 0.7 * TROUBLE_S), lambda number=number: self._submit_new(number))  # type: ignore[misc]
        for _ in range(2 * self.jobs):
            self.world.after(self.rng.uniform(5, TROUBLE_S), self._disturb)

    # -- submitting --------------------------------------------------------------------------------------------------

    def _submit_new(self, number: int) -> None:
        rng = self.rng
        each = rng.random() < 0.5
        behaviour = Behaviour(
            rng.choice((0.0, 0.5, 5.0, 20.0, 40.0)) * rng.uniform(0.5, 1.5),
            rng.choice((0, 0, 0, 1, 77)) << 8,
            each,
            rng.random() < 0.1,
            rng.choice((0.0, 0.0, 2.0)),
        )
        self.submit(self._a_job(number, each), behaviour)

    def _a_job(self, number: int, each: bool) -> NewJob:
        rng = self.rng
        is_array = rng.random() < 0.25
        role = RoleRequest(
            tasks_min=(tasks := 1 if is_array else rng.choice((1, 2, 4, 6))),
            tasks_max=tasks + rng.choice((0, 0, 2)),
            memory_mib=rng.choice((0, 0, 500)),
            gpus=rng.choice((0, 0, 0, 1)),
            ptile=rng.choice((0, 1, 1, 2)),
            one_host=tasks > 1 and rng.random() < 0.1,
            launch=Launch.EACH if each else Launch.FIRST,
        )
        exclusive = rng.random() < 0.05
        if rng.random() < 0.7 and not (is_array or each or exclusive):
            role = replace(role, resizable=True, tasks_max=role.tasks_max + rng.choice((2, 4, 8)))
        request = Request((role,), exclusive=exclusive)
        uid = rng.choice((1000, 1001))
        queue = rng.choice(("normal", "normal", "short", "priority"))
        shared = Shared(f"u{uid}", uid, uid, queue, "p", request, rerunnable=rng.random() < 0.4)
        last = rng.choice((3, 5, 8))
        return NewJob(
            0, shared, pack_text(name=f"j{number}"), b"", f"request-{number}".encode(), rng.random() < 0.1,
            (range(1, last + 1),) if is_array else (), rng.choice((0, 2)) if is_array else 0,
        )  # fmt: skip

    def submit(self, job: NewJob, behaviour: Behaviour) -> None:
        """Send the submission until it is answered."""
        history = self.world.history
        answered: list[int] = []
        self.world.behaviour_of_request[job.request_id] = behaviour

        def answer(submitted: Any) -> None:
            number = submitted.job
            if self.rng.random() < 0.1:
                return  # the answer is lost; the user asks again
            answered.append(number)
            history.submitted.setdefault(job.request_id, set()).add(number)
            history.elements[number] = tuple(Ranges(job.indices)) or (0,)
            history.rerunnable[number] = job.shared.rerunnable
            self.known.append(number)
            if self.rng.random() < 0.1:
                self.world.after(self.rng.uniform(0, 30), attempt)  # a late repetition changes nothing

        def attempt() -> None:
            self.world.master.ask(c.SubmitJob(job, c.Caller(job.shared.user, job.shared.uid)), answer)
            self.world.after(ANSWER_TIMEOUT_S, lambda: None if answered else attempt())

        attempt()

    # -- disturbance -------------------------------------------------------------------------------------------------

    def _disturb(self) -> None:
        if not self.known:
            return
        job = self.rng.choice(self.known[-6:])
        elements = self.world.history.elements[job]
        index = self.rng.choice(elements) if elements != (0,) and self.rng.random() < 0.5 else -1
        target = c.Target(job, Ranges.of(index) if index > 0 else None)
        if index > 0 and self._switches.random() < 0.3:
            self._switch(job, index)
        what = self.rng.choice(
            ("kill", "signal9", "stop", "stop", "stop", "usr1", "force", "close", "less", "less", "more")
        )
        if what == "kill":
            self._kill(c.KillJob(target, ROOT), job, index)
        elif what == "signal9":
            self._kill(c.SignalJob(target, 9, ROOT), job, index)
        elif what == "stop":
            self.world.master.ask(c.StopJob(target, ROOT))
            self._resume_later(target)
        elif what == "usr1":
            self.world.master.ask(c.SignalJob(target, 10, ROOT))
        elif what == "force":
            self._force(target, job, index)
        elif what in ("less", "more"):
            self._resize(what)
        else:
            self._close_a_host()

    def _kill(self, command: c.Command, job: int, index: int) -> None:
        cluster, killed = self.world.master.cluster, self.world.history.killed
        elements = self.world.history.elements[job] if index < 0 else (index,)
        self.world.master.ask(
            command, lambda _: killed.extend((job, one, _attempts_of(cluster, job, one)) for one in elements)
        )

    def kill(self, job: int) -> None:
        """Kill a job that can no longer finish."""
        self._kill(c.KillJob(c.Target(job), ROOT), job, -1)

    def _force(self, target: c.Target, job: int, index: int) -> None:
        elements = self.world.history.elements[job] if index < 0 else (index,)
        self.world.history.forced.update((job, one) for one in elements)
        self._kill(c.KillJob(target, ROOT, remove=True), job, index)

    def _resize(self, what: str) -> None:
        """Let an elastic job release all it can spare or its last host, or grow to its maximum again."""
        cluster = self.world.master.cluster
        if not cluster.resizable:
            return
        key, attempt = self.rng.choice(list(cluster.resizable.items()))
        target = c.Target(key.job)
        if what == "less":
            last = attempt.allocation[-1].host
            self.world.master.ask(c.ShrinkJob(target, self.rng.choice(("all", last, f"1*{last}")), ROOT))
        else:
            self.world.master.ask(c.WishSize(target, cluster.jobs[key.job].shared.request.slots_max, ROOT))

    def _switch(self, job: int, index: int) -> None:
        """Switch an element of an array to some queue by itself, perhaps to its own."""
        cluster = self.world.master.cluster
        if index < 0 or job not in cluster.jobs or not cluster.policy.queues:
            return
        record, queue = cluster.bearer(job, index), self._switches.choice(cluster.policy.queues).name
        changed = NewJob(job, replace(record.shared, queue=queue), record.text, b"", b"", priority=record.priority)
        target = c.Target(job, Ranges.of(index))
        self.world.master.ask(c.ModifyJob(target, changed, ROOT, "", frozenset({"queues"}), is_switch=True))

    def _resume_later(self, target: c.Target) -> None:
        self.world.after(self.rng.uniform(0.0, 20), lambda: self.world.master.ask(c.ResumeJob(target, ROOT)))

    def _close_a_host(self) -> None:
        name = self.rng.choice(sorted(self.world.hosts))
        self.world.master.ask(c.CloseHost(name, ROOT))
        self.world.after(self.rng.uniform(1, 30), lambda: self.world.master.ask(c.OpenHost(name, ROOT)))

    def resume_everything(self) -> None:
        """Resume every stopped job and open every closed host."""
        cluster = self.world.master.cluster
        for record in list(cluster.jobs.values()):
            jobs = list(record.live.values()) if isinstance(record, ArrayRecord) else [record]
            waits = waiting_of(record, None, JobState.PSUSP)
            if waits or any(job.state in SUSPENDED for job in jobs):
                self.world.master.ask(c.ResumeJob(c.Target(record.id), ROOT))
        for name, host in cluster.hosts.items():
            if host.closed_by:
                self.world.master.ask(c.OpenHost(name, ROOT))

    def give_up_impossible(self) -> None:
        """Kill the remaining pending jobs, which must not fit even the empty cluster.

        Raises:
            Violation: a job could start and does not.
        """
        cluster = self.world.master.cluster
        for bucket in list(cluster.pending.buckets.values()):
            if not len(bucket):  # elements of an array that was killed as a whole
                continue
            job, _ = place_of(bucket.head().job)
            if place(FreeResources(cluster.table), bucket.key.request) is not None:
                raise Violation(f"job {job} could start on an empty cluster and waits")
            self.kill(job)


def _attempts_of(cluster: Cluster, job: int, index: int) -> int:
    element, record = cluster.element(job, index), cluster.jobs[job]
    if element is not None:
        return element.attempts
    return record.attempts.get(index, 0) if isinstance(record, ArrayRecord) else record.attempts
