"""Jobs of tasks that lose a host, with real processes: its agent is killed, and its shepherds end what their lease
does not cover."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

FENCE_S = 6
JOB = """\
name: gang
restarts: 3
replace-within: 60s
policies:
  - {{on: host-lost, do: {action}}}
roles:
  worker:
    tasks: 2
    spares: {spares}
    requirement: span[ptile=1]
    command: |
      echo $LAVA_ROLE_INDEX $LAVA_TASK_RUN $(hostname) >> {where}/log
      while [ ! -e {where}/go ]; do sleep 0.1; done
"""


@pytest.fixture(scope="module")
def four_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Four hosts with two slots each; a host is declared lost some ten seconds after its agent's end."""
    directory = tmp_path_factory.mktemp("cluster") / "D"
    settings = {"LAVA_HEARTBEAT": "0.5", "LAVA_SILENT_AFTER": "3", "LAVA_FENCE_AFTER": str(FENCE_S)}
    with a_cluster(directory, 4, 2, LAVA_TERMINATE_INTERVAL="1", **settings) as made:
        yield made


def _starts(where: Path) -> list[list[str]]:
    path = where / "log"
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def _begin(cluster: Cluster, where: Path, action: str, spares: int) -> int:
    """Run a gang of two workers on two hosts."""
    where.mkdir()
    file = where / "job.yaml"
    file.write_text(JOB.format(action=action, spares=spares, where=where))
    done = cluster.run("lavactl", "run", "-f", str(file))
    assert done.returncode == 0, done
    wait_for(lambda: len(_starts(where)) == 2, 60, "both workers to start")
    return int(done.stdout.partition("<")[2].partition(">")[0])


def test_two_gangs_lose_a_host(four_hosts: Cluster, tmp_path: Path) -> None:
    """Under restart-task the survivor's process goes on; under restart-job a spare host takes part in a new start.

    Both stay in their first attempt, also when the lost host is back.
    """
    alone, together = tmp_path / "alone", tmp_path / "together"
    jobs = _begin(four_hosts, alone, "restart-task", 0), _begin(four_hosts, together, "restart-job", 1)
    hosts = {where: {index: host for index, _, host in _starts(where)} for where in (alone, together)}
    lost = hosts[alone]["1"]
    assert hosts[together] == hosts[alone]
    four_hosts.kill(f"agent-{lost}")
    wait_for(lambda: len(_starts(alone)) == 3, 60, "the lost worker to run again")
    wait_for(lambda: len(_starts(together)) == 4, 60, "both workers to run again")
    ((index, run, host),) = _starts(alone)[2:]
    assert (index, run) == ("1", "2")
    assert host not in hosts[alone].values()
    again = {index: (run, host) for index, run, host in _starts(together)[2:]}
    assert again["0"] == ("2", hosts[together]["0"])
    assert again["1"][0] == "2"
    assert again["1"][1] not in hosts[together].values()
    four_hosts.up()
    shown = four_hosts.says("lavactl", "tasks", str(jobs[0]))
    assert host in shown
    for where, job in zip((alone, together), jobs, strict=True):
        (where / "go").touch()
        four_hosts.becomes(job, "DONE")
    history = " ".join(four_hosts.says("bhist", "-l", str(jobs[0])).split())
    assert f"Host {lost} and its tasks are lost" in history
    assert "Task worker[1] restarted (1 of 3): host lost" in history
    assert "Job keeps its other hosts, and waits up to 60 s for a host for worker[1]" in history
    assert "requeued" not in history
    other = " ".join(four_hosts.says("bhist", "-l", str(jobs[1])).split())
    assert f"Spare places on {again['1'][1]} are taken for worker[1]" in other
    assert (len(_starts(alone)), len(_starts(together))) == (3, 4)
