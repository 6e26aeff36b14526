"""Builders of jobs of tasks for tests: a role in one call, a submission, and a cluster that runs them."""

from collections.abc import Iterable
from dataclasses import replace

from google.protobuf.message import Message

from lavad.agent_links.spec_cache import Packed
from lavad.api import translate
from lavad.core import commands as c
from lavad.core.decide.jobs.sizes import tasks_in
from lavad.core.events import NewJob
from lavad.core.model import Key
from lavad.core.model.task_rules import TaskAction, TaskEvent, TaskKey, TaskPhase
from lavad.core.model.task_values import RolePart, TaskReport
from lavad.core.orders import Order, TasksOrder
from lavad.core.state.tasks import JobTasks, TaskRecord
from lavad.core.step import Outcome
from protos import common_pb2
from protos import jobs_pb2 as pb
from tests.builders import ANN, Story

EACH, FIRST, HOST, NONE = (
    common_pb2.LAUNCH_EACH,
    common_pb2.LAUNCH_FIRST,
    common_pb2.LAUNCH_HOST,
    common_pb2.LAUNCH_NONE,
)


def a_policy(
    *events: TaskEvent,
    action: TaskAction = TaskAction.RESTART_JOB,
    codes: tuple[int, ...] = (),
    timeout_s: float = 0.0,
    index: int = -1,
) -> common_pb2.TaskPolicy:
    """Lifecycle policy for these events or exit codes."""
    return common_pb2.TaskPolicy(
        events=list(map(int, events)),  # type: ignore[arg-type]
        action=int(action),  # type: ignore[arg-type]
        exit_codes=codes,
        timeout_s=timeout_s,
        index_plus_one=index + 1,
    )


def a_task_role(name: str = "worker", tasks: int = 1, most: int = 0, **fields: object) -> common_pb2.Role:
    """One role of a job of tasks: each of its tasks runs a command."""
    role = common_pb2.Role(name=name, tasks_min=tasks, tasks_max=most or tasks, command=f"run {name}", launch=EACH)
    for field, value in fields.items():
        if isinstance(value, Message):
            getattr(role, field).CopyFrom(value)
        elif isinstance(value, list | tuple):
            getattr(role, field).extend(value)
        else:
            setattr(role, field, value)
    return role


def a_task_spec(*roles: common_pb2.Role, **rules: object) -> pb.JobSpec:
    """Submission of a job of tasks; further arguments are its rules."""
    found = pb.TaskRules(format=1)
    for field, value in rules.items():
        if isinstance(value, list | tuple):
            getattr(found, field).extend(value)
        else:
            setattr(found, field, value)
    return pb.JobSpec(name="tasks", queues=["normal"], roles=roles or [a_task_role()], tasks=found)


def submission(spec: pb.JobSpec, caller: c.Caller = ANN) -> c.SubmitJob:
    """Command that submits the job, made as by the master."""
    new = translate.new_job(spec, Packed(b"", "", None), b"", caller)
    return c.SubmitJob(new, caller, translate.asked_of(spec, ("normal",)))


def a_task_job(*roles: common_pb2.Role, rerunnable: bool = False, **rules: object) -> NewJob:
    """Submission of a job of tasks, for stories that need no command."""
    job = submission(a_task_spec(*roles, **rules)).job
    return job._replace(shared=replace(job.shared, rerunnable=rerunnable))


