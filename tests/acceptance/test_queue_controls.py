"""NICE, JOB_STARTER and JOB_CONTROLS of a queue, with real processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

QUEUES = """\
Begin Queue
QUEUE_NAME   = calm
PRIORITY     = 30
NICE         = 11
JOB_STARTER  = WRAPPED=yes; export WRAPPED; %USRCMD
JOB_CONTROLS = SUSPEND[echo stop $LSB_SUSP_REASONS >> {said}; kill -STOP $LSB_JOBPIDS] \\
               RESUME[SIGCONT] TERMINATE[{directory}/end.sh]
End Queue
"""
END = """\
#!/bin/sh
echo "end $LSB_JOBID" >> {said}
kill -USR1 $LSB_JOBPIDS
"""
JOB = "trap 'echo saved; exit 4' USR1; echo up $WRAPPED $(nice); while :; do sleep 0.1; done"


@pytest.fixture(scope="module")
def site(open_directory: Path) -> Iterator[Cluster]:
    """One host; the queue's commands write into a file."""
    directory = open_directory / "N"
    said = open_directory / "said"
    queues = QUEUES.format(said=said, directory=open_directory)
    end = open_directory / "end.sh"
    end.write_text(END.format(said=said))
    end.chmod(0o755)
    with a_cluster(directory, 1, 4, lsf_files={"lsb.queues": queues}) as made:
        yield made


def test_a_job_of_such_a_queue(site: Cluster, open_directory: Path) -> None:
    """Nice and wrapped from the start; suspended, resumed and terminated by the queue's controls, with the usual
    reasons.
    """
    output, said = open_directory / "output", open_directory / "said"
    job = site.submit("-q", "calm", "-o", str(output), JOB)
    wait_for(lambda: output.exists() and output.read_text().startswith("up yes 11\n"), 60, "the job to run")
    assert site.run("bstop", str(job)).returncode == 0
    wait_for(lambda: said.exists() and said.read_text() == "stop 2\n", 60, "the SUSPEND command")
    site.becomes(job, "USUSP")
    assert site.run("bresume", str(job)).returncode == 0
    site.becomes(job, "RUN")
    assert site.run("bkill", str(job)).returncode == 0
    site.becomes(job, "EXIT")
    assert site.states(job)[0] == ("EXIT", 4)
    assert said.read_text() == f"stop 2\nend {job}\n"
    assert "saved" in output.read_text()
    assert "TERM_OWNER: job killed by owner." in site.run("bjobs", "-l", str(job)).stdout


def test_they_are_honoured(site: Cluster) -> None:
    """ckconfig reports them as honoured, and bqueues shows them."""
    listed = site.run("badmin", "ckconfig", "-v").stdout
    ignored = listed.partition("ignored")[2]
    assert not any(name in ignored for name in ("NICE", "JOB_STARTER", "JOB_CONTROLS"))
    shown = site.run("bqueues", "-l", "calm").stdout
    assert "JOB_STARTER:  WRAPPED=yes; export WRAPPED; %USRCMD" in shown


def test_a_forced_kill_goes_over_the_controls(site: Cluster, open_directory: Path) -> None:
    """bkill -s KILL, although the TERMINATE command has not ended the job."""
    output = open_directory / "stubborn"
    job = site.submit("-q", "calm", "-o", str(output), "trap '' USR1; echo up; while :; do sleep 0.1; done")
    wait_for(lambda: output.exists() and output.read_text().startswith("up"), 60, "the job to run")
    site.run("bkill", str(job))
    said = open_directory / "said"
    wait_for(lambda: said.exists() and f"end {job}\n" in said.read_text(), 60, "the TERMINATE command")
    assert site.run("bkill", "-s", "KILL", str(job)).returncode == 0
    site.becomes(job, "EXIT")
    assert site.states(job)[0] == ("EXIT", 137)
