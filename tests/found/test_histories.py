"""Jobs of which `bhist -l` told less than `bjobs -l`, or something else."""

import pytest

from protos import jobs_pb2
from tests.acceptance.personal import Cluster, wait_for
from tests.lavactl.scripted import Desk, a_job


def _history(**fields: object) -> jobs_pb2.JobHistory:
    record = a_job(**fields)
    return jobs_pb2.JobHistory(job=record.job, index=record.index, user="alice", name=record.name, record=record)


def test_the_long_history_shows_limits(desk: Desk) -> None:
    """Below the line of the submission, as `bjobs -l` has them; elements have those of the first."""
    spec = jobs_pb2.JobSpec(command="true", cwd="/data", run_limit_s=600, memory_limit_mib=200)
    desk.client.histories = [_history(job=7, index=1, spec=spec), _history(job=7, index=2)]
    said = desk.type("bhist", "-l", "7").out
    assert said.count(";\n\n RUNLIMIT\n 10.0 min\n\n MEMLIMIT\n    200 M\n\nSummary") == 2
    assert desk.client.asked[-1].shares_details


@pytest.mark.acceptance
@pytest.mark.slow
def test_the_long_history_shows_the_whole_submission(cluster: Cluster) -> None:
    """Requested resources, dependency, start time and limits were in `bjobs -l` alone."""
    first = cluster.submit("-H", "true")
    words = ["-b", "23:59", "-n", "2,4", "-R", "span[hosts=1]", "-W", "10", "-M", "200", "-w", f"ended({first})"]
    job = str(cluster.submit(*words, "-J", "later", "true"))
    said = {command: "".join(cluster.says(command, "-l", job).split()) for command in ("bhist", "bjobs")}
    cluster.says("bkill", str(first), job)
    for text in ("RequestedResources<span[hosts=1]>,DependencyCondition<ended(", "SpecifiedStartTime<"):
        assert text in said["bhist"], said
    for text in ("2-4ProcessorsRequested,", "RUNLIMIT10.0min", "MEMLIMIT200M"):
        assert text in said["bhist"], said
        assert text in said["bjobs"], said


@pytest.mark.acceptance
@pytest.mark.slow
def test_a_job_that_memory_has_forgotten_is_shown_whole(cluster: Cluster) -> None:
    """`bjobs -l` of it lacked the same."""
    cluster.reconfigure({"lsb.params": "Begin Parameters\nCLEAN_PERIOD = 1\nEnd Parameters\n"})
    try:
        job = cluster.submit("-K", "-o", "/dev/null", "-R", "select[mem>1]", "-J", "a[1-2]", "true")
        wait_for(lambda: str(job) not in cluster.run("bjobs", "-a").stdout, 60, "the job to be forgotten")
        said = "".join(cluster.says("bjobs", "-l", str(job)).split())
    finally:
        (cluster.directory / "lsb.params").unlink()
        cluster.reconfigure()
    assert said.count("RequestedResources<select[mem>1]>") == 2, said


@pytest.mark.acceptance
@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "code", "reason"),
    [
        (["-i", "/nonexistent"], 1, "The input file /nonexistent cannot be opened: No such file or directory."),
        (["-cwd", "/proc/nope"], 2, "The working directory /proc/nope cannot be entered: No such file or directory."),
        (["-o", "/nonexistent/dir/out"], 1, "The output file /nonexistent/dir/out cannot be opened"),
    ],
)
def test_a_job_that_never_began_is_told_alike(cluster: Cluster, options: list[str], code: int, reason: str) -> None:
    """`bhist -l` told only of an exit code, `bjobs -l` only that it had not started, and `bpeek` of neither."""
    job = cluster.submit(*options, "true")
    cluster.becomes(job, "EXIT")
    how = f"Exited with exit code {code}; the job ended before it started"
    for command in ("bhist", "bjobs"):
        said = "".join(cluster.says(command, "-l", str(job)).split())
        for text in (how, reason.rstrip(".")):
            assert "".join(text.split()) in said, (command, said)
    peeked = cluster.run("bpeek", str(job))
    assert peeked.returncode == 255
    assert f"Job <{job}> : Already finished: it ended before it started. " in peeked.stderr
    assert reason in peeked.stderr


@pytest.mark.acceptance
@pytest.mark.slow
def test_a_job_that_was_killed_while_it_waited_has_nothing_to_peek_at(cluster: Cluster) -> None:
    """`bpeek` says how it ended."""
    job = cluster.submit("-H", "-o", "/dev/null", "true")
    cluster.says("bkill", str(job))
    cluster.becomes(job, "EXIT")
    assert "Exited; the job ended before it started." in cluster.says("bjobs", "-l", str(job))
    peeked = cluster.run("bpeek", str(job)).stderr
    assert peeked == f"Job <{job}> : Already finished: it ended before it started. TERM_OWNER: job killed by owner.\n"
