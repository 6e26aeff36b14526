"""Reconfiguration, and administrators' commands on queues."""

from dataclasses import replace

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision
from lavad.core.events import HostGroupChanged, PolicyChanged, QueueRuled
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.names import MemberChange
from lavad.core.model.rules.queues import Queue
from lavad.core.state.records import QueueState

GONE = "Not in lsb.queues any more; its jobs wait to be switched or killed."


def reconfigure(cluster: Cluster, command: c.Reconfigure, now: float) -> Decision:
    """Put another policy into effect for all later decisions. No job is lost: running ones go on."""
    gone = [name for name in command.gone_groups if name in cluster.group_changes]
    forgotten = [HostGroupChanged(now, name, MemberChange()) for name in gone]
    return Decision([*forgotten, PolicyChanged(now, _with_removed(cluster, command.policy))])


def change_host_group(cluster: Cluster, command: c.ChangeHostGroup, now: float) -> Decision:
    """Add hosts to a host group (badmin hghostadd) or delete them from it (hghostdel): all of them, or none."""
    hosts, by = tuple(dict.fromkeys(command.hosts)), command.caller.user
    change = changed_members(cluster, command.group, hosts, command.is_added, command.caller, command.against_files)
    event = HostGroupChanged(now, command.group, change, hosts, command.is_added, by, command.comment)
    return Decision([event, PolicyChanged(now, _with_removed(cluster, command.policy))])


def changed_members(
    cluster: Cluster,
    group: str,
    hosts: tuple[str, ...],
    is_added: bool,
    caller: c.Caller,
    against_files: frozenset[str] = frozenset(),
) -> MemberChange:
    """Return all changes of a host group's members, with the addition or deletion of these hosts.

    Raises:
        Refused: there is no such group or host, or it would change nothing.
    """
    if not caller.is_administrator:
        raise Refused("User permission denied")
    _check_group(cluster.policy, group)
    members, rows = cluster.policy.host_groups[group], {row.name for row in cluster.policy.host_group_rows}
    for host in hosts:
        if host in rows:
            raise Refused(f"{host} is a host group: name hosts, one by one")
        is_member = host in members
        if is_added and host not in cluster.hosts and host not in cluster.policy.known_hosts:
            raise Refused(f"{host}: Bad host name")
        if is_member is is_added:
            raise Refused(f"{host} is {'already' if is_member else 'not'} a member of host group {group}")
    before, named = cluster.group_changes.get(group, MemberChange()), frozenset(hosts)
    if is_added:
        return MemberChange(before.added | (named - before.deleted) | against_files, before.deleted - named)
    return MemberChange(before.added - named, before.deleted | (named - before.added) | against_files)


def _check_group(policy: Policy, group: str) -> None:
    """Refuse a name that is no host group or host partition of lsb.hosts, or whose members are not in the files."""
    row = next((row for row in policy.host_group_rows if row.name == group), None)
    if any(unit.name == group for unit in policy.compute_units):
        raise Refused(f"{group} is a compute unit: its members are those of lsb.hosts")
    if group == "all":
        raise Refused("all stands for every host: name a host group of lsb.hosts")
    if row is None:
        raise Refused(f"{group}: No such host group")
    if row.is_external:
        raise Refused(f"{group} has the members that egroup names: change them there, then badmin reconfig")


def _with_removed(cluster: Cluster, policy: Policy) -> Policy:
    """The policy with the queues that it has dropped but that still hold jobs: closed and inactive.

    The configuration of such a queue is kept; after a restart only its name is known. Earlier badmin commands do not
    open it again.
    """
    used = {queue for (queue, _), slots in cluster.counters.slots_by_queue.items() if slots}
    removed = sorted(name for name in used if policy.queue(name) is None)
    if not removed:
        return policy
    known = cluster.configured.by_name
    shut = [_shut(known.get(name) or Queue(name)) for name in removed]
    return replace(policy, queues=(*policy.queues, *shut))


def _shut(queue: Queue) -> Queue:
    return replace(queue, description=GONE, open=False, active=False, is_removed=True)


def rule_queue(cluster: Cluster, command: c.RuleQueue, now: float) -> Decision:
    """Open, close, activate or inactivate a queue (badmin qopen, qclose, qact, qinact), by an administrator of the
    cluster or of the queue."""
    queue = cluster.policy.queue(command.queue)
    if queue is None:
        raise Refused(f"{command.queue}: No such queue")
    if queue.is_removed:
        raise Refused(f"{queue.name}: {GONE}")
    caller = command.caller
    if not caller.is_administrator and caller.user not in queue.administrators:
        raise Refused("User permission denied")
    before = cluster.queue_states.get(queue.name, QueueState(queue.open, queue.active))
    is_open, is_active = before.is_open, before.is_active
    match command.action:
        case c.QueueAction.OPEN | c.QueueAction.CLOSE:
            is_open = command.action is c.QueueAction.OPEN
        case c.QueueAction.ACTIVATE | c.QueueAction.INACTIVATE:
            is_active = command.action is c.QueueAction.ACTIVATE
    return Decision([QueueRuled(now, queue.name, is_open, is_active, caller.user, command.comment)])
