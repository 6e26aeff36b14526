"""Long listings with details, and the permissions of listings."""

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from lavactl.wire.connection import Connection
from protos import common_pb2, jobs_pb2
from tests.acceptance.personal import Cluster, wait_for

ELEMENTS = int(os.environ.get("LAVA_LIST_ELEMENTS", "1000"))
CPU_EACH_S = 0.0005  # ten times the usual duration


def cpu_s(pid: int) -> float:
    """Processor time of a process."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


@pytest.mark.parametrize("form", [("-l",), ("-UF",), ("-o", "jobindex memlimit"), ("-o", "jobindex combined_resreq")])
def test_details_of_an_array_cost_the_master_little(cluster: Cluster, form: tuple[str, ...]) -> None:
    """Its elements share them: they are read once."""
    job = cluster.submit("-H", "-M", "100M", "-J", f"sweep[1-{ELEMENTS}]", "true")
    before = cpu_s(cluster.pid("lavad"))
    lines = cluster.says("bjobs", *form, str(job)).splitlines()
    used = cpu_s(cluster.pid("lavad")) - before
    cluster.says("bkill", str(job))
    assert len(lines) > ELEMENTS
    assert used < ELEMENTS * CPU_EACH_S


def test_every_element_is_shown_with_what_all_have_in_common(cluster: Cluster) -> None:
    """The last one's details are those of the first, and another job's its own."""
    array = cluster.submit("-H", "-M", "100M", "-J", "sweep[1-600]", "echo one")
    other = cluster.submit("-H", "-M", "200M", "-J", "sweep[1-2]", "echo two")
    form = ("-noheader", "-o", "jobindex memlimit command delimiter=','")
    rows = [line.split(",") for line in cluster.says("bjobs", *form, str(array), str(other)).splitlines()]
    assert [row[0] for row in rows] == [*map(str, range(1, 601)), "1", "2"]
    assert {tuple(row[1:]) for row in rows[:600]} == {("100 Mbytes", "echo one")}
    assert {tuple(row[1:]) for row in rows[600:]} == {("200 Mbytes", "echo two")}
    cluster.says("bkill", str(array), str(other))


def _set_level(cluster: Cluster, level: int) -> None:
    lines = [f"SECURE_JOB_INFO_LEVEL = {level}", "SECURE_INFODIR_USER_ACCESS = G"]
    cluster.reconfigure({"lsb.params": "\n".join(["Begin Parameters", *lines, "End Parameters", ""])})


@pytest.fixture
def private(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster while each user sees only his own jobs."""
    params = cluster.directory / "lsb.params"
    _set_level(cluster, 4)
    yield cluster
    params.unlink()
    cluster.reconfigure()


def test_jobs_of_others_are_private(private: Cluster, account: str, other_account: str) -> None:
    """bjobs, bhist and bpeek hide them; their owner and an administrator see them."""
    owner, stranger = private.as_seen_by(account), private.as_seen_by(other_account)
    job = str(owner.submit("-o", "/dev/null", "sleep 100"))
    wait_for(lambda: owner.state(int(job)) == "RUN", 60, "the job to run")
    for seen in (owner, private):
        assert "sleep 100" in seen.says("bjobs", "-l", job)
        assert "sleep 100" in seen.says("bhist", "-l", job)
        assert job in seen.says("bjobs", "-u", "all")
    for command in (["bjobs", job], ["bjobs", "-l", job], ["bjobs", "-o", "command", job], ["bpeek", job]):
        done = stranger.run(*command)
        assert f"Job <{job}> is not found" in done.stdout + done.stderr, command
    for command in (["bjobs", "-u", "all"], ["bhist", "-u", "all"], ["bhist", "-l", job], ["bjdepinfo", job]):
        done = stranger.run(*command)
        assert "sleep" not in done.stdout, command
        assert account not in done.stdout, command
    assert "User permission denied" in stranger.run("bkill", job).stderr
    owner.says("bkill", job)


def test_a_summary_bears_no_details(private: Cluster, account: str, other_account: str) -> None:
    """No field sent to a client reveals command or directory: clients may be the users' own."""
    _set_level(private, 1)
    job = private.as_seen_by(account).submit("-J", "plain", "-o", "/dev/null", "-cwd", "/tmp", "sleep 100; : hidden")
    wait_for(lambda: private.state(job) == "RUN", 60, "the job to run")
    connection = _connected_as(other_account, private)
    wanted = jobs_pb2.JobFilter(refs=[common_pb2.JobRef(job=job)])
    list_request = jobs_pb2.ListJobsRequest(filter=wanted, details=True, basic_too=True)
    for method, request in (("List", list_request), ("History", jobs_pb2.HistoryRequest(filter=wanted))):
        answer = b"".join(connection.answers(f"/lava.v1.JobService/{method}", request.SerializeToString(), 60.0))
        assert b"plain" in answer, method
        assert b"hidden" not in answer, method
        assert b"/tmp" not in answer, method
    connection.close()
    private.says("bkill", str(job))


def _connected_as(user: str, cluster: Cluster) -> Connection:
    """The kernel records the owner of a connection when it is made."""
    os.seteuid(pwd.getpwnam(user).pw_uid)
    try:
        return Connection(cluster.environment["LAVA_SOCKET"])
    finally:
        os.seteuid(0)


def test_without_the_parameter_everybody_sees_all(cluster: Cluster, account: str, other_account: str) -> None:
    """As before."""
    job = str(cluster.as_seen_by(account).submit("-H", "sleep 100"))
    assert "sleep 100" in cluster.as_seen_by(other_account).says("bjobs", "-l", job)
    cluster.says("bkill", job)


def test_a_level_that_is_none_is_an_error(cluster: Cluster) -> None:
    """And one without the other parameter is warned of."""
    params = cluster.directory / "lsb.params"
    said = {}
    try:
        for level in ("9", "4"):
            params.write_text(f"Begin Parameters\nSECURE_JOB_INFO_LEVEL = {level}\nEnd Parameters\n")
            done = cluster.run("badmin", "ckconfig", "-v")
            said[level] = done.stdout + done.stderr
    finally:
        params.unlink()
    assert "from 0 to 5" in said["9"]
    assert "SECURE_INFODIR_USER_ACCESS" in said["4"]
