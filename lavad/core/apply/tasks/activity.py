"""Events of the activity of a job on its hosts: one function each. Nothing is decided here."""

from collections.abc import Callable, Mapping
from typing import Any

from lavad.core import activity_events as a
from lavad.core.cluster import Cluster
from lavad.core.model.activity import ACTIVE, Activity, Hang
from lavad.core.state.attempts import Attempt
from lavad.core.state.jobs.checkpoints import CheckpointRequest
from lavad.core.state.jobs.external_statuses import STATUS


def adopt(cluster: Cluster, attempt: Attempt) -> None:
    """Note a restored attempt whose policy is still to act upon its hang."""
    hang = attempt.activity.hang
    if hang is not None and hang.due and not attempt.over:
        cluster.hanging[attempt.key] = hang.due


def forget_parts(cluster: Cluster, attempt: Attempt) -> None:
    """Count all parts of an attempt as active: it was suspended or resumed, or its tasks are started anew."""
    if attempt.activity is not ACTIVE:
        cluster.hanging.pop(attempt.key, None)
        attempt.activity = attempt.activity._replace(inactive={}, hang=None)


def host_left(cluster: Cluster, attempt: Attempt, host: str) -> None:
    """Forget what a host reported that has released its part."""
    if attempt.activity is not ACTIVE:
        activity = attempt.activity
        inactive, unused = _without(activity.inactive, host), _without(activity.unused, host)
        _change(attempt, activity._replace(inactive=inactive, unused=unused))
        look_at_parts(cluster, attempt)


def session_began(attempt: Attempt, host: str) -> None:
    """Count the host's part as active until it says otherwise in its new session; that it has no process of the job,
    which is told once, is so until it says otherwise."""
    if host in attempt.activity.inactive:
        _change(attempt, attempt.activity._replace(inactive=_without(attempt.activity.inactive, host)))


def look_at_parts(cluster: Cluster, attempt: Attempt) -> None:
    """Note an attempt whose parts have changed otherwise than by a report: those left may all be inactive."""
    if attempt.activity.inactive and not attempt.over:
        cluster.parts_changed.add(attempt.key)


def _without(times: Mapping[str, float], host: str) -> dict[str, float]:
    return {name: since for name, since in times.items() if name != host}


def _change(attempt: Attempt, activity: Activity) -> None:
    attempt.activity = ACTIVE if activity == ACTIVE else activity


def _part(cluster: Cluster, event: a.PartActivity) -> None:
    attempt = cluster.attempts[event.key]
    inactive = _without(attempt.activity.inactive, event.host)
    if event.inactive_s > 0:
        inactive[event.host] = event.at - event.inactive_s
    _change(attempt, attempt.activity._replace(inactive=inactive))


def _hangs(cluster: Cluster, event: a.JobHangs) -> None:
    attempt = cluster.attempts[event.key]
    number = attempt.activity.hangs + 1
    hang = Hang(event.at, event.inactive_s, number, event.due)
    attempt.activity = attempt.activity._replace(hang=hang, hangs=number)
    if event.due:
        cluster.hanging[event.key] = event.due


def _active(cluster: Cluster, event: a.JobActive) -> None:
    cluster.hanging.pop(event.key, None)
    attempt = cluster.attempts[event.key]
    attempt.activity = attempt.activity._replace(hang=None)


def _saved(cluster: Cluster, event: a.StacksSaved) -> None:
    attempt = cluster.attempts[event.key]
    hang = attempt.activity.hang
    if hang is not None:
        stacks = (*hang.stacks, (event.host, event.path or event.words))
        attempt.activity = attempt.activity._replace(hang=hang._replace(stacks=stacks))


def _unused(cluster: Cluster, event: a.HostUnused) -> None:
    attempt = cluster.attempts[event.key]
    unused = _without(attempt.activity.unused, event.host)
    if event.seconds:
        unused[event.host] = event.at - event.seconds
    _change(attempt, attempt.activity._replace(unused=unused))


def _checkpoint_asked(cluster: Cluster, event: a.CheckpointAsked) -> None:
    attempt = cluster.attempts[event.key]
    number = attempt.checkpoints.number + 1
    asked = CheckpointRequest(number, event.force, event.ends, event.migrates, event.may_stay)
    attempt.checkpoints = attempt.checkpoints._replace(number=number, open=asked)


def _checkpoint_ended(cluster: Cluster, event: a.CheckpointEnded) -> None:
    """Close the request, but for one that the job is to end by: what it says holds until the job has ended."""
    attempt = cluster.attempts[event.key]
    found = attempt.checkpoints._replace(known=event.began)
    is_open = found.open is not None and found.open.number == event.number
    if is_open and (event.error or not event.ends):
        found = found._replace(open=None)
    attempt.checkpoints = found


def _posted(cluster: Cluster, event: a.JobMessagePosted) -> None:
    """Keep the first word of an external status, for conditions; all else of messages is in the store only."""
    if event.number == STATUS:
        cluster.external_statuses.put(event.job, event.index, event.text)
        cluster.dependants.note_status(event.job, event.index)


def _said(_cluster: Cluster, _event: a.ReasonGiven) -> None:
    """Leave the state: the history alone has it."""


HANDLERS: dict[type, Callable[[Cluster, Any], None]] = {
    a.PartActivity: _part,
    a.JobHangs: _hangs,
    a.JobActive: _active,
    a.StacksSaved: _saved,
    a.HostUnused: _unused,
    a.CheckpointAsked: _checkpoint_asked,
    a.CheckpointEnded: _checkpoint_ended,
    a.JobMessagePosted: _posted,
    a.ReasonGiven: _said,
}
