"""Counts of the master and its cluster: badmin showstatus."""

import os
from collections.abc import Sequence

from lavad.core.cluster import Cluster
from lavad.core.model import WAITING, JobState
from protos import cluster_pb2 as pb

_SUSPENDED = {JobState.USUSP, JobState.SSUSP}


def status_reply(
    cluster: Cluster, started_at: float, reconfigured_at: float, problems: Sequence[str]
) -> pb.StatusReply:
    """Count jobs and users as of now, and list the master's problems."""
    reply = pb.StatusReply(
        pid=os.getpid(),
        started=started_at,
        reconfigured=reconfigured_at,
        finished=len(cluster.finished),
        user_groups=len(cluster.policy.user_groups),
        problems=problems,
    )
    users, running = set(), set()
    for (user, state), count in cluster.counters.jobs_by_user.items():
        if count <= 0:
            continue
        users.add(user)
        if state in WAITING:
            reply.pending += count
            continue
        running.add(user)
        if state in _SUSPENDED:
            reply.suspended += count
        else:
            reply.running += count
    reply.users, reply.running_users = len(users), len(running)
    return reply
