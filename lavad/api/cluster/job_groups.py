"""bgadd, bgmod, bgdel, bjgroup: messages to commands, and job groups for display."""

from collections import Counter

from lavad.api import checks
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.language.job_groups import checked, lineage
from lavad.core.model import FINAL, JobState
from lavad.core.model.reasons import Refused
from lavad.engine import Engine
from protos import cluster_pb2 as pb

_REMOVED = {
    pb.REMOVE_GROUP: c.Removed.ONE,
    pb.REMOVE_GROUPS_BELOW: c.Removed.BELOW,
    pb.REMOVE_GROUPS_OF_USER: c.Removed.OF_USER,
    pb.REMOVE_ALL_GROUPS: c.Removed.ALL,
}
# Columns of bjgroup; a job that starts, or whose host is silent, counts as running.
_COLUMNS = {
    JobState.PEND: "pend", JobState.PSUSP: "pend", JobState.STAGING: "run", JobState.RUN: "run",
    JobState.UNKWN: "run", JobState.ZOMBI: "run", JobState.SSUSP: "ssusp", JobState.USUSP: "ususp",
    **dict.fromkeys(FINAL, "finish"),
}  # fmt: skip


async def change(engine: Engine, request: pb.JobGroupRequest, caller: c.Caller) -> pb.JobGroupReply:
    """Create, change or delete job groups; the reply has their paths.

    Raises:
        Refused: one sentence says why not.
    """
    checks.check_texts(request)
    reply = await engine.execute(_command(request, caller))
    return pb.JobGroupReply(paths=[reply] if isinstance(reply, str) else reply)


def _command(request: pb.JobGroupRequest, caller: c.Caller) -> c.Command:
    if request.action in (pb.ADD_GROUP, pb.CHANGE_GROUP):
        limit = request.limit if request.HasField("limit") else None
        return c.SetJobGroup(request.name, limit, caller, request.action == pb.CHANGE_GROUP)
    if request.action in _REMOVED:
        name = request.name or (caller.user if request.action == pb.REMOVE_GROUPS_OF_USER else "")
        return c.RemoveJobGroups(_REMOVED[request.action], name, caller)
    raise Refused(f"Unknown action: {request.action}")


def groups_reply(cluster: Cluster, request: pb.JobGroupsRequest) -> pb.JobGroupsReply:
    """The named job groups, or all, by path; each counts the jobs below it, too."""
    reply = pb.JobGroupsReply()
    counted = cluster.counters.slots_by_group if request.slots else cluster.counters.jobs_by_group
    named = {name: cluster.job_groups.get(checked(name)) for name in request.names}
    reply.missing.extend(name for name, group in named.items() if group is None)
    wanted = [group for group in named.values() if group is not None] if named else list(cluster.job_groups)
    sums, kept = _summed(counted), _kept(cluster) if request.slots else Counter()
    for group in sorted(wanted, key=lambda one: one.path):
        record = reply.groups.add(path=group.path, owner=group.owner)
        for column, number in sums.get(group.path, {}).items():
            setattr(record, column, number)
        if request.slots:
            record.reserved = kept[group.path]
        record.started = cluster.limits.used_by_group(group.path)
        if group.limit is not None:
            record.limit = group.limit
    return reply


def _kept(cluster: Cluster) -> Counter[str]:
    """Slots that each group, with all below it, has reserved for pending jobs."""
    found: Counter[str] = Counter()
    for shared, slots in cluster.kept_slots():
        for path in lineage(shared.job_group):
            found[path] += slots
    return found


def _summed(counted: Counter[tuple[str, JobState]]) -> dict[str, Counter[str]]:
    """Numbers of each group and all below it, by column."""
    found: dict[str, Counter[str]] = {}
    for (own, state), number in counted.items():
        for path in lineage(own):
            found.setdefault(path, Counter())[_COLUMNS[state]] += number
    return found
