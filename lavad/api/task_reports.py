"""Reports of agents about tasks, activity and checkpoints, bounded and converted for the core, which stores them."""

import time
from collections.abc import Iterable

from lavad.api import checks
from lavad.core import commands as c
from lavad.core.model import Key
from lavad.core.model.task_rules import TaskKey, TaskPhase
from lavad.core.model.task_values import RolePart, TaskReport
from protos import agents_pb2 as pb
from protos import common_pb2, endings

STATUS_MAX = 0xFFFF  # of a raw wait status
PORT_MAX = 65535
_PHASES = frozenset(map(int, (TaskPhase.RUNNING, TaskPhase.DONE, TaskPhase.EXITED)))


def activity_of(host: str, message: pb.Reports) -> list[c.ReportActivity | c.ReportStacks]:
    """Convert what a host says of the activity of its attempts, and of the stacks that it has saved."""
    amount, words = checks.amount_of, checks.words_of
    found: list[c.ReportActivity | c.ReportStacks] = [
        c.ReportActivity(host, _key(one.key), amount(one.inactive_s), amount(one.unused_s))
        for one in message.activities
    ]
    saved = (
        c.ReportStacks(host, _key(one.key), one.number, words(one.path), words(one.error)) for one in message.stacks
    )
    return [*found, *saved]


def checkpoint_of(host: str, made: pb.CheckpointMade) -> c.ReportCheckpoint:
    """Convert what a host says of a checkpoint."""
    began, error, action = checks.amount_of(made.began), checks.words_of(made.error), checks.words_of(made.action)
    return c.ReportCheckpoint(host, _key(made.key), made.number, began, error, made.ends, action)


def _key(key: common_pb2.AttemptKey) -> Key:
    return Key(key.job, key.index, key.attempt)


def staged(host: str, key: Key, report: pb.Report) -> c.ReportStaged:
    """Convert the report that a host is ready, with the ports of its tasks."""
    word = report.staged
    parts = parts_of(word.tasks)
    return c.ReportStaged(host, key, report.allocation_version, word.again, parts, checks.words_of(word.address))


def wanted(host: str, key: Key, report: pb.Report) -> c.ReportWanted:
    """Convert the size that a job's metric script asks for."""
    return c.ReportWanted(host, key, report.wanted.tasks, checks.words_of(report.wanted.error))


def parts_of(parts: Iterable[common_pb2.RoleTasks]) -> tuple[RolePart, ...]:
    """Convert tasks of a host, with their ports."""
    return tuple([_part(one) for one in parts])


def _part(part: common_pb2.RoleTasks) -> RolePart:
    return RolePart(part.role, tuple(part.indices), tuple([min(port, PORT_MAX) for port in part.ports]))


def states_of(states: Iterable[common_pb2.TaskState]) -> tuple[TaskReport, ...]:
    """Convert reported states; those in other phases than a host can know are left out."""
    now = time.time()
    return tuple([_state(one, now) for one in states if one.order_again or one.phase in _PHASES])


def _state(state: common_pb2.TaskState, now: float) -> TaskReport:
    task, words = state.task, checks.words_of
    phase = TaskPhase(state.phase) if state.phase in _PHASES else TaskPhase.RUNNING
    status = state.status if 0 <= state.status <= STATUS_MAX else STATUS_MAX
    if phase is TaskPhase.EXITED and not status:
        status = 1 << 8  # a failure whose status is not known
    detail = words(state.detail)
    return TaskReport(
        TaskKey(task.role, task.index),
        task.run,
        phase,
        min(state.pid, checks.STORED_MAX),
        checks.moment_of(state.started, now) if state.started else 0.0,
        checks.moment_of(state.ended, now) if state.ended else 0.0,
        status if phase is not TaskPhase.RUNNING else 0,
        endings.explained(words(state.reason), detail) or detail,
        detail,
        state.order_again,
    )
