"""Commands before and after a job, of a queue and of its own, from bsub to bhist, with real processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

QUEUES = """\
Begin Queue
QUEUE_NAME         = around
PRIORITY           = 30
PRE_EXEC           = echo queue pre $(id -un) >> {said}
POST_EXEC          = echo queue post $LSB_JOBEXIT_STAT $(id -un) >> {said}; exit $(cat {code})
PRE_POST_EXEC_USER = root
LOCAL_MAX_PREEXEC_RETRY = 2
End Queue
"""
PARAMS = "Begin Parameters\nDEFAULT_QUEUE = around\nPRE_EXEC_DELAY = 4\nEnd Parameters\n"


@pytest.fixture(scope="module")
def site(open_directory: Path) -> Iterator[Cluster]:
    """One host; the queue's commands write into a file, and fail by another."""
    said, code = open_directory / "said", open_directory / "code"
    said.touch()
    said.chmod(0o666)
    code.write_text("0")
    files = {"lsb.queues": QUEUES.format(said=said, code=code), "lsb.params": PARAMS}
    with a_cluster(open_directory / "P", 1, 4, lsf_files=files) as made:
        yield made


def history_has(site: Cluster, job: int, text: str) -> None:
    """Wait until bhist tells it: rows are read when they are written."""
    wait_for(lambda: text in site.says("bhist", "-l", str(job)), 60, f"{text!r} in the history")


def test_a_job_between_its_commands(site: Cluster, open_directory: Path) -> None:
    """All four run in LSF's order; the commands tell of them, and others wait for how the last ended."""
    said = open_directory / "said"
    site.says("badmin", "ckconfig")
    assert "PRE_POST_EXEC_USER:  root" in site.says("bqueues", "-l", "around")
    job = site.submit("-H", "-E", "false", "-o", str(open_directory / "out"), "exit 3")
    changed = site.run("bmod", "-E", f"echo pre >> {said}", "-Ep", f"sleep 0.5; echo post >> {said}", str(job))
    assert changed.returncode == 0, changed.stderr
    shown = site.says("bjobs", "-UF", str(job))
    assert f"Pre-execute Command <echo pre >> {said}>" in shown
    good = site.submit("-w", f"post_done({job})", "true")
    bad = site.submit("-w", f"post_err({job})", "true")
    assert site.run("bresume", str(job)).returncode == 0
    site.becomes(job, "EXIT")
    history_has(site, job, "Post job process done successfully")
    assert "Post job process done successfully" in site.says("bjobs", "-l", str(job))
    site.becomes(good, "DONE")
    told = said.read_text().splitlines()
    assert told[:4] == ["queue pre root", "pre", "post", "queue post 768 root"]
    wait_for(lambda: "never satisfied" in site.run("bjobs", "-p", str(bad)).stdout, 60, "the other's reason")
    (open_directory / "code").write_text("1")
    failed = site.submit("true")
    history_has(site, failed, "Post job process failed")
    (open_directory / "code").write_text("0")


def test_bkill_of_an_ended_job(site: Cluster) -> None:
    """It ends the job's own command after it, and the slot is free; after that there is nothing to end."""
    job = site.submit("-Ep", "exec sleep 600", "true")
    site.becomes(job, "DONE")
    assert f"Job <{job}> is being terminated" in site.says("bkill", str(job))
    history_has(site, job, "Post job process failed")
    again = site.run("bkill", str(job))
    assert (again.returncode, f"Job <{job}>: Job has already finished" in again.stderr) == (255, True)


def test_a_command_that_fails(site: Cluster) -> None:
    """The job waits, is tried again, and is held after the second failure; repaired, it runs."""
    job = site.submit("-E", "exit 5", "true")
    asked = ("bjobs", "-p", str(job))  # it says that no job is pending while the command is tried
    wait_for(lambda: "pre-exec command exited" in site.run(*asked).stdout, 60, "the pending reason", 0.1)
    site.becomes(job, "PSUSP")
    assert "exited with code 5" in site.says("bhist", "-l", str(job))
    assert site.run("bmod", "-En", str(job)).returncode == 0
    assert site.run("bresume", str(job)).returncode == 0
    site.becomes(job, "DONE")
