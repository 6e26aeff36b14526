"""Report messages: about attempts outside the ledger, about ends and about usage."""

from typing import cast

from agents.shepherd.messages import Finish, Key, Message, Used
from protos import endings
from protos.agents_pb2 import Finished, JobUsage, PostState, Released, Report
from protos.common_pb2 import AttemptKey, Usage


def report_for(key: Key, version: int) -> Report:
    """Make an empty report of an attempt."""
    job, index, attempt = key
    return Report(key=AttemptKey(job=job, index=index, attempt=attempt), allocation_version=version)


def refused(key: Key, version: int, reason: str, host_fault: bool) -> Report:
    """Make a refusal of an attempt that this host does not hold."""
    report = report_for(key, version)
    report.refused.reason, report.refused.host_fault = reason, host_fault
    return report


def released(key: Key, version: int) -> Report:
    """Make a report that nothing of an attempt is here."""
    report = report_for(key, version)
    report.released.SetInParent()
    return report


def finished_message(finish: Finish, home: str, cwd: str) -> Finished:
    """Convert a shepherd's record of an end."""
    return Finished(
        status=finish.status,
        time=finish.time,
        cpu_s=finish.cpu_s,
        memory_mib_max=finish.memory_mib_max,
        reason=finish.reason,
        pid=finish.pid,
        started=finish.started,
        detail=finish.detail,
        exec_home=home,
        exec_cwd=cwd,
        memory_mib_mean=finish.memory_mib_mean,
        processes_max=finish.processes_max,
        user_s=finish.user_s,
        system_s=finish.system_s,
        seconds=finish.seconds,
        others=[usage_message(Used(*fields), host) for host, fields in finish.others],  # type: ignore[arg-type]
        lost=(finish.reason, finish.detail) in (endings.SHUT_DOWN, endings.FENCED, endings.TAKEN_AWAY),
        post=cast("PostState", finish.post),
        posted_at=finish.posted_at,
    )


def released_with(used: Used | None) -> Report:
    """Make a report that nothing of an attempt is left, with its total usage if known."""
    return Report(released=Released(usage=None if used is None else usage_message(used)))


def usage_message(used: Used, host: str = "") -> Usage:
    """Convert the usage of a whole stay on a host."""
    cpu_s, user_s, system_s, memory, mean, swap, processes, threads, seconds = used
    return Usage(
        cpu_s=cpu_s, user_s=user_s, system_s=system_s, memory_mib_max=memory, memory_mib_mean=mean, swap_mib_max=swap,
        processes_max=processes, threads_max=threads, seconds=seconds, host=host,
    )  # fmt: skip


def job_usage(key: Key, fields: Message, host: str) -> JobUsage:
    """Convert a shepherd's USAGE message, from ``cpu_s`` on."""
    cpu_s, memory, memory_max, swap, pids, groups, threads, *more = fields
    usage = JobUsage()
    usage.key.job, usage.key.index, usage.key.attempt = key
    use = usage.usage
    if more:  # a shepherd of an older version sends fewer
        use.CopyFrom(usage_message(Used(*more)))
    use.cpu_s, use.memory_mib, use.memory_mib_max, use.swap_mib = cpu_s, memory, memory_max, swap
    use.threads, use.host = threads, host
    use.pids.extend(pids)
    use.process_groups.extend(groups)
    return usage
