"""Queue records of bqueues: counts, limits, settings in LSF's words."""

from collections.abc import MutableMapping, Sequence

from lavad.api.records import whole_hosts
from lavad.api.records.whole_hosts import Beyond
from lavad.core.cluster import Cluster
from lavad.core.model import JobState
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.rules.queues import JobDefaults, Queue, Threshold
from lavad.core.model.rules.users import Fairshare
from lavad.core.queries.fairshare_tree import ShareRow, partition_tree, share_tree
from protos import cluster_pb2 as pb

S = JobState
_RLIMITS = {"cpu": "CPULIMIT", "data": "DATALIMIT", "stack": "STACKLIMIT", "fsize": "FILELIMIT", "core": "CORELIMIT",
            "nproc": "PROCESSLIMIT", "swap": "SWAPLIMIT", "threads": "THREADLIMIT"}  # fmt: skip
# Parameters that are shown as written; the others have fields of their own.
_AS_WRITTEN = ("USERS", "HOSTS", "ADMINISTRATORS", "PRE_EXEC", "POST_EXEC", "HOST_PRE_EXEC", "HOST_POST_EXEC",
               "PRE_POST_EXEC_USER", "LOCAL_MAX_PREEXEC_RETRY", "LOCAL_MAX_PREEXEC_RETRY_ACTION",
               "PREEXEC_EXCLUDE_HOST_EXIT_VALUES",
               "REQUEUE_EXIT_VALUES", "RES_REQ", "GPU_REQ", "RUN_WINDOW", "DISPATCH_WINDOW", "STOP_COND",
               "RESUME_COND", "JOB_STARTER", "JOB_CONTROLS", "TERMINATE_WHEN", "FAIRSHARE_QUEUES", "QUEUE_GROUP",
               "JOB_OVERRUN", "JOB_UNDERRUN", "JOB_IDLE", "LAVA_BACKFILL_DEPTH", "LAVA_JOB_ORDER")  # fmt: skip


def queue_record(cluster: Cluster, queue: Queue, now: float, more: Sequence[Beyond] = ()) -> pb.QueueRecord:
    """Build the record of a queue; ``more`` are slots that exclusive jobs count besides."""
    record = pb.QueueRecord(
        name=queue.name,
        priority=queue.priority,
        description=queue.description,
        open=queue.open,
        active=queue.active,
        is_default=queue.name in (cluster.policy.default_queues or (cluster.policy.default_queue,)),
        accept_interval_s=queue.accept_interval or 0.0,
        thresholds=map(threshold_record, queue.thresholds),
    )
    if queue.migration_s is not None:
        record.migration_s = queue.migration_s
    _count(record, cluster, queue, more)
    _add_limits(record, queue)
    _add_parameters(record, queue)
    for name, factor in queue.absolute.factors if queue.absolute is not None else ():
        record.absolute.add(name=name, **factor._asdict())
    if queue.fairshare is not None:
        _add_shares(record, queue.fairshare)
        _add_tree(record, share_tree(cluster, queue.name, now))
    windows = cluster.windows.get(queue.name)
    if queue.active and windows is not None and not (windows.may_run and windows.may_dispatch):
        record.status = "Inact_Win"
    state = cluster.queue_states.get(queue.name)
    record.comment = state.comment if state is not None else ""
    return record


def _count(record: pb.QueueRecord, cluster: Cluster, queue: Queue, more: Sequence[Beyond]) -> None:
    slots = cluster.counters.slots_by_queue
    counts = {state: slots[queue.name, state] for state in JobState}
    record.pend = counts[S.PEND] + counts[S.PSUSP]
    record.run = counts[S.STAGING] + counts[S.RUN] + counts[S.UNKWN] + counts[S.ZOMBI]
    record.ssusp, record.ususp = counts[S.SSUSP], counts[S.USUSP]
    whole_hosts.add(record, (one for one in more if one.shared.queue == queue.name))
    record.rsv = sum(kept for shared, kept in cluster.kept_slots() if shared.queue == queue.name)
    record.njobs = record.pend + record.run + record.ssusp + record.ususp


def _add_limits(record: pb.QueueRecord, queue: Queue) -> None:
    if queue.slot_limit is not None:
        record.max = queue.slot_limit
    if queue.user_slot_limit is not None:
        record.per_user = queue.user_slot_limit
    if queue.host_slot_limit is not None:
        record.per_host = queue.host_slot_limit
    if queue.processor_slot_limit is not None:
        record.per_processor = queue.processor_slot_limit
    rules = queue.defaults
    if rules.tasks_max is not None:
        middle = f" {rules.tasks_default}" if rules.tasks_default != rules.tasks_min else ""
        record.parameters["PROCLIMIT"] = f"{rules.tasks_min}{middle} {rules.tasks_max}"
    add_job_limits(queue.run_limit_s, rules, record.parameters, record.default_limits)


