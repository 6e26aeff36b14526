"""Lifecycle policies in a simulated cluster: each event x each action, with the history checker on.

One job of a server and three workers on hosts of one slot, with a free one beside them; the event happens to worker 1.
"""

from dataclasses import dataclass, replace

import pytest

from lavad.core import commands as c
from lavad.core.events import NewJob
from lavad.core.model import HostFacts, JobState, Launch, Request, RoleRequest, Shared, pack_text
from lavad.core.model.task_rules import InPlace, Policy, RoleRules, TaskAction, TaskEvent, TaskKey, TaskRules
from lavad.simulator.cluster.checkers import check
from lavad.simulator.cluster.fleet import Behaviour, SimulatedHost
from lavad.simulator.cluster.submitters import ROOT
from lavad.simulator.cluster.world import World

A, E, S = TaskAction, TaskEvent, JobState
PS, WORKER = 0, 1
FIRST = TaskKey(WORKER, 1)
WORKERS = tuple(TaskKey(WORKER, index) for index in range(3))
ALL = (TaskKey(PS, 0), *WORKERS)
RESTARTS = {A.RESTART_TASK: (FIRST,), A.RESTART_GROUP: WORKERS[:2], A.RESTART_ROLE: WORKERS, A.RESTART_JOB: ALL}
VERDICTS = {A.ABORT: S.PSUSP, A.TERMINATE: S.EXIT, A.COMPLETE: S.DONE}
AT_S = 10.0  # time of the event after the job's start
NORMAL_S = 60.0  # run time of a task


@dataclass
class Trial:
    """A cluster with one job."""

    world: World
    job: int = 0

    def runs_of(self, task: TaskKey) -> list[int]:
        """Runs of a task that were really started."""
        return sorted(run for job, _, one, run in self.world.history.task_runs if (job, one) == (self.job, task))

    @property
    def state(self) -> JobState:
        """State of the job."""
        cluster = self.world.master.cluster
        found = cluster.element(self.job, 0) or cluster.finished.get((self.job, 0))
        assert found is not None
        return found.state

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.world.run_until(self.world.now + seconds)


def begin(rules: TaskRules, script: dict[tuple[TaskKey, int], tuple[float, int, str]], workers_max: int = 3) -> Trial:
    """Submit the job to five hosts, and wait until it runs."""
    world = World(1, hosts=0, faults=False)
    for number in range(1, 6):
        name = f"n{number}"
        world.hosts[name] = SimulatedHost(world, HostFacts(name, 1, 1000, keeps_leases=True), 0.0)
    world.begin()
    world.run_until(world.now + 3.0)
    roles = (
        RoleRequest(1, 1, name="ps", launch=Launch.EACH),
        RoleRequest(3, workers_max, name="worker", launch=Launch.EACH),
    )
    shared = Shared("u1000", 1000, 1000, "normal", "p", Request(roles, is_of_tasks=True), tasks=rules)
    job = NewJob(0, shared, pack_text(name="t"), b"", b"tasks")
    world.behaviour_of_request[b"tasks"] = Behaviour(NORMAL_S, 0, of_tasks=script)
    trial = Trial(world)

    def answer(submitted: object) -> None:
        trial.job = submitted.job  # type: ignore[attr-defined]
        world.history.submitted[b"tasks"] = {trial.job}
        world.history.elements[trial.job] = (0,)
        world.history.rerunnable[trial.job] = False

    world.master.ask(c.SubmitJob(job, c.Caller("u1000", 1000)), answer)
    world.run_until(world.now + 3.0)
    return trial


def script_of(event: TaskEvent) -> dict[tuple[TaskKey, int], tuple[float, int, str]]:
    """Run time, wait status and reason of those runs that bring the event about."""
    match event:
        case E.FAILED:
            return {(FIRST, 1): (AT_S, 1 << 8, "")}
        case E.ROLE_FAILED:
            return {(FIRST, 1): (AT_S / 2, 1 << 8, ""), (FIRST, 2): (AT_S / 2, 1 << 8, "")}
        case E.TIMEOUT:
            return {(FIRST, 1): (AT_S, 15, "TERM_RUNLIMIT: too long")}
        case E.SUCCEEDED:
            return {(FIRST, 1): (AT_S, 0, "")}
        case E.ROLE_COMPLETED:
            return {(key, 1): (AT_S if key == FIRST else AT_S / 2, 0, "") for key in WORKERS}
    return {}


def bring_about(trial: Trial, event: TaskEvent) -> None:
    """Let the event happen that no run brings about by itself, and what follows from it."""
    trial.wait(AT_S)
    if event is E.EVICTED:
        trial.world.master.ask(c.KillJob(c.Target(trial.job, None, "worker", 1), ROOT))
    if event is E.HOST_LOST:
        tasks = trial.world.master.cluster.jobs[trial.job].tasks  # type: ignore[union-attr]
        assert tasks is not None
        host = trial.world.hosts[tasks.records[FIRST].host]
        host.lose_power()
        trial.world.after(3.0, host.start_agent)
    trial.wait(15.0)


def rules_of(event: TaskEvent, action: TaskAction, level: str) -> TaskRules:
    """Rules with that policy for the role or the job."""
    policy = Policy(action, frozenset({event}), timeout_s=AT_S if event is E.PENDING else 0.0)
    own = RoleRules(policies=(policy,) if level == "role" else (), group=2)
    if event is E.ROLE_FAILED:
        own = replace(own, in_place=InPlace.ON_FAILURE, restarts_max=1)
    return TaskRules((RoleRules(), own), policies=(policy,) if level == "job" else (), restarts_max=3)


EVENTS = [one for one in E if one not in (E.ANY, E.HANGS)]  # no simulated task hangs: test_machine.py has those cells


@pytest.mark.parametrize("level", ["role", "job"])
@pytest.mark.parametrize("action", list(A))
@pytest.mark.parametrize("event", EVENTS)
def test_each_action_follows_each_event(event: TaskEvent, action: TaskAction, level: str) -> None:
    """Restarted tasks run again, together and once; an ended job leaves nothing; an ignored event changes nothing."""
    trial = begin(rules_of(event, action, level), script_of(event), workers_max=5 if event is E.PENDING else 3)
    bring_about(trial, event)
    check(trial.world.history, trial.world.ended(), healed=False)
    before = 2 if event is E.ROLE_FAILED else 1
    if event is E.PENDING and action in RESTARTS:
        # A task without a place cannot be restarted by itself: what of its scope runs is, and it goes on waiting.
        assert trial.state is S.RUN
    elif action in RESTARTS:
        again = {key for key in ALL if len(trial.runs_of(key)) > (before if key == FIRST else 1)}
        assert again == set(RESTARTS[action])
        assert trial.state is S.RUN
    elif action in VERDICTS:
        assert trial.state is VERDICTS[action]
        assert not any(one.key.job == trial.job for here in trial.world.history.running.values() for one in here)
    else:
        assert trial.state is S.RUN
        assert all(len(trial.runs_of(key)) <= (before if key == FIRST else 1) for key in ALL)
    trial.wait(4 * NORMAL_S)
    check(trial.world.history, trial.world.ended(), healed=action is not A.ABORT)
