"""Reconfiguration, and administrators' commands on queues."""

from dataclasses import replace

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision
from lavad.core.events import PolicyChanged, QueueRuled
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.queues import Queue
from lavad.core.state.records import QueueState

GONE = "Not in lsb.queues any more; its jobs wait to be switched or killed."


def reconfigure(cluster: Cluster, command: c.Reconfigure, now: float) -> Decision:
    """Put another policy into effect for all later decisions. No job is lost: running ones go on."""
    return Decision([PolicyChanged(now, _with_removed(cluster, command.policy))])


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
