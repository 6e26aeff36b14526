"""Users of a simulated cluster who submit jobs of tasks: gangs that are restarted as a whole, and end tasks by hand."""

from dataclasses import replace
from random import Random

from lavad.core import commands as c
from lavad.core.events import NewJob
from lavad.core.model import Launch, Request, RoleRequest, Shared, pack_text
from lavad.core.model.task_rules import Policy, RoleRules, TaskAction, TaskEvent, TaskRules
from lavad.simulator.cluster.fleet import Behaviour
from lavad.simulator.cluster.submitters import ROOT, TROUBLE_S, Users
from lavad.simulator.cluster.world import World

NAMES = ("launcher", "worker")
# Whatever fails, all tasks of a gang start anew together: one of one generation never runs beside one of another.
_TROUBLES = frozenset({TaskEvent.FAILED, TaskEvent.EVICTED, TaskEvent.HOST_LOST})
GANG = TaskRules(
    (RoleRules(), RoleRules()), policies=(Policy(TaskAction.RESTART_JOB, _TROUBLES),), restarts_max=6, replace_s=40.0
)
# Tasks that are restarted alone, with a growing pause, while the others go on.
LOOSE = replace(GANG, policies=(Policy(TaskAction.RESTART_TASK, _TROUBLES),), pause_s=2.0, stable_s=20.0)
REQUEUED = replace(GANG, replace_s=0.0)


class TaskUsers:
    """A few such jobs, and kills of their tasks."""

    def __init__(self, world: World, users: Users, jobs: int) -> None:
        self.world = world
        self.users = users
        self.rng = Random(f"tasks {world.seed}")  # the other users' choices do not depend on these
        self.queue_rng = Random(f"work queues {world.seed}")
        self.jobs = jobs

    def begin(self) -> None:
        """Spread the submissions and kills over the trouble phase."""
        for number in range(self.jobs):
            self.world.after(self.rng.uniform(0, 0.6 * TROUBLE_S), lambda number=number: self._submit(number))  # type: ignore[misc]
        for _ in range(self.jobs):
            self.world.after(self.rng.uniform(10, TROUBLE_S), self._kill_a_task)

    def _submit(self, number: int) -> None:
        behaviour = Behaviour(self.rng.choice((2.0, 8.0, 25.0)), self.rng.choice((0, 1, 7)) << 8)
        self.users.submit(self._a_job(number), behaviour)

    def _a_job(self, number: int) -> NewJob:
        sizes = (1, self.rng.choice((1, 3, 5)))
        spares = self.rng.choice((0, 0, 1, 2))
        roles = (
            RoleRequest(sizes[0], sizes[0], name=NAMES[0], launch=Launch.EACH),
            RoleRequest(sizes[1] + spares, sizes[1] + spares, name=NAMES[1], launch=Launch.EACH, spares=spares),
        )
        rules = self.rng.choice((GANG, GANG, GANG, LOOSE, REQUEUED))
        if self.queue_rng.random() < 0.4:
            roles, rules = self._with_completions(roles[0], sizes[1], rules)
        request = Request(roles, is_of_tasks=True)
        is_rerunnable = self.rng.random() < 0.3
        shared = Shared("u1000", 1000, 1000, "normal", "p", request, rerunnable=is_rerunnable, tasks=rules)
        return NewJob(0, shared, pack_text(name=f"t{number}"), b"", f"tasks-{number}".encode())

    def _with_completions(
        self, launcher: RoleRequest, places: int, rules: TaskRules
    ) -> tuple[tuple[RoleRequest, RoleRequest], TaskRules]:
        """Roles and rules of a job with more workers than places."""
        worker = RoleRequest(places, places, name=NAMES[1], launch=Launch.EACH)
        completions = places + self.queue_rng.choice((1, 2, 6))
        owed = replace(rules, roles=(RoleRules(), RoleRules(completions=completions)))
        return (launcher, worker), owed

    def _kill_a_task(self) -> None:
        known = sorted(self.world.history.of_tasks)
        if known:
            target = c.Target(self.rng.choice(known), None, self.rng.choice(NAMES), 0)
            self.world.master.ask(c.KillJob(target, ROOT))
