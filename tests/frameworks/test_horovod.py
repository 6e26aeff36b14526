"""Elastic Horovod itself, built for torch with gloo: workers run on when the scheduler gives and takes hosts."""

import re
from pathlib import Path

import pytest

from tests.frameworks.reporting import ends, note
from tests.seeds.site import Site
from tests.virtual_environments import ROOT

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root, pytest.mark.framework("horovod")]

JOB = """
name: ring
output: {folder}/out
conventions: {{horovod: {{slots: 1}}}}
policies: [{{on: failed, do: abort}}]
roles:
  launcher:
    tasks: 1
    command: >-
      exec env -u LSB_JOBID horovodrun --gloo -np 2 --min-np 1 --max-np 3 --network-interfaces eth0
      --host-discovery-script "$LAVA_DISCOVER_HOSTS"
      python {example} --steps 100000 --pause 0.2 --stop {folder}/stop
    policies: [{{on: role-completed, do: complete}}]
  worker: {{tasks: 1-3, launch: none}}
"""


def output(site: Site) -> str:
    """Output of the launcher, which has that of all workers."""
    path = site.folder / "out"
    return path.read_text(errors="replace") if path.exists() else ""


def steps(site: Site, size: str = r"\d") -> list[int]:
    """The steps so far, or those with this number of workers."""
    return [int(step) for step in re.findall(rf"step (\d+): {size} workers", output(site))]


def trains(site: Site, job: int, size: int) -> None:
    """Wait for some steps with this number of workers."""
    after = max(steps(site), default=0)
    try:
        site.wait(lambda: sum(step > after for step in steps(site, str(size))) > 3, f"{size} workers", 150)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{output(site)[-6000:]}") from error


def test_workers_run_on_while_hosts_come_and_go(site: Site, programs: Path) -> None:
    """2, 3 and 1 worker: into room that another job leaves, and for a job of a queue that may take it."""
    path = f"{programs}:{site.cluster.environment['PATH']}"
    mine = Site(site.cluster.with_environment(PATH=path), site.folder)
    first, *_ = site.cluster.hosts()
    other = site.cluster.submit("-n", "3", "-R", f"select[hname!={first}]", "sleep", "600")
    site.cluster.becomes(other, "RUN")
    job = mine.run(JOB.format(example=ROOT / "examples" / "elastic_horovod.py", folder=site.folder))
    trains(site, job, 2)
    site.cluster.says("bkill", str(other))
    trains(site, job, 3)
    urgent = site.cluster.submit("-q", "urgent", "-n", "4", "sleep", "600")
    site.cluster.becomes(urgent, "RUN", 60)
    trains(site, job, 1)
    (site.folder / "stop").touch()
    ends(site, job, 90)

    taken = steps(site)
    assert sorted(set(taken)) == list(range(1, max(taken) + 1))
    again = len(taken) - len(set(taken))
    assert "blacklist" not in output(site).lower()
    begun = re.findall(r"begin after step (\d+): rank (\d) of (\d), process (\d+)", output(site))
    rounds: dict[str, set[str]] = {}
    for step, _, _, process in begun:
        rounds.setdefault(step, set()).add(process)
    assert set.intersection(*rounds.values()), begun  # one worker, whatever its rank, ran on all the time
    sizes = list(dict.fromkeys((step, size) for step, rank, size, _ in begun if rank == "0"))
    note("horovod", f"{max(taken)} steps, after (step, workers) {sizes}; {again} taken twice, one worker in all")
