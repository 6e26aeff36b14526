"""Accounting of real processes: bacct through agent, master and reader; lsb.acct against the database."""

import csv
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests import lsf_log_parser
from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]


def test_bacct_sums_up_what_ran(cluster: Cluster) -> None:
    """A done, a failed and a killed job, selected by their project; in sums, in a line each, and in full."""
    done = cluster.submit("-P", "counted", "-n", "2", "true")
    failed = cluster.submit("-P", "counted", "exit 3")
    killed = cluster.submit("-P", "counted", "-H", "true")
    cluster.run("bkill", str(killed))
    for job, state in ((done, "DONE"), (failed, "EXIT"), (killed, "EXIT")):
        cluster.becomes(job, state)
    out = cluster.run("bacct", "-P", "counted").stdout
    assert " Total number of done jobs:       1      Total number of exited jobs:     2\n" in out
    assert "  - accounted on projects counted,\n" in out
    header, line = csv.reader(
        cluster.run("busage", "-P", "counted", "-by", "project queue month", "-csv").stdout.splitlines()
    )
    used = dict(zip(header, line, strict=True))
    assert (used["PROJECT"], used["QUEUE"], used["JOBS"], used["DONE"], used["EXIT"]) == (
        "counted",
        "normal",
        "2",
        "1",
        "1",
    )
    lines = cluster.run("bacct", "-b", "-P", "counted", "-e").stdout.splitlines()
    assert len([line for line in lines if " normal " in line]) == 2
    told = cluster.run("bacct", "-l", str(killed)).stdout
    assert f"Job <{killed}>" in told
    assert "TERM_OWNER: job killed by owner." in " ".join(told.split())
    assert cluster.run("bacct", "999999").returncode == 255
    refused = cluster.run("bhist", "-l", "-N", "nowhere", str(done))
    assert (refused.returncode, refused.stderr) == (255, "nowhere: Bad host name, host model or CPU factor.\n")
    assert "Done successfully" in cluster.run("bhist", "-UF", "-N", "2.0", str(done)).stdout


JOBS = int(os.environ.get("LAVA_ACCOUNTED_JOBS", "60"))
KINDS = 6  # of jobs below
BURN = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done"
COLUMNS = (
    "job, idx, user_name, queue, project, submitted_at, dispatched_at, ended_at, state, status, cpu_s, memory_mib_max, "
    "slots, reason"
)


def submit_mixed(cluster: Cluster, number: int) -> None:
    """One job of each kind in turn: serial, parallel, array, failed, requeued by its exit code, killed."""
    kind = number % KINDS
    if kind == 0:
        cluster.submit("-J", f'serial "{number}"', BURN)
    elif kind == 1:
        cluster.submit("-n", "2", "-R", "span[ptile=1]", f"blaunch sh -c '{BURN}'")
    elif kind == 2:
        cluster.submit("-J", "array[1-2]", BURN)
    elif kind == 3:
        cluster.submit("-P", "failing", "exit 7")
    elif kind == 4:
        cluster.submit("-Q", "9", "test $LSB_JOBINDEX = 0 && [ -e ran ] || { touch ran; exit 9; }")
    else:
        job = cluster.submit("-H", "sleep 600")
        cluster.run("bkill", str(job))


