"""Messages that users and programs post to a job (bpost), and reasons that users give for commands (bkill -C): kept in
the store; only the first word of the external status is in memory, for conditions."""

from collections.abc import Callable, Iterator
from typing import Any

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.activity_events import JobMessagePosted, ReasonGiven
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision, is_owner
from lavad.core.decide.jobs.control import find
from lavad.core.model import Key
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from lavad.core.orders import SignalOrder
from lavad.core.state.records import ArrayRecord, Job

Controlling = c.KillJob | c.StopJob | c.ResumeJob
_OF_WAITING = (e.PendingEnded, e.PendingHeld, e.PendingFreed)
_OF_ATTEMPTS = (e.JobSignalled, e.JobAbandoned, e.JobFinished, e.JobSuspended, e.JobResumed)


def post(cluster: Cluster, command: c.PostMessage, now: float) -> Decision:
    """Post a message: to a job in memory, ended or not, by its owner or an administrator; data by the owner alone."""
    record = find(cluster, command.target, command.caller)
    index = index_of(record, command.target.indices)
    if command.data and not is_owner(record, command.caller):
        raise Refused("User permission denied: only the owner of a job attaches data to it")
    words = (command.number, command.caller.user, command.text, command.level, command.data)
    return Decision([JobMessagePosted(now, record.id, index, *words)], reply=index)


def index_of(record: Job | ArrayRecord, indices: Ranges | None) -> int:
    """The element that a target names; 0 for a plain job, and for an array as a whole.

    Raises:
        Refused: several elements are named, or one that does not exist.
    """
    if indices is None or not isinstance(record, ArrayRecord):
        return 0
    if len(indices) != 1:
        raise Refused("One element of the array is expected: messages are those of a job or of one element")
    index = indices.first()
    if record.state_of(index) is None:
        raise Refused("No matching job found")
    return index


def with_reason(
    decide: Callable[[Cluster, Any, float], Decision], what: str
) -> Callable[[Cluster, Any, float], Decision]:
    """Decider that also notes the reason the command has, for each job and element that the command reaches."""

    def decided(cluster: Cluster, command: Controlling, now: float) -> Decision:
        if command.reason and command.target.role:
            raise Refused("A reason is kept for jobs as a whole, not for their tasks")
        decision = decide(cluster, command, now)
        if command.reason:
            decision.events = list(_noted(cluster, decision, command, what, now))
        return decision

    return decided


def _noted(cluster: Cluster, decision: Decision, command: Controlling, what: str, now: float) -> Iterator[e.Event]:
    """Events of the decision, each job's after the reason: an end is the last that its history tells."""
    said, rest = set[Key](), (command.caller.user, what, command.reason)
    for event in decision.events:
        if isinstance(event, _OF_WAITING):
            is_array = isinstance(cluster.jobs[event.job], ArrayRecord)
            yield ReasonGiven(now, Key(event.job, 0, 0), event.indices if is_array else None, *rest)
        elif isinstance(event, _OF_ATTEMPTS) and event.key not in said:
            said.add(event.key)
            yield ReasonGiven(now, event.key, None, *rest)
        yield event
    for order in decision.orders:
        if isinstance(order, SignalOrder) and order.key not in said:  # of post-execution commands: no event
            said.add(order.key)
            yield ReasonGiven(now, order.key, None, *rest)
