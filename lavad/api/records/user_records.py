"""User and group records of busers, bugroup and bmgroup."""

from collections.abc import Iterable, Iterator, Mapping

from lavad.api.privacy import Sight
from lavad.api.records import whole_hosts
from lavad.api.records.whole_hosts import Beyond
from lavad.api.slices import Slices
from lavad.core.cluster import Cluster
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.users import GroupRow, UserRule
from lavad.core.state.hosts.table import natural
from protos import cluster_pb2 as pb

S = JobState
DEFAULT = "default"
_NO_RULE = UserRule()


async def users_reply(cluster: Cluster, request: pb.UsersRequest, caller: str, sight: Sight) -> pb.UsersReply:
    """List the caller, the named users, or all users with jobs or a row in lsb.users; then the groups of lsb.users.

    A user without jobs is known by a row, a group, or the account that the caller's host has. One whose jobs the caller
    may not see is listed without any, if asked for by name.
    """
    policy = cluster.policy
    known = {user for user, _ in cluster.counters.slots_by_user} | policy.user_rules.keys()
    groups = {row.name for row in policy.user_group_rows}
    visible = {user for user in known - groups if sight.has_summary_of(user, "")}
    everybody = (*sorted(visible, key=natural), *sorted(groups, key=natural))
    names = list(everybody if request.everybody else request.names) or [caller]
    more = list(whole_hosts.beyond(cluster)) if request.allocated else []
    accounts, reply, slices = frozenset(request.accounts), pb.UsersReply(), Slices()
    for name in names:
        await slices.check()
        is_known = name in known or name in policy.user_groups or name in (DEFAULT, caller)
        if is_known or name in accounts or _may_submit(policy, name):
            reply.users.append(_user(cluster, name, more, sight))
        else:
            reply.missing.append(name)
    return reply


def _may_submit(policy: Policy, name: str) -> bool:
    """Return True if a user group of the files lists this user."""
    return any(not group.is_all and name in group.names for group in policy.user_groups.values())


def _user(cluster: Cluster, name: str, more: Iterable[Beyond], sight: Sight) -> pb.UserRecord:
    policy, counters = cluster.policy, cluster.counters
    members = policy.user_groups.get(name)
    record = pb.UserRecord(name=name, is_group=members is not None)
    _add_rule(record, rule_of(policy, name) if members is None else _rule_of_group(policy, name))
    users = [name] if members is None else sorted({user for user, _ in counters.slots_by_user if user in members})
    users = [user for user in users if sight.has_summary_of(user, "")]
    for user in users:
        counts = {state: counters.slots_by_user[user, state] for state in JobState}
        record.pend += counts[S.PEND] + counts[S.PSUSP]
        record.run += counts[S.STAGING] + counts[S.RUN] + counts[S.UNKWN] + counts[S.ZOMBI]
        record.ssusp += counts[S.SSUSP]
        record.ususp += counts[S.USUSP]
        record.pending_jobs += counters.jobs_by_user[user, S.PEND] + counters.jobs_by_user[user, S.PSUSP]
    whole_hosts.add(record, (one for one in more if one.shared.user in users))
    record.rsv = sum(kept for shared, kept in cluster.kept_slots() if shared.user in users)
    record.njobs = record.pend + record.run + record.ssusp + record.ususp
    return record


def rule_of(policy: Policy, user: str) -> UserRule:
    """Return the row that applies to a user: its own, that of ``group@``, or the default."""
    own = policy.user_rules.get(user)
    if own is not None or user == DEFAULT:
        return own or _NO_RULE
    for group, rule in policy.each_user_rules.items():
        if user in policy.user_groups.get(group, ()):
            return rule
    return policy.user_rules.get(DEFAULT, _NO_RULE)


def _rule_of_group(policy: Policy, group: str) -> UserRule:
    """Return the row that applies to a group as a whole: its own, or the default unless that is for users only."""
    own = policy.user_rules.get(group)
    if own is not None or policy.default_limits_ignore_groups or group in policy.each_user_rules:
        return own or _NO_RULE
    return policy.user_rules.get(DEFAULT, _NO_RULE)


def _add_rule(record: pb.UserRecord, rule: UserRule) -> None:
    if rule.slots is not None:
        record.max = rule.slots
    if rule.slots_per_processor is not None:
        record.per_processor = rule.slots_per_processor
    if rule.pending_slots is not None:
        record.pend_max = rule.pending_slots
    if rule.pending_jobs is not None:
        record.pending_jobs_max = rule.pending_jobs


def groups_reply(policy: Policy, request: pb.GroupsRequest, hosts: Iterable[str] = ()) -> pb.GroupsReply:
    """List groups of users, or of hosts followed by compute units and host partitions, in the order of their file.

    ``flat`` replaces inner groups by their members, and expands ``all`` to ``hosts``, which run jobs.
    """
    chosen = (
        _host_groups(policy, request, hosts)
        if request.hosts
        else _groups(policy.user_group_rows, policy.user_groups, request)
    )
    records = list(chosen)
    known = {record.name for record in records}
    wanted = [record for record in records if not request.names or record.name in request.names]
    return pb.GroupsReply(groups=wanted, missing=[name for name in request.names if name not in known])


def _host_groups(policy: Policy, request: pb.GroupsRequest, hosts: Iterable[str]) -> Iterator[pb.GroupRecord]:
    known = frozenset(hosts)
    flat = {name: _finite(group, known) for name, group in policy.host_groups.items()}
    if not request.units_only:
        yield from _groups(policy.host_group_rows, flat, request)
    for unit in policy.compute_units:
        yield pb.GroupRecord(
            name=unit.name, type=unit.type, members=_flat(unit.hosts) if request.flat else unit.members
        )
    for partition in () if request.units_only else policy.host_partitions:
        members = _flat(_finite(partition.hosts, known)) if request.flat else partition.written
        yield pb.GroupRecord(name=partition.name, members=members)


def _finite(group: Names, known: frozenset[str]) -> Names:
    """Return a group with ``all`` replaced by the hosts that run jobs."""
    return Names(False, known - group.names) if group.is_all and known else group


def _groups(
    rows: Iterable[GroupRow], members: Mapping[str, Names], request: pb.GroupsRequest
) -> Iterator[pb.GroupRecord]:
    for row in rows:
        shown = _flat(members[row.name]) if request.flat else row.members
        record = pb.GroupRecord(name=row.name, members=shown, administrators=sorted(row.administrators))
        for name, number in row.shares:
            record.shares.add(name=name, shares=number)
        yield record


def _flat(members: Names) -> Iterable[str]:
    names = sorted(members.names, key=natural)
    return ["all", *(f"~{name}" for name in names)] if members.is_all else names
