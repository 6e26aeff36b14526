"""Tasks of a job on the wire: their states in a record, and the place of one task's output."""

from typing import cast

from lavad.core.model.reasons import Refused
from lavad.core.model.task_rules import TaskKey, TaskPhase
from lavad.core.state.tasks import ENDED, JobTasks
from protos import common_pb2, jobs_pb2


def add_tasks(message: jobs_pb2.JobRecord, tasks: JobTasks) -> None:
    """Add the states of all tasks to a job's record; the numbers of phases are those of the wire."""
    message.restarts = tasks.restarts
    message.autoscale_error = tasks.autoscale_error
    for key, record in tasks.records.items():
        state = message.tasks.add(
            host=record.host or (record.left if record.phase in ENDED else ""),
            pid=record.pid,
            started=record.started,
            ended=record.ended,
            status=record.status,
            reason=record.reason or record.stopped,
            failures=record.failures,
        )
        if record.phase in (TaskPhase.WAITING, TaskPhase.STOPPING):
            state.not_before = record.not_before
        state.phase = cast("common_pb2.TaskPhase", int(record.phase))
        state.task.role, state.task.index, state.task.run = key.role, key.index, record.run


def output_of(tasks: JobTasks, request: jobs_pb2.PeekTicketRequest) -> tuple[str, common_pb2.TaskRun]:
    """Return the host that has the output of the task asked for, and its run.

    Raises:
        Refused: there is no such task, or no output of it; one sentence says so.
    """
    if request.role not in tasks.names:
        raise Refused(f"the job has no role {request.role}")
    key = TaskKey(tasks.names.index(request.role), request.task)
    record = tasks.records.get(tasks.stands_for.get(key, key))
    if record is None:
        raise Refused(f"the job has no task {request.role}[{request.task}]")
    name, run = tasks.label(key), request.run or record.run
    host = record.left or record.host
    if not record.run or not host:
        raise Refused(f"Task {name} : Not yet started." if not record.run else f"Task {name} has lost its host.")
    if run > record.run:
        raise Refused(f"Task {name} has been started {record.run} times, not {run}.")
    shown = tasks.stands_for.get(key, key)
    return host, common_pb2.TaskRun(role=shown.role, index=shown.index, run=run)
