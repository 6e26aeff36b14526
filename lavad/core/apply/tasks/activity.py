"""Events of the activity of a job on its hosts: one function each. Nothing is decided here."""

from collections.abc import Callable
from typing import Any

from lavad.core import activity_events as a
from lavad.core.cluster import Cluster
from lavad.core.model.activity import ACTIVE, Activity, Hang
from lavad.core.state.records import Attempt


def adopt(cluster: Cluster, attempt: Attempt) -> None:
    """Note a restored attempt whose policy is still to act upon its hang."""
    hang = attempt.activity.hang
    if hang is not None and hang.due and not attempt.over:
        cluster.hanging[attempt.key] = hang.due


def forget_parts(cluster: Cluster, attempt: Attempt) -> None:
    """Count all parts of an attempt as active: it was suspended or resumed, or its tasks are started anew."""
    if attempt.activity is not ACTIVE:
        cluster.hanging.pop(attempt.key, None)
        attempt.activity = attempt.activity._replace(inactive=frozenset(), hang=None)


def host_left(attempt: Attempt, host: str) -> None:
    """Forget what a host that has released its part reported."""
    if attempt.activity is not ACTIVE:
        activity = attempt.activity
        unused = {name: since for name, since in activity.unused.items() if name != host}
        attempt.activity = activity._replace(inactive=activity.inactive - {host}, unused=unused)


def _change(attempt: Attempt, activity: Activity) -> None:
    attempt.activity = ACTIVE if activity == ACTIVE else activity


def _part(cluster: Cluster, event: a.PartActivity) -> None:
    attempt = cluster.attempts[event.key]
    hosts = attempt.activity.inactive
    changed = hosts | {event.host} if event.is_inactive else hosts - {event.host}
    _change(attempt, attempt.activity._replace(inactive=changed))


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
    unused = {name: since for name, since in attempt.activity.unused.items() if name != event.host}
    if event.seconds:
        unused[event.host] = event.at - event.seconds
    _change(attempt, attempt.activity._replace(unused=unused))


HANDLERS: dict[type, Callable[[Cluster, Any], None]] = {
    a.PartActivity: _part,
    a.JobHangs: _hangs,
    a.JobActive: _active,
    a.StacksSaved: _saved,
    a.HostUnused: _unused,
}
