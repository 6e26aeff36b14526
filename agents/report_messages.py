"""What a host tells of attempts, as messages: reports of those that are not in its ledger, and ends."""

from agents.shepherd.messages import Finish, Key
from protos import endings
from protos.agents_pb2 import Finished, Report
from protos.common_pb2 import AttemptKey


def report_for(key: Key, version: int) -> Report:
    """An empty report of an attempt."""
    job, index, attempt = key
    return Report(key=AttemptKey(job=job, index=index, attempt=attempt), allocation_version=version)


def refused(key: Key, version: int, reason: str, host_fault: bool) -> Report:
    """A refusal of an attempt that this host does not hold."""
    report = report_for(key, version)
    report.refused.reason, report.refused.host_fault = reason, host_fault
    return report


def released(key: Key, version: int) -> Report:
    """The word that nothing of an attempt is here."""
    report = report_for(key, version)
    report.released.SetInParent()
    return report


def finished_message(finish: Finish, home: str, cwd: str) -> Finished:
    """A shepherd's record as a message."""
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
        lost=(finish.reason, finish.detail) in (endings.SHUT_DOWN, endings.FENCED),
    )
