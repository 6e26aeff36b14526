"""Golden output about absolute priorities: bjobs -aps, its long form, bqueues -l, bmod -aps."""

import pytest

from protos import cluster_pb2, jobs_pb2
from tests.lavactl.scripted import Desk, a_job, at


def _value(value: float, is_system: bool = False, **factors: float) -> jobs_pb2.AbsolutePriority:
    parts = ("PROC", "MEM", "SWAP", "JPRIORITY", "QPRIORITY", "APP")
    shown = [jobs_pb2.FactorValue(name=name, value=one, is_part=name in parts) for name, one in factors.items()]
    return jobs_pb2.AbsolutePriority(value=value, is_system=is_system, factors=shown)


def _four_jobs(desk: Desk) -> None:
    desk.client.jobs = [
        a_job(job=1201),
        a_job(job=1202, queue="aps", submit_time=at("09:03:00"), absolute=_value(99)),
        a_job(job=1203, queue="aps", submit_time=at("09:04:00"), absolute=_value(109, WORK=99, JPRIORITY=99, ADMIN=10)),
        a_job(
            job=1204,
            queue="aps",
            submit_time=at("09:05:00"),
            absolute=_value(10, is_system=True),
            spec=jobs_pb2.JobSpec(absolute_priority="system=10"),
        ),
    ]


def test_pending_jobs_by_their_values(desk: Desk) -> None:
    """lsf.md 5.2 (bjobs -aps): system values first, in parentheses, then calculated ones, then jobs of other queues."""
    _four_jobs(desk)
    assert desk.type("bjobs", "-aps").out == (
        "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME       APS\n"
        "1204    alice   PEND  aps        login1                  md_npt     Nov 21 09:05     (10)\n"
        "1203    alice   PEND  aps        login1                  md_npt     Nov 21 09:04   109.00\n"
        "1202    alice   PEND  aps        login1                  md_npt     Nov 21 09:03    99.00\n"
        "1201    alice   PEND  normal     login1                  md_npt     Nov 21 09:02        -\n"
    )
    asked = desk.client.asked[-1]
    assert asked.absolute
    assert list(asked.filter.states) == [1, 2]
    assert desk.type("bjobs", "-aps", "-noheader", "-w").out.splitlines()[1] == (
        "1203    alice   PEND  aps        login1         -        md_npt     Nov 21 09:04   109.00"
    )


def test_what_each_factor_adds(desk: Desk) -> None:
    """lsf.md 5.2: -aps -l has the factors, subfactors in parentheses; bjobs -l what an administrator has set."""
    _four_jobs(desk)
    told = desk.type("bjobs", "-aps", "-l").out
    assert desk.type("bjobs", "-prio").out == told
    assert "\n ABSOLUTE PRIORITY: <109.00>, WORK <99.00> (JPRIORITY <99.00>), ADMIN <10.00>\n" in told
    assert "\n ABSOLUTE PRIORITY: <(10)>\n" in told
    assert told.count("ABSOLUTE PRIORITY") == 3
    assert told.index("Job <1204>") < told.index("Job <1203>") < told.index("Job <1202>") < told.index("Job <1201>")
    assert "System Absolute Priority <10>" in desk.type("bjobs", "-l", "1204").out.replace(
        "\n                     ", ""
    )


def test_factors_of_a_queue(desk: Desk) -> None:
    """lsf.md 1.5, 5.2: bqueues -l has weights, limits and grace periods; a dash for what is not configured."""
    queue = cluster_pb2.QueueRecord(name="aps", priority=40, open=True, active=True)
    queue.parameters["POLICIES"] = "APS_PRIORITY  FAIRSHARE"
    queue.absolute.add(name="FS", weight=10000)
    queue.absolute.add(name="RSRC", weight=1, grace_s=36000)
    queue.absolute.add(name="MEM", weight=1000, limit=20010, grace_s=90)
    queue.absolute.add(name="WORK", weight=1)
    queue.absolute.add(name="JPRIORITY", weight=-2.5, limit=10000, grace_s=600)
    desk.client.queue_records = [queue]
    assert (
        "\nSCHEDULING POLICIES:  APS_PRIORITY  FAIRSHARE\n"
        "\nAPS_PRIORITY:\n"
        "                 WEIGHT FACTORS   LIMIT FACTORS   GRACE PERIOD\n"
        "FAIRSHARE              10000.00               -              -\n"
        "RESOURCE                   1.00               -            10h\n"
        "MEMORY                  1000.00        20010.00            90s\n"
        "WORK                       1.00               -              -\n"
        "JOB PRIORITY              -2.50        10000.00            10m\n"
    ) in desk.type("bqueues", "-l", "aps").out


def test_bmod_sets_and_resets_it(desk: Desk) -> None:
    """lsf.md 5.2: bmod -aps; -apsn undoes it."""
    desk.client.modify_reply.results.append(jobs_pb2.SignalResult(job=7))
    assert desk.type("bmod", "-aps", "system=10", "7").out == "Parameters of job <7> are being changed\n"
    assert (desk.client.asked[-1].fields, desk.client.asked[-1].spec.absolute_priority) == (
        ["absolute_priority"], "system=10"
    )  # fmt: skip
    desk.type("bmod", "-apsn", "7")
    assert (desk.client.asked[-1].fields, desk.client.asked[-1].spec.absolute_priority) == (["absolute_priority"], "")


@pytest.mark.parametrize("value", ["10", "system", "weight=3", "admin="])
def test_bmod_says_what_it_expects(desk: Desk, value: str) -> None:
    """No request is sent for another form."""
    result = desk.type("bmod", "-aps", value, "7")
    assert result.code == 255
    assert result.err.startswith(f"-aps {value}: expected system=value or admin=value")
    assert not desk.client.asked
