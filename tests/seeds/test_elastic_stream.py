"""An elastic job under a stream of jobs that go before it: it gives and takes hosts, and no step of it fails.

A few turns here; LAVA_ELASTIC_TURNS=100 is the length that issue 12 asks for.
"""

import os
import shutil
from pathlib import Path

import pytest

from tests.acceptance.personal import wait_for
from tests.seeds.site import Site

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

TURNS = int(os.environ.get("LAVA_ELASTIC_TURNS", "3"))
PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "elastic_steps.py"
JOB = """
name: stream
roles:
  worker:
    tasks: 2-6
    command: exec python3 {folder}/elastic_steps.py {folder}/state 1000000
"""


def _has(site: Site, job: int, tasks: int) -> bool:
    rows = site.tasks(job).values()
    return sum(row["STAT"] == "RUN" for row in rows) == tasks == sum(row["HOST"] != "-" for row in rows)


def _be(site: Site, job: int, tasks: int) -> None:
    wait_for(lambda: _has(site, job, tasks), 60, f"{tasks} tasks: {site.phases(job)}")


def test_hosts_are_given_and_taken_without_a_failed_step(site: Site) -> None:
    """The trainer is one process from beginning to end; a worker that leaves finishes its piece of work."""
    shutil.copy(PROGRAM, site.folder)
    job = site.run(JOB.format(folder=site.folder))
    _be(site, job, 6)
    trainer = site.tasks(job)["worker/0"]["PID"]
    for turn in range(TURNS):
        urgent = site.cluster.submit("-q", "urgent", "-n", "4" if turn % 2 else "2", "sleep", "0.2")
        site.cluster.becomes(urgent, "DONE", 60)
        _be(site, job, 6)
    assert site.cluster.state(job) == "RUN"
    assert site.tasks(job)["worker/0"]["PID"] == trainer
    lists = [line for line in site.log(job, "worker/0").splitlines() if line.startswith("step")]
    assert all(len(line.split()) > 2 for line in lists)
    changes = "".join(site.cluster.history(job).split()).count("Resizedto")
    assert changes >= 2 * TURNS  # each turn shrinks and grows it
    present = {row["PID"] for row in site.tasks(job).values()}  # these are in the middle of a piece
    failed, pieces = 0, 0
    for log in (site.folder / "state").glob("worker-*.log"):
        words = [line.split() for line in log.read_text().splitlines()]
        pieces += sum(word == "end" for word, _ in words)
        failed += sum(1 if word == "begin" else -1 for word, pid in words if pid not in present)
    print(f"turns={TURNS} changes={changes} lists={len(lists)} pieces={pieces} failed={failed}")
    assert failed == 0
