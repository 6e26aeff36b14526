"""State machine of a job: states in which an event is legal, and the resulting states. Nothing else changes the state.

The diagram in docs/ is generated from this table, and a test walks all pairs of state and event.
"""

from lavad.core import events as e
from lavad.core import task_events as t
from lavad.core.activity_events import JobWarned
from lavad.core.model import FINAL, HOLDING, SUSPENDED, WAITING, JobState

S = JobState


class IllegalTransition(Exception):
    """An event in a state in which it is illegal: a defect of the master, never a user's mistake."""


_RUNNING = frozenset({S.RUN, S.USUSP, S.SSUSP})
_ALIVE = HOLDING - {S.ZOMBI}
_RESIZES = (
    e.AttemptGrowing,
    e.GrowthGivenUp,
    e.AttemptResized,
    e.ResizeNoted,
    e.ResizeWished,
    t.ResizeAcknowledged,
    t.PartsFreed,
    t.ReplacementAwaited,
)


def _rows(
    event: type, states: frozenset[JobState], *targets: JobState
) -> dict[tuple[JobState, type], frozenset[JobState]]:
    return {(state, event): frozenset(targets) for state in states}


TRANSITIONS: dict[tuple[JobState, type], frozenset[JobState]] = {
    **_rows(e.AttemptDispatched, frozenset({S.PEND}), S.STAGING),
    **_rows(e.HostStaged, frozenset({S.STAGING}), S.STAGING),
    **_rows(e.AttemptLaunched, frozenset({S.STAGING}), S.STAGING),
    **_rows(e.JobStarted, frozenset({S.STAGING}), S.RUN),
    **_rows(e.JobStarted, frozenset({S.UNKWN}), S.UNKWN),
    **_rows(e.JobFinished, HOLDING, S.DONE, S.EXIT),
    **_rows(e.JobRequeued, HOLDING, S.PEND, S.PSUSP),
    **_rows(e.JobSuspended, frozenset({S.STAGING}), S.STAGING),
    **_rows(e.JobSuspended, frozenset({S.RUN}), S.USUSP, S.SSUSP),
    **_rows(e.JobSuspended, SUSPENDED, S.USUSP, S.SSUSP),
    **_rows(e.JobResumed, frozenset({S.STAGING}), S.STAGING),
    **_rows(e.JobSuspended, frozenset({S.UNKWN}), S.UNKWN),
    **_rows(e.JobResumed, frozenset({S.UNKWN}), S.UNKWN),
    **_rows(e.JobResumed, SUSPENDED, S.RUN, S.USUSP, S.SSUSP),
    **{(state, e.JobSignalled): frozenset({state}) for state in HOLDING},
    **{(state, e.JobDoomed): frozenset({state}) for state in HOLDING},
    **{(state, e.ProgressReported): frozenset({state}) for state in HOLDING},
    **{(state, JobWarned): frozenset({state}) for state in HOLDING},
    **{(state, event): frozenset({state}) for state in HOLDING for event in _RESIZES},
    **_rows(e.JobLost, _RUNNING | {S.STAGING}, S.UNKWN),
    **_rows(e.JobFound, frozenset({S.UNKWN}), S.STAGING, S.RUN, S.USUSP, S.SSUSP),
    **_rows(e.JobAbandoned, frozenset({S.UNKWN, S.ZOMBI}), S.ZOMBI),
    **_rows(e.PendingEnded, frozenset({S.PEND}), S.DONE, S.EXIT),
    **_rows(e.PendingEnded, frozenset({S.PSUSP}), S.EXIT),
    **_rows(e.JobRevived, FINAL, S.PEND, S.PSUSP),
    **_rows(e.PendingHeld, frozenset({S.PEND}), S.PSUSP),
    **_rows(e.PendingFreed, frozenset({S.PSUSP}), S.PEND),
    **{(state, e.JobModified): frozenset({state}) for state in WAITING},
}


def is_allowed(state: JobState, event: type) -> bool:
    """True if an event of this type is legal in this state."""
    return (state, event) in TRANSITIONS


def check(state: JobState, event: object, target: JobState) -> None:
    """Check that the event may take a job from state to target.

    Raises:
        IllegalTransition: it may not.
    """
    targets = TRANSITIONS.get((state, type(event)))
    if targets is None or target not in targets:
        raise IllegalTransition(f"{event!r} can't take a job from {state.name} to {target.name}")
