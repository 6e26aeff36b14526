"""Phases of a job of tasks, and the phase that each action leads to: Volcano's state machine of a job as one table.

An action that is not listed for a phase has no effect in it. The diagram in docs/ is generated from this table.
"""

from enum import Enum

from lavad.core.model.task_rules import RESTARTS, TaskAction
from lavad.core.state.tasks import JobTasks

A = TaskAction


class JobPhase(Enum):
    """Phase of a job of tasks, beside its state. Those of its end are reached when none of its tasks is alive."""

    ACTIVE = "active"  # waiting for hosts, or running
    RESTARTING = "restarting"  # tasks are being ended to be started anew
    ABORTING = "aborting"
    TERMINATING = "terminating"
    COMPLETING = "completing"
    LEAVING = "leaving"  # being ended to be dispatched anew
    ABORTED = "aborted"
    TERMINATED = "terminated"
    COMPLETED = "completed"


P = JobPhase
_LIVE = (P.ACTIVE, P.RESTARTING)

TRANSITIONS: dict[tuple[JobPhase, TaskAction], JobPhase] = {
    **{(phase, action): P.RESTARTING for phase in _LIVE for action in sorted(RESTARTS)},
    **{(phase, A.ABORT): P.ABORTING for phase in _LIVE},
    **{(phase, A.TERMINATE): P.TERMINATING for phase in _LIVE},
    **{(phase, A.COMPLETE): P.COMPLETING for phase in _LIVE},
    (P.ABORTING, A.RESUME): P.LEAVING,
    (P.ABORTED, A.RESUME): P.ACTIVE,
}

OF_VERDICT = {
    A.ABORT: (P.ABORTING, P.ABORTED),
    A.TERMINATE: (P.TERMINATING, P.TERMINATED),
    A.COMPLETE: (P.COMPLETING, P.COMPLETED),
    A.RESTART_JOB: (P.LEAVING, P.ACTIVE),
}


def phase_of(tasks: JobTasks) -> JobPhase:
    """Present phase of a job of tasks."""
    is_alive = bool(tasks.records.alive)
    if tasks.verdict is not None:
        under_way, reached = OF_VERDICT[tasks.verdict.action]
        return under_way if is_alive else reached
    return P.RESTARTING if tasks.records.restarting else P.ACTIVE


def is_effective(tasks: JobTasks, action: TaskAction) -> bool:
    """True if the action has an effect in the job's present phase."""
    return (phase_of(tasks), action) in TRANSITIONS