class TaskStory(Story):
    """A cluster whose hosts carry out the orders for tasks at once, as far as a test lets them."""

    def begin(self, *roles: common_pb2.Role, **rules: object) -> Key:
        """Submit a job, dispatch it and stage all its hosts; its tasks are ordered."""
        job = self.do(submission(a_task_spec(*roles, **rules))).reply.job
        self.plan()
        key = self.key(job)
        self.stage(key)
        return key

    def stage(self, key: Key) -> list[Order]:
        """All hosts of the attempt are ready, each with two ports for each of its tasks."""
        orders: list[Order] = []
        for number, share in enumerate(self.cluster.attempts[key].allocation, 1):
            parts = next((one.parts for one in self.tasks(key).table if one.host == share.host), ())
            ports = tuple(
                RolePart(part.role, part.indices, tuple(range(9000, 9000 + 2 * len(part.indices)))) for part in parts
            )
            orders += self.do(c.ReportStaged(share.host, key, 1, False, ports, f"10.0.0.{number}")).orders
        return orders

    def tasks(self, key: Key) -> JobTasks:
        """Tasks of the job."""
        tasks = self.job(key.job, key.index).tasks
        assert tasks is not None
        return tasks

    def task(self, key: Key, role: int, index: int) -> TaskRecord:
        """One task."""
        return self.tasks(key).records[TaskKey(role, index)]

    def phases(self, key: Key) -> str:
        """Initial of each task's phase: W, S, R, T (stopping), D, E."""
        letters = {TaskPhase.STOPPING: "T"}
        return "".join(letters.get(one.phase, one.phase.name[0]) for one in self.tasks(key).records.values())

    def report(self, key: Key, *tasks: tuple[int, int], phase: TaskPhase = TaskPhase.RUNNING, code: int = 0) -> Outcome:
        """The hosts of these tasks report their state."""
        together = Outcome()
        for role, index in tasks:
            record = self.task(key, role, index)
            began = record.started or self.now
            at = (4000 + index, began, 0.0 if phase is TaskPhase.RUNNING else self.now, code << 8)
            state = TaskReport(TaskKey(role, index), record.run, phase, *at)
            outcome = self.do(c.ReportTasks(record.host, key, (state,)))
            together.events += outcome.events
            together.orders += outcome.orders
        return together

    def runs(self, key: Key, *tasks: tuple[int, int]) -> Outcome:
        """These tasks run; by default all that were ordered."""
        chosen = tasks or [one for one, record in self._all(key) if record.phase is TaskPhase.STARTING]
        return self.report(key, *chosen)

    def ends(self, key: Key, role: int, index: int, code: int = 0) -> Outcome:
        """The task has ended."""
        return self.report(key, (role, index), phase=TaskPhase.EXITED if code else TaskPhase.DONE, code=code)

    def cannot_start(self, key: Key, role: int, index: int) -> Outcome:
        """The start of the task's process has failed."""
        record = self.task(key, role, index)
        state = TaskReport(TaskKey(role, index), record.run, TaskPhase.EXITED, 0, 0.0, self.now, 1 << 8)
        return self.do(c.ReportTasks(record.host, key, (state,)))

    def stops(self, key: Key) -> Outcome:
        """All tasks that were told to end have ended by SIGTERM."""
        stopping = [one for one, record in self._all(key) if record.phase is TaskPhase.STOPPING]
        return self.report(key, *stopping, phase=TaskPhase.EXITED, code=143)

    def _all(self, key: Key) -> list[tuple[tuple[int, int], TaskRecord]]:
        tasks = self.tasks(key)
        return [((one.role, one.index), record) for one, record in tasks.records.items() if tasks.has_run(one)]


def stage_growth(story: TaskStory, key: Key) -> list[Order]:
    """Stage a growth on its new hosts; the last orders that follow."""
    attempt, orders = story.cluster.attempts[key], list[Order]()
    for share in attempt.resizing.growth:
        if attempt.share_on(share.host) is None:
            version, parts = attempt.joined_with(share.host), ports(story, key, share.host)
            orders = story.do(c.ReportStaged(share.host, key, version, False, parts)).orders
    return orders


def ports(story: TaskStory, key: Key, host: str) -> tuple[RolePart, ...]:
    """A port for each task of the host."""
    found = []
    for role in range(len(story.tasks(key).sizes)):
        here = tuple([one.index for one in tasks_in.on_host(story.tasks(key), host, role)])
        found.append(RolePart(role, here, tuple([9000 + index for index in here])))
    return tuple(found)


def adapt(story: TaskStory, key: Key) -> list[Order]:
    """All hosts take the newest size over; the orders of the last."""
    attempt, orders = story.cluster.attempts[key], list[Order]()
    for share in attempt.allocation:
        report = c.ReportResized(share.host, key, attempt.resizing.version, tasks=ports(story, key, share.host))
        orders = story.do(report).orders
    return orders


def leave(story: TaskStory, key: Key) -> None:
    """All that was given up has ended and is released."""
    adapt(story, key)
    story.stops(key)
    for share in story.cluster.attempts[key].resizing.leaving:
        story.released(share.host, key)


def starts(orders: Iterable[Order]) -> dict[str, list[tuple[int, int, int]]]:
    """Starts ordered on each host: role, index and run."""
    return {
        one.host: [(run.task.role, run.task.index, run.run) for run in one.start]
        for one in orders
        if isinstance(one, TasksOrder) and one.start
    }


def stops(orders: Iterable[Order]) -> dict[str, list[tuple[int, int, int]]]:
    """Ends ordered on each host: role, index and run."""
    return {
        one.host: [(run.task.role, run.task.index, run.run) for run in one.stop]
        for one in orders
        if isinstance(one, TasksOrder) and one.stop
    }