def test_lsb_acct_tells_what_the_database_has(tmp_path: Path) -> None:
    """Of mixed jobs and over a kill of master and children: a record for each end, equal to its row, none twice."""
    files = {
        "lsb.params": "Begin Parameters\nMAX_PEND_JOBS = 100000\nLAVA_REQUEUE_DELAY = 0\nEnd Parameters\n",
        "lsb.queues": "Begin Queue\nQUEUE_NAME = normal\nREQUEUE_EXIT_VALUES = 9\nEnd Queue\n",
    }
    with a_cluster(tmp_path / "cluster", 2, 4, lsf_files=files) as cluster:
        cluster = cluster.at(tmp_path)
        for number in range(JOBS // 2):
            submit_mixed(cluster, number)
        cluster.kill("lavad")
        cluster.up()
        cluster = cluster.at(tmp_path)
        for number in range(JOBS // 2, JOBS):
            submit_mixed(cluster, number)
        limit_s = 60 + JOBS
        wait_for(lambda: "No unfinished" in cluster.run("bjobs", "-u", "all").stderr, limit_s, "all jobs to end")
        cluster.becomes_idle()
        cluster.run("bhist")  # by its answer all ends are in the database
        logs = next((tmp_path / "cluster" / "state").glob("*/logdir"))
        wait_for(lambda: _lines(logs / "lsb.acct") >= len(_rows(tmp_path)), 60, "all ends to be told")
        told, rows = lsf_log_parser.acct(logs / "lsb.acct"), _rows(tmp_path)
        of_records, of_rows = sorted(map(_of_record, told)), sorted(map(_of_row, rows))
        assert [one[:-1] for one in of_records] == [one[:-1] for one in of_rows]
        assert [one[-1] for one in of_records] == pytest.approx([one[-1] for one in of_rows], abs=2e-6)
        assert len(rows) >= JOBS
        parallel = [one for one in told if len(one["execHosts"]) == 2]
        assert parallel
        assert {len(set(one["execHosts"])) for one in parallel} == {2}
        events = [one[0] for one in lsf_log_parser.records(logs / "lsb.events")]
        assert events.count("JOB_NEW") == JOBS
        assert events.count("MBD_START") == 2
        summed = cluster.run("bacct", "-u", "all").stdout
        from_file = cluster.run("bacct", "-u", "all", "-f", str(logs / "lsb.acct")).stdout
        assert summed.splitlines()[13] == from_file.splitlines()[13]  # done and exited jobs
        everything = ("bhist", "-a", "-u", "all")
        listed, from_log = (cluster.run(*everything, *more).stdout for more in ((), ("-f", str(logs / "lsb.events"))))
        assert [row.split()[:2] for row in from_log.splitlines()] == [row.split()[:2] for row in listed.splitlines()]


def _lines(path: Path) -> int:
    """Number of records in a file, to which more are appended."""
    return len([line for line in path.read_text().splitlines(keepends=True) if line[0] != "#" and line[-1] == "\n"])


def _rows(tmp_path: Path) -> list[tuple[Any, ...]]:
    """Ends in the database: of attempts that ran, and of jobs that were killed while they waited."""
    with sqlite3.connect(f"file:{tmp_path}/cluster/state/lava.db?mode=ro", uri=True) as connection:
        where = "state in (7, 8) or started_at > 0 or cpu_s > 0"
        rows = connection.execute(f"select {COLUMNS} from accounting where {where}").fetchall()
        waiting = "select job from jobs where state = 8 and attempts = 0"
        query = (
            "select j.job, 0, s.user_name, s.queue, s.project, j.submitted_at, 0, j.ended_at, 8, 0, 0, 0, 0, j.reason"
        )
        query += f" from jobs j join specs s on j.job = s.job where j.job in ({waiting})"
        return [*rows, *connection.execute(query).fetchall()]


def _of_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    job, index, user, queue, project, *times, state, status, cpu_s, memory, slots, reason = row
    seconds = tuple(map(int, times))
    used = (memory * 1024, slots, reason.startswith("TERM_OWNER"), cpu_s)
    return (job, index, user, queue, project, seconds, 64 if state == 7 else 32, status, *used)


def _of_record(one: dict[str, Any]) -> tuple[Any, ...]:
    seconds = (one["submitTime"], one["startTime"], one["eventTime"])
    used = (one["maxRMem"], len(one["execHosts"]), one["exitInfo"] == 14, one["ru_utime"] + one["ru_stime"])
    names = (one["jobId"], one["idx"], one["userName"], one["queue"], one["projectName"])
    return (*names, seconds, one["jStatus"], one["exitStatus"], *used)
