"""Automatic migration (MIG): a job that has been suspended by the system for long enough leaves its host, as by bmig.

It may come back there: what has suspended it keeps it off the host for as long as that lasts, and a job that excluded
each of its hosts for good would wait for ever in the end.
"""

from collections.abc import Iterator

from lavad.core import activity_events as a
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.checkpoints.requests import check_can_be_made
from lavad.core.decide.jobs.requeue import ended_and_requeued
from lavad.core.model import BY_USER, JobState, Key
from lavad.core.model import reasons as r
from lavad.core.model.reasons import Refused
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Job

AGAIN_S = 300.0  # until the next try of a job that did not leave: its checkpoint failed, or its host is silent


def migration_events(cluster: Cluster, now: float) -> Iterator[e.Event]:
    """Events for the jobs whose time to migrate has come."""
    for key in cluster.migrations.take_due(now):
        attempt, job = cluster.attempts.get(key), cluster.holder(key)
        if attempt is None or job is None or not attempt.suspended or BY_USER in attempt.suspended:
            continue
        cluster.migrations.note(key, now + AGAIN_S)
        if job.state is JobState.SSUSP:
            yield from _migrated(cluster, key, job, attempt, now)


def _migrated(cluster: Cluster, key: Key, job: Job, attempt: Attempt, now: float) -> Iterator[e.Event]:
    if not job.shared.special.checkpointable:
        reason = r.SUSPENDED_FOR_LONG
        yield from ended_and_requeued(cluster, job, attempt, reason, "", False, now, "")
        return
    try:
        check_can_be_made(cluster, job)
    except Refused:  # another checkpoint is being made, or its host is silent: it is tried again
        return
    yield a.CheckpointAsked(now, key, "", ends=True, migrates=True, may_stay=True)
