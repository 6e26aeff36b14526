"""What time alone brings about: staging deadlines, silent hosts, hosts to be trusted again, old jobs to be
forgotten."""

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import FINISHED_KEPT, Cluster
from lavad.core.decide.decision import Decision
from lavad.core.decide.hosts import give_up_staging, silence
from lavad.core.model import Key


def tick(cluster: Cluster, command: c.Tick, now: float) -> Decision:
    """All that is due by now."""
    events = _overdue_staging(cluster, now)
    given_up = {event.key for event in events if isinstance(event, e.JobRequeued)}
    for host in cluster.hosts.values():
        if not host.is_silent and host.seen_at + cluster.policy.silent_after_s < now:
            events.extend(_without(silence(cluster, host, now), given_up))
            given_up |= {event.key for event in events if isinstance(event, e.JobRequeued)}
        elif 0 < host.avoid_until <= now:
            events.append(e.HostTrusted(now, host.facts.name))
    events.extend(_forget_finished(cluster, now))
    return Decision(events)


def _without(events: list[e.Event], given_up: set[Key]) -> list[e.Event]:
    """Two hosts of one attempt may fall due in the same tick: it is given up only once."""
    return [event for event in events if getattr(event, "key", None) not in given_up]


def _overdue_staging(cluster: Cluster, now: float) -> list[e.Event]:
    events: list[e.Event] = []
    for attempt in cluster.staging.values():
        if not attempt.launched and attempt.launch_due < now:
            missing = [share.host for share in attempt.allocation if share.host not in attempt.staged]
            events.extend(give_up_staging(cluster, attempt, missing, now))
    return events


def _forget_finished(cluster: Cluster, now: float) -> list[e.Event]:
    before = now - cluster.policy.clean_period_s
    if len(cluster.finished) > FINISHED_KEPT:
        before = max(before, _end_of_nth(cluster, len(cluster.finished) - FINISHED_KEPT))
    oldest = next(iter(cluster.finished.values()), None)
    oldest_array = next(iter(cluster.ended_arrays.values()), None)
    is_due = (oldest is not None and oldest.end is not None and oldest.end.at < before) or (
        oldest_array is not None and oldest_array < before
    )
    return [e.FinishedForgotten(now, before)] if is_due else []


def _end_of_nth(cluster: Cluster, count: int) -> float:
    for number, job in enumerate(cluster.finished.values()):
        if number >= count:
            return job.end.at if job.end is not None else 0.0
    return 0.0
