"""Reconfiguration: derive all that depends on the configuration anew."""

from lavad.core.apply import allocate, charge, enqueue
from lavad.core.cluster import Cluster
from lavad.core.model import HostFacts
from lavad.core.model.policy import Policy
from lavad.core.state.counters import PendingCounters
from lavad.core.state.hosts.load_thresholds import LoadThresholds
from lavad.core.state.jobs.absolute_priorities import AbsolutePriorities
from lavad.core.state.pools import Pools
from lavad.core.state.preemptable import PreemptableJobs, PreemptionRules
from lavad.core.state.records import ArrayRecord


def take_policy(cluster: Cluster, policy: Policy) -> None:
    """Put another policy into effect, and derive all that depends on it anew; jobs stay as they are."""
    had_growth, had_absolute = cluster.policy.priority_growth, cluster.absolute
    cluster.applied += 1
    cluster.configured = policy
    cluster.table.configure(policy)
    for host in cluster.hosts.values():
        for share in (*host.attempts.values(), *host.claims.values()):
            cluster.table.move_resources(host.row, share.resources, 1)
    cluster.timed_rusage.let_go_again(cluster.table)
    cluster.take_queue_states()
    charge.recount(cluster)
    cluster.counters.take_waiting(PendingCounters(policy))
    _count_kinds(cluster, policy)
    cluster.preemption_rules = PreemptionRules(policy)
    if cluster.preemption_rules.victims != cluster.preemptable.queues:
        cluster.preemptable = PreemptableJobs(cluster.preemption_rules.victims)
        for job in cluster.live_jobs():
            cluster.preemptable.note(job)
    for job in cluster.live_jobs():
        if job.attempt is not None:
            cluster.migrations.follow(policy, job, job.attempt)
    cluster.load_rules = LoadThresholds(policy)
    for name in cluster.hosts:
        cluster.check_load(name)
    cluster.pools = Pools(policy)
    for name, host in cluster.hosts.items():
        cluster.pools.note_host(name, host.facts.slots)
    for attempt in cluster.attempts.values():
        held = [share for share in attempt.booked if share.host in attempt.unreleased]
        allocate.enter_in_pool(cluster, attempt, held)
    cluster.absolute = AbsolutePriorities(policy)
    is_like = cluster.absolute.is_like(had_absolute) and had_growth == cluster.policy.priority_growth
    if is_like:
        cluster.absolute = had_absolute
    sort_pending(cluster, not is_like)


def _count_kinds(cluster: Cluster, policy: Policy) -> None:
    """Count jobs by what decides their service class while there are classes."""
    counters = cluster.counters
    if not policy.service_classes:
        counters.forget_kinds()
    elif not counters.keeps_kinds:
        counters.count_kinds(enqueue.counted(cluster.jobs.values()))


def note_exclusive(cluster: Cluster, facts: HostFacts) -> None:
    """Keep jobs off a host that not all may use: they differ by that from now on."""
    if not facts.exclusive_resources <= cluster.pending.exclusive:
        sort_pending(cluster)


def sort_pending(cluster: Cluster, is_reordered: bool = False) -> None:
    """Sort pending jobs into buckets again if other attributes distinguish them now."""
    pending = cluster.new_pending_index()
    if is_reordered or not pending.is_like(cluster.pending):
        for bucket in cluster.pending.buckets.values():
            for entry in bucket:
                record = enqueue.pending_record(cluster, entry.job)
                assert record is not None, f"{entry} does not wait"
                is_array = isinstance(record, ArrayRecord) or record.index > 0
                pending.add(record.shared, enqueue.entry(cluster, record), is_array)
                if record.shared.queue in cluster.absolute.rules:
                    cluster.absolute.note(record)
        cluster.pending = pending
