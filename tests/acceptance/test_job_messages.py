"""Messages of jobs with real processes: from within the job, over a kill of the master, read by those who may."""

from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


def test_a_job_tells_how_far_it_is(cluster: Cluster, account: str, open_directory: Path) -> None:
    """Its status, a message with data, and its environment are read outside, also after the master was killed."""
    ready = open_directory / "told"
    post = "echo 42 > data && bpost -i 3 -d sums -a data $LSB_JOBID"
    script = f"bstatus -d 'half way' $LSB_JOBID && {post} && touch {ready}"
    users = cluster.as_seen_by(account)
    job = users.submit("-cwd", str(open_directory), "-o", "/dev/null", f"{script}; sleep 300")
    cluster.becomes(job, "RUN")
    wait_for(ready.exists, 60, "the job's messages")
    cluster.kill("lavad")
    cluster.up()
    assert users.says("bstatus", str(job)).split()[-2:] == ["half", "way"]
    assert " 3      " + f"{account:<10}" in users.says("bjobs", "-l", str(job))
    copy = open_directory / "copy"
    users.says("bread", "-i", "3", "-a", str(copy), str(job))
    assert copy.read_text() == "42\n"
    assert f'"sums" was posted from "{account}" to' in users.history(job)
    assert "PATH=" in users.says("bjobs", "-env", str(job))
    assert "User permission denied" in cluster.run("bread", "-i", "3", "-a", str(copy), str(job)).stderr
    cluster.says("bkill", str(job))
    cluster.becomes(job, "EXIT")
    users.says("bstatus", "-d", "late", str(job))  # until the job is forgotten
    assert users.says("bstatus", str(job)).split()[-1] == "late"
    users.says("bread", "-i", "3", str(job))
