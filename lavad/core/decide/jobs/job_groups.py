"""bgadd, bgmod, bgdel, and the job groups that come to exist with their first job.

Any user may create a group and attach jobs to any group. The owner of a group, the owners of those above it and
administrators may change and delete it. What DEFAULT_JOBGROUP means for one user, by its %u, no other user creates;
what it means for all, only administrators change: a limit there would keep jobs of others from starting. A group with
jobs, ended ones that memory still has included, is not deleted.
"""

from collections.abc import Iterable
from contextlib import suppress

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision, denial
from lavad.core.job_group_events import JobGroup, JobGroupSet, JobGroupsRemoved
from lavad.core.language.job_groups import check_depth, checked, filled_in, is_for_all, is_of_another, lineage
from lavad.core.model import JobState, Shared
from lavad.core.model.reasons import Refused

GROUPS_MAX = 100_000  # all are in memory, and in each answer of bjgroup
OWNED_MAX = 5_000  # of one user, so that the others have room
LIMIT_MAX = (1 << 31) - 1


def new_groups(cluster: Cluster, shared: Shared, caller: c.Caller, now: float) -> list[JobGroupSet]:
    """Events of the groups that a job is the first in: its own, and those above it.

    Raises:
        Refused: the path is too deep or another user's, or there are too many groups already.
    """
    owner = caller if caller.uid == shared.uid else c.Caller(shared.user, shared.uid)
    missing = _missing(cluster, shared.job_group, owner, shared)
    return [JobGroupSet(now, JobGroup(path, shared.user, shared.uid, now), shared.user) for path in missing]


def _missing(cluster: Cluster, path: str, owner: c.Caller, job: Shared | None = None) -> list[str]:
    """Paths to create for the group, or for a job in it, the highest first; an older database may have deeper ones."""
    missing = cluster.job_groups.missing(path)
    if missing:
        check_depth(path)
        default = cluster.policy.default_job_group
        if is_of_another(path, owner.user, default) and not owner.is_administrator:
            raise Refused(
                f"{path}: DEFAULT_JOBGROUP is {default}: this job group is created by the user whom it names, "
                "or by an administrator"
            )
        _check_number(cluster, len(missing), owner, job)
    return missing


def _check_number(cluster: Cluster, more: int, owner: c.Caller, job: Shared | None) -> None:
    """Bound the groups of each user, and those of all; but a job without -g is not refused for what others have."""
    if cluster.job_groups.owned(owner.uid) + more > OWNED_MAX and not owner.is_administrator:
        raise Refused(f"User {owner.user} may own {OWNED_MAX} job groups; bgdel 0 removes those without jobs")
    if len(cluster.job_groups) + more > GROUPS_MAX and (job is None or not _is_default(cluster, job)):
        raise Refused(f"There are {GROUPS_MAX} job groups already; bgdel removes those without jobs")


def _is_default(cluster: Cluster, job: Shared) -> bool:
    """True if DEFAULT_JOBGROUP would give the job the group that it has."""
    default = cluster.policy.default_job_group
    with suppress(Refused):  # too long for a path, as the job's project may make it
        return bool(default) and job.job_group == checked(filled_in(default, job.user, job.project))
    return False


def set_group(cluster: Cluster, command: c.SetJobGroup, now: float) -> Decision:
    """Create a job group and those above it (bgadd), or set its limit (bgmod); the reply is its path."""
    path, caller = _path(command.path), command.caller
    if command.limit is not None and not 0 <= command.limit <= LIMIT_MAX:
        raise Refused(f"-L: the number of jobs is from 0 to {LIMIT_MAX}")
    if command.exists:
        group = _known(cluster, path)
        _check_rights(cluster, path, caller)
        changed = JobGroup(path, group.owner, group.uid, group.created_at, command.limit)
        return Decision([JobGroupSet(now, changed, caller.user)], reply=path)
    if path in cluster.job_groups:
        raise Refused(f"{path}: Job group exists already")
    if command.limit is not None and not caller.is_administrator and _is_for_all(cluster, path):
        raise Refused(f"{path}: DEFAULT_JOBGROUP puts the jobs of all users there: only administrators limit it")
    missing = _missing(cluster, path, caller)
    made = [JobGroup(one, caller.user, caller.uid, now, command.limit if one == path else None) for one in missing]
    return Decision([JobGroupSet(now, one, caller.user) for one in made], reply=path)


def _path(text: str) -> str:
    path = checked(text)
    if not path:
        raise Refused("/: the root job group is always there, and has no limit")
    return path


def _known(cluster: Cluster, path: str) -> JobGroup:
    group = cluster.job_groups.get(path)
    if group is None:
        raise Refused(f"{path}: No such job group")
    return group


def _check_rights(cluster: Cluster, path: str, caller: c.Caller) -> None:
    if not _may_change(cluster, path, caller):
        raise Refused(f"{path}: {denial(caller)}")


def _may_change(cluster: Cluster, path: str, caller: c.Caller) -> bool:
    owners = (cluster.job_groups.get(one) for one in lineage(path) if not _is_for_all(cluster, one))
    return caller.is_administrator or any(one is not None and one.uid == caller.uid for one in owners)


def _is_for_all(cluster: Cluster, path: str) -> bool:
    return is_for_all(path, cluster.policy.default_job_group)


def remove(cluster: Cluster, command: c.RemoveJobGroups, now: float) -> Decision:
    """Delete a job group, or several as far as they are empty (bgdel); the reply are their paths."""
    caller = command.caller
    if command.what is c.Removed.ONE:
        paths = [_removable(cluster, _path(command.name), caller)]
    elif command.what is c.Removed.BELOW:
        path = _path(command.name)
        _known(cluster, path)
        _check_rights(cluster, path, caller)
        paths = _empty(cluster, cluster.job_groups.below(path))
    else:
        is_of_all = command.what is c.Removed.ALL
        if (is_of_all or command.name != caller.user) and not caller.is_administrator:
            raise Refused(denial(caller))
        owned = (one for one in cluster.job_groups.below("") if is_of_all or _owner(cluster, one) == command.name)
        paths = _empty(cluster, (one for one in owned if _may_change(cluster, one, caller)))
    if not paths:
        raise Refused("No empty job group found")
    return Decision([JobGroupsRemoved(now, tuple(paths), caller.user)], reply=paths)


def _owner(cluster: Cluster, path: str) -> str:
    group = cluster.job_groups.get(path)
    return group.owner if group is not None else ""


def _removable(cluster: Cluster, path: str, caller: c.Caller) -> str:
    _known(cluster, path)
    _check_rights(cluster, path, caller)
    if cluster.job_groups.children(path):
        raise Refused(f"{path}: Job group has other job groups below it; -c deletes those without jobs, too")
    if _has_jobs(cluster, path):
        raise Refused(f"{path}: Job group has jobs; ended ones leave it with CLEAN_PERIOD")
    return path


def _has_jobs(cluster: Cluster, path: str) -> bool:
    counted = cluster.counters.jobs_by_group
    return any(counted[path, state] for state in JobState)


def _empty(cluster: Cluster, paths: Iterable[str]) -> list[str]:
    """Those without jobs all of whose groups below are empty, too; ``paths`` has these before them."""
    gone: dict[str, None] = {}
    for path in paths:
        if not _has_jobs(cluster, path) and all(one in gone for one in cluster.job_groups.children(path)):
            gone[path] = None
    return list(gone)