def add_job_limits(
    run_limit_s: int, rules: JobDefaults, most: MutableMapping[str, str], default: MutableMapping[str, str]
) -> None:
    """Add the limits of each job of a queue or an application profile, with their units."""
    if run_limit_s:
        most["RUNLIMIT"] = f"{run_limit_s / 60:.1f} min"
    if rules.run_limit_default_s:
        default["RUNLIMIT"] = f"{rules.run_limit_default_s / 60:.1f} min"
    if rules.memory_limit_mib:
        most["MEMLIMIT"] = f"{rules.memory_limit_mib << 10} K"
    if rules.memory_limit_default_mib:
        default["MEMLIMIT"] = f"{rules.memory_limit_default_mib << 10} K"
    for name, usual, largest in rules.rlimits:
        most[_RLIMITS[name]] = _amount(name, largest)
        if usual:
            default[_RLIMITS[name]] = _amount(name, usual)


def _amount(name: str, amount: int) -> str:
    if name in ("nproc", "threads"):
        return str(amount)
    return f"{amount / 60:.1f} min" if name == "cpu" else f"{amount >> 10} K"


def _add_parameters(record: pb.QueueRecord, queue: Queue) -> None:
    written = dict(queue.written)
    for name in _AS_WRITTEN:
        if name in written:
            record.parameters[name] = written[name]
    if written.get("EXCLUSIVE", "").upper().startswith("CU"):
        record.parameters["EXCLUSIVE"] = written["EXCLUSIVE"]
    if queue.nice:
        record.parameters["NICE"] = str(queue.nice)
    if queue.rerunnable:
        record.parameters["RERUNNABLE"] = "yes"
    if queue.checkpoints.directory:
        record.parameters["CHKPNTDIR"] = queue.checkpoints.directory
    if queue.checkpoints.period_s:
        record.parameters["CHKPNTPERIOD"] = f"{queue.checkpoints.period_s:.0f}"
    if queue.slot_reserve_s:
        record.parameters["SLOT_RESERVE"] = f"{queue.slot_reserve_s:.0f}"
    if queue.preempts or queue.preemptable_by:
        record.parameters["PREEMPTION"] = _preemption(queue)
    policies = _policies(queue)
    if policies:
        record.parameters["POLICIES"] = "  ".join(policies)


def _preemption(queue: Queue) -> str:
    """Return PREEMPTION in LSF's form: queues it preempts and queues that preempt it, whichever queue declares it."""
    below = " ".join(f"{name}+{level}" if level else name for name, level in queue.preempts)
    above = " ".join(sorted(queue.preemptable_by))
    words = (f"PREEMPTIVE[{below}]" if below else "", f"PREEMPTABLE[{above}]" if above else "")
    return " ".join(filter(None, words))


def _policies(queue: Queue) -> list[str]:
    """Return the queue's scheduling policies in LSF's words."""
    words = (
        ("APS_PRIORITY", queue.absolute is not None),
        ("BACKFILL", queue.backfill_depth > 0),
        ("EXCLUSIVE", queue.is_exclusive_allowed and bool(queue.written)),
        ("FAIRSHARE", queue.fairshare is not None),
        ("IGNORE_DEADLINE", queue.ignores_deadline),
        ("NO_INTERACTIVE", queue.interactive == "no"),
        ("ONLY_INTERACTIVE", queue.interactive == "only"),
        ("PREEMPTIVE", bool(queue.preempts)),
        ("PREEMPTABLE", queue.is_preemptable),
        ("ROUND_ROBIN", queue.order is JobOrder.ROUND_ROBIN),
        (f"{queue.order.name}_ORDER", queue.order.is_scored),
        ("STRICT_ORDER", queue.in_order),
    )
    return [word for word, holds in words if holds]


def _add_shares(record: pb.QueueRecord, fairshare: Fairshare) -> None:
    for share in fairshare.shares:
        name = share.name + "@" * (share.each and share.name != "default")
        record.shares.add(name=name, shares=share.shares)


def partitions_reply(cluster: Cluster, request: pb.HostPartitionsRequest, now: float) -> pb.HostPartitionsReply:
    """List the host partitions, or the named ones."""
    partitions = {one.name: one for one in cluster.policy.host_partitions}
    reply = pb.HostPartitionsReply(missing=[name for name in request.names if name not in partitions])
    for one in partitions.values():
        if not request.names or one.name in request.names:
            record = reply.partitions.add(name=one.name, hosts=one.written)
            _add_tree(record, partition_tree(cluster, one, now))
    return reply


def _add_tree(record: pb.QueueRecord | pb.HostPartitionRecord, rows: Sequence[ShareRow]) -> None:
    """Add the fairshare tree, with the accounts of one group together."""
    groups = {row.path.rpartition("/")[0]: None for row in rows}
    for group in groups:
        for row in rows:
            if row.path.rpartition("/")[0] == group:
                record.share_tree.add(
                    path=f"/{group.partition('/')[2]}" if "/" in group else "",
                    name=row.name,
                    shares=row.shares,
                    priority=row.priority,
                    started=row.started,
                    reserved=row.reserved,
                    cpu_s=row.cpu_time_s,
                    run_s=row.run_time_s,
                    gpu_run_s=row.gpu_run_time_s,
                    is_group=row.is_group,
                )


def threshold_record(threshold: Threshold) -> pb.ThresholdRecord:
    """Convert thresholds of a load index; an absent bound is not set."""
    return pb.ThresholdRecord(index=threshold.index, sched=threshold.sched, stop=threshold.stop)
