"""Jobs that hang, with real processes: stacks first, then what the job's policy says; without one a warning."""

from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

# The tests' own traffic is none of the jobs'.
RULE = "after=1:network=100000000000"
RESTARTED = """
name: wedged
output: out.%R.%T
hang: {{after: 3s, network: 100000000000}}  # the second run has as much time to begin and to end
restarts: 2
policies:
  - {{on: hangs, do: restart-job}}
roles:
  worker:
    tasks: 2
    command: |
      echo "run $LAVA_TASK_RUN" >> {directory}/runs
      [ "$LAVA_TASK_RUN" = 2 ] || exec sleep 1000
"""


def test_a_job_that_hangs_is_restarted_when_its_stacks_are_saved(tmp_path: Path) -> None:
    """The one with a policy; the other is only told to hang, also by the next agents and the next master."""
    directory = tmp_path / "work"
    directory.mkdir()
    directory.chmod(0o777)
    with a_cluster(tmp_path / "cluster", 2, 2, LAVA_HEARTBEAT="1", LAVA_UNUSED_HOST="2") as cluster:
        cluster = cluster.at(directory)
        warned = cluster.submit("-n", "2", "-R", "span[ptile=1]", "-hang", RULE, "-o", "out", "exec sleep 1000")
        (directory / "job.yaml").write_text(RESTARTED.format(directory=directory))
        cluster.says("lavactl", "run", "-f", "job.yaml")
        restarted = warned + 1
        wait_for(lambda: "The job hangs" in cluster.says("bjobs", "-l", str(warned)), 60, "the warning")
        for daemon in ("lavad", "agent-lava1"):
            cluster.kill(daemon)
        cluster.up()
        cluster.becomes(restarted, "DONE", 60)
        _check_history(cluster, restarted, directory)
        told = words(cluster.history(warned))
        assert told.count("Hangs:nooutput,noprogress") == 1
        unused = "Hostlava2hashadnoprocessofthejobfor"
        wait_for(lambda: unused in words(cluster.history(warned)), 60, "the unused host to be told")
        assert cluster.state(warned) == "RUN"


def words(text: str) -> str:
    """Text without blanks: lines are broken within words."""
    return "".join(text.split())


def _check_history(cluster: Cluster, job: int, directory: Path) -> None:
    told = words(cluster.history(job))
    assert sorted((directory / "runs").read_text().splitlines()) == ["run 1", "run 1", "run 2", "run 2"]
    lines = ("Hangs:nooutput", "Stacksofitsprocessesonlava", "Jobrestarted(1of2):hangs")
    assert [line for line in lines if line in told] == sorted(lines, key=told.find) == list(lines)
    files = list(directory.glob(f"stacks.{job}.1.1.*"))
    assert files
    for path in files:
        assert str(path) in told
        assert "sleep 1000" in path.read_text()
