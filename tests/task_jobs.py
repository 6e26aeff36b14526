"""Builders of jobs of tasks for tests: a role in one call, a submission, and a cluster that runs them."""

from dataclasses import replace

from google.protobuf.message import Message

from lavad.agent_links.spec_cache import Packed
from lavad.api import translate
from lavad.core import commands as c
from lavad.core.events import NewJob
from lavad.core.model.task_rules import TaskAction, TaskEvent
from protos import common_pb2
from protos import jobs_pb2 as pb
from tests.builders import ANN

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
