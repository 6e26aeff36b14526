"""bgadd, bgmod, bgdel, bjgroup: messages to commands, and job groups for display."""

from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Set

from lavad.api.privacy import Sight
from lavad.api.slices import Slices
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.language.job_groups import ROOT, checked, lineage
from lavad.core.model import FINAL, JobState
from lavad.core.model.reasons import Refused
from lavad.engine import Engine
from protos import cluster_pb2 as pb

NAMES_MAX = 10_000
PAGE_BYTES = 256 << 10
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


async def pages(
    cluster: Cluster, request: pb.JobGroupsRequest, sight: Sight
) -> AsyncGenerator[pb.JobGroupsReply, None]:
    """Yield the named job groups, or all, by path; each counts the jobs below it, too.

    A group of a user whose jobs the caller may not see does not exist for the caller.

    Raises:
        Refused: a name is not the path of a job group, or there are too many.
    """
    slices = Slices()
    wanted, missing = await _wanted(cluster, request, slices, sight)
    numbers = await _numbers(cluster, _with_those_below(cluster, wanted), request.slots, slices)
    page, size = pb.JobGroupsReply(missing=missing), 0
    for path in sorted(wanted):
        await slices.check()
        group = cluster.job_groups.get(path)
        if group is None:  # deleted since
            continue
        record = page.groups.add(path=path, owner=group.owner, limit=group.limit, **numbers[path])
        record.started = cluster.limits.used_by_group(path)
        size += record.ByteSize()
        if size >= PAGE_BYTES:
            yield page
            page, size = pb.JobGroupsReply(), 0
    yield page


async def _wanted(
    cluster: Cluster, request: pb.JobGroupsRequest, slices: Slices, sight: Sight
) -> tuple[Set[str], list[str]]:
    """Paths of the groups to show, and the names of those that are not there."""
    if not request.names:
        return {group.path for group in cluster.job_groups if sight.has_summary_of(group.owner, "")}, []
    if len(request.names) > NAMES_MAX:
        raise Refused(f"More than {NAMES_MAX} job groups were named at once")
    wanted, missing = set[str](), list[str]()
    for name in request.names:
        await slices.check()
        path = checked(name)
        group = cluster.job_groups.get(path)
        if group is not None and sight.has_summary_of(group.owner, ""):
            wanted.add(path)
        else:
            missing.append(name)
    return wanted, missing


def _with_those_below(cluster: Cluster, wanted: Set[str]) -> Iterator[str]:
    """Each wanted group and all below it, once, after those below it."""
    for path in wanted:
        if not any(one in wanted for one in lineage(_above(path))):
            yield from cluster.job_groups.below(path)


def _above(path: str) -> str:
    return path.rpartition(ROOT)[0]


async def _numbers(cluster: Cluster, paths: Iterable[str], has_slots: bool, slices: Slices) -> dict[str, Counter[str]]:
    """Numbers of each group and all below it, by column: each is added to the group above once it is complete."""
    counted = cluster.counters.slots_by_group if has_slots else cluster.counters.jobs_by_group
    kept = Counter[str]()  # slots that each group itself has reserved for pending jobs
    for shared, slots in cluster.kept_slots() if has_slots else ():
        kept[shared.job_group] += slots
    found: dict[str, Counter[str]] = {}
    for path in paths:
        await slices.check()
        numbers = found.setdefault(path, Counter())
        for state, column in _COLUMNS.items():
            if number := counted.get((path, state)):
                numbers[column] += number
        if path in kept:
            numbers["reserved"] += kept[path]
        if above := _above(path):
            found.setdefault(above, Counter()).update(numbers)
    return found
