"""Host records of bhosts, lsload and lshosts: facts, load and slots by job state."""

from lavad.api.records.queue_records import threshold_record
from lavad.api.records.whole_hosts import slots_beyond
from lavad.core.cluster import Cluster
from lavad.core.decide.clock import exit_rates
from lavad.core.model import HostFacts, HostShare, JobState, Key
from lavad.core.state.records import Host
from protos import cluster_pb2 as pb

S = JobState


def host_record(
    cluster: Cluster,
    host: Host,
    told: pb.HostFacts | None,
    load: pb.Load | None,
    now: float,
    *,
    allocated: bool = False,
    processors: bool = False,
) -> pb.HostRecord:
    """Build a host's record.

    Args:
        told: the newest facts from its agent.
        load: the newest load from there.
        allocated: an exclusive job counts all slots of the host.
        processors: tell which ones jobs are bound to.
    """
    name, table = host.facts.name, cluster.table
    record = pb.HostRecord(
        status=_status(cluster, host),
        is_exceptional=host.closed_by == exit_rates.BY,
        slots_max=host.facts.slots,
        last_seen=host.seen_at,
        revoked_at=host.leaves_at,
        comment=host.comment,
        memory_reserved_mib=max(0, host.facts.memory_mib - int(table.memory_free_mib[host.row])),
        rsv=_kept(cluster, host, now),
    )
    record.facts.CopyFrom(told if told is not None else _known_facts(host))
    _as_configured(record.facts, host.facts)
    rule = cluster.policy.host_rule(name, host.offered.model, host.offered.type)
    record.thresholds.extend(map(threshold_record, rule.thresholds))
    record.dispatch_window = rule.window_text
    if rule.migration_s is not None:
        record.migration_s = rule.migration_s
    if rule.user_slots is not None:
        record.per_user = rule.user_slots
    for lock_id, one in host.lock_ids.items():
        record.lock_ids.add(id=lock_id, by=one.by, time=one.at, comment=one.comment)
    if load is not None:
        record.load.CopyFrom(load)
    _count(cluster, record, host, allocated)
    if processors:
        bound = {cpu for share in host.attempts.values() for cpus in (*share.cpus, share.cpus_idle) for cpu in cpus}
        record.bound_cpus.extend(sorted(bound))
    return record


def _kept(cluster: Cluster, host: Host, now: float) -> int:
    """Count the idle slots that are reserved: for pending jobs, or for active advance reservations."""
    claimed = sum(share.slots for share in host.claims.values())
    if not cluster.reserved.by_name:
        return claimed
    set_apart = int(cluster.reserved.unused(cluster, now)[host.row])
    return claimed + max(0, min(set_apart, int(cluster.table.slots_free[host.row])))


def _count(cluster: Cluster, record: pb.HostRecord, host: Host, allocated: bool) -> None:
    """Count slots by state of the jobs that hold them; the share of an ended job counts until it is released."""
    use = [pb.GpuUse(index=number) for number in range(host.facts.gpus)]
    for key, share in host.attempts.items():
        job = cluster.holder(key)
        state = job.state if job is not None else S.RUN
        slots = share.slots + (slots_beyond(host, job, share) if allocated and job is not None else 0)
        record.njobs += slots
        if state is S.SSUSP:
            record.ssusp += slots
        elif state is S.USUSP:
            record.ususp += slots
        else:
            record.run += slots
        _count_devices(use, key, share, state in (S.USUSP, S.SSUSP))
    record.gpu_use.extend(use)
    for device, one in zip(record.load.gpus, use, strict=False):
        device.allocated_jobs = one.njobs


def _count_devices(use: list[pb.GpuUse], key: Key, share: HostShare, is_suspended: bool) -> None:
    name = f"{key.job}[{key.index}]" if key.index else str(key.job)
    for number, gpu in enumerate(share.gpus):
        one = use[gpu]
        one.njobs += 1
        one.exclusive = not share.gpu_memory_mib
        one.memory_reserved_mib += share.gpu_memory_mib[number] if share.gpu_memory_mib else 0
        one.run += not is_suspended
        one.susp += is_suspended
        (one.susp_jobs if is_suspended else one.run_jobs).append(name)


def _status(cluster: Cluster, host: Host) -> str:
    table = cluster.table
    if not host.is_connected or host.is_silent:
        return "unavail" if not host.seen_at or (not host.is_connected and not host.attempts) else "unreach"
    if host.is_closed:
        return "closed_Adm"
    if host.lock is not None:
        return "closed_Lock"
    if host.is_shut:
        return "closed_Wind"
    if host.is_busy:
        return "closed_Busy"
    if table.taken_whole[host.row]:
        return "closed_Excl"
    if host.row in table.kept:
        return "closed_cu_excl"
    if host.facts.server and table.slots_free[host.row] <= 0:
        return "closed_Full"
    return "ok"


def _as_configured(told: pb.HostFacts, facts: HostFacts) -> None:
    """Replace reported facts by those that the configuration sets."""
    told.slots, told.server, told.cpu_factor = facts.slots, facts.server, facts.cpu_factor
    told.type, told.model = facts.type, facts.model
    told.resources[:] = sorted(facts.resources)


def _known_facts(host: Host) -> pb.HostFacts:
    """Build the facts of a host whose agent has not connected since the master started."""
    facts = host.facts
    return pb.HostFacts(
        name=facts.name,
        type=facts.type,
        model=facts.model,
        cpu_factor=facts.cpu_factor,
        cpus=facts.cpus,
        memory_mib=facts.memory_mib,
        slots=facts.slots,
        server=facts.server,
    )
