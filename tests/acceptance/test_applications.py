"""Application profiles with real processes: from lsb.applications to the job's environment, limits and end."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

PROFILES = """
    Begin Application
    NAME = md
    DESCRIPTION = molecular dynamics
    RUNLIMIT = 5
    NICE = 7
    ENV_VARS = "MD_HOME='/opt/md'"
    JOB_STARTER = export STARTED=yes; %USRCMD
    REQUEUE_EXIT_VALUES = 77
    SUCCESS_EXIT_VALUES = 3 10-12
    End Application
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One host of two slots."""
    params = "Begin Parameters\nDEFAULT_QUEUE = normal\nLAVA_REQUEUE_DELAY = 1\nEnd Parameters\n"
    files = {"lsb.applications": PROFILES, "lsb.params": params}
    with a_cluster(tmp_path_factory.mktemp("applications") / "D", 1, 2, lsf_files=files) as made:
        yield made


def test_a_job_of_a_profile(cluster: Cluster, tmp_path: Path) -> None:
    """It has the profile's variables, starter, nice value, run limit and requeue values; -app finds it."""
    said, ran = tmp_path / "said", tmp_path / "ran"
    job = cluster.submit(
        "-app", "md", f"echo $MD_HOME $STARTED $(nice) > {said}; echo x >> {ran}; [ $(wc -l < {ran}) -ge 2 ] || exit 77"
    )
    cluster.becomes(job, "DONE")
    assert said.read_text() == "/opt/md yes 7\n"
    assert ran.read_text() == "x\nx\n"
    long = cluster.says("bjobs", "-l", str(job))
    assert "Application <md>" in long
    assert "5.0 min" in long
    running = cluster.submit("-app", "md", "sleep 300")
    cluster.becomes(running, "RUN")
    assert cluster.says("bapp", "md").splitlines()[1].split() == ["md", "1", "0", "1", "0"]
    assert cluster.says("bkill", "-app", "md", "0") == f"Job <{running}> is being terminated"
    wait_for(lambda: "done jobs:" in cluster.run("bacct", "-app", "md").stdout, 60, "the account")
    assert "nope: No such application profile" in cluster.run("bsub", "-app", "nope", "true").stderr


def test_an_exit_code_that_means_success(cluster: Cluster, tmp_path: Path) -> None:
    """SUCCESS_EXIT_VALUES: DONE for users, dependants and the report; the code is kept."""
    output = tmp_path / "output"
    job = cluster.submit("-app", "md", "-o", str(output), "exit 11")
    after = cluster.submit("-w", f"done({job})", "true")
    cluster.becomes(after, "DONE")
    assert cluster.states(job) == {0: ("DONE", 11)}
    report = output.read_text()
    assert re.match(rf"\n-+\nSender: .*\nSubject: Job {job}: <exit 11> in cluster <\S+> Done\n", report)
    assert "\nSuccessfully completed.\n" in report
    failed = cluster.submit("-app", "md", "-oo", str(output), "exit 13")
    cluster.becomes(failed, "EXIT")
    assert "\nExited with exit code 13.\n" in output.read_text()
    own = cluster.with_environment(LSB_SUCCESS_EXIT_VALUES="13").submit("-app", "md", "-oo", str(output), "exit 13")
    cluster.becomes(own, "DONE")
    assert "\nSuccessfully completed.\n" in output.read_text()
    assert "Success Exit Values <13>" in cluster.says("bjobs", "-UF", str(own))
