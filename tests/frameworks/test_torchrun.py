"""torchrun on hosts that come and go by the scheduler's own decisions, with training that goes on from its checkpoint.

LAVA_TORCHRUN names a torchrun; else one is installed under .cache.
"""

import os
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.frameworks import environments
from tests.seeds.site import Site
from tests.virtual_environments import ROOT

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

EXAMPLE = ROOT / "examples" / "elastic_torch.py"
EVERY = 5
JOB = """
name: elastic
output: {folder}/out
roles:
  worker:
    tasks: 1-3
    slots: 2
    ports: {{rdzv: 1}}
    command: exec {torchrun} {example} {folder}/model.pt --steps 100000 --pause 0.1 --stop {folder}/stop
conventions:
  torchelastic: {{rdzv-conf: "last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=3"}}
"""


@pytest.fixture
def torchrun() -> Path:
    """The program; the test is left out where it cannot be had."""
    if given := os.environ.get("LAVA_TORCHRUN"):
        return Path(given)
    try:
        return environments.programs("torch") / "torchrun"
    except environments.Missing as missing:
        pytest.skip(str(missing))


def output(site: Site) -> str:
    """Output of all tasks in order of time; the first rank moves from one to another."""
    path = site.folder / "out"
    return path.read_text() if path.exists() else ""


def steps(site: Site, size: str = r"\d") -> list[int]:
    """The steps so far, or those with this number of workers."""
    return [int(step) for step in re.findall(rf"^step (\d+): {size} workers", output(site), re.MULTILINE)]


def trains(site: Site, size: int) -> None:
    """Wait until a checkpoint has been made with this number of workers."""
    after = max(steps(site), default=0)
    kept = f"training with {size} workers"
    site.wait(lambda: any(step > after and not step % EVERY for step in steps(site, str(size))), kept, 120)


def parts(site: Site) -> list[tuple[int, int]]:
    """The parts of the training: after which step each began, and with how many workers."""
    found = re.findall(r"^begin after step (\d+): (\d) workers", output(site), re.MULTILINE)
    return [(int(step), int(size)) for step, size in found]


def test_training_grows_from_one_host_to_three_and_shrinks_to_one(site: Site, torchrun: Path) -> None:
    """Into the room that another job leaves, and for a job of a queue that may take it; the loss falls all the time."""
    first, *_ = site.cluster.hosts()
    other = site.cluster.submit("-n", "4", "-R", f"select[hname!={first}]", "sleep", "600")
    site.cluster.becomes(other, "RUN")
    job = site.run(JOB.format(torchrun=torchrun, example=EXAMPLE, folder=site.folder))
    trains(site, 1)
    site.cluster.says("bkill", str(other))
    trains(site, 3)
    urgent = site.cluster.submit("-q", "urgent", "-n", "4", "sleep", "600")
    site.cluster.becomes(urgent, "RUN", 90)
    trains(site, 1)
    (site.folder / "stop").touch()
    site.ends(job)

    history = "".join(site.cluster.history(job).split())
    assert history.count("bythescheduler;intoidleroom") in (1, 2)  # its two hosts are free at once, or one by one
    assert f"bythescheduler;tomakeroomforjob{urgent}" in history
    assert [size for _, size in parts(site) if size != 2] == [1, 3, 1]
    taken = Counter(steps(site))
    assert sorted(taken) == list(range(1, max(taken) + 1))
    again = [step for step, times in taken.items() if times > 1]
    assert all(any(begin < step < begin + EVERY for begin, _ in parts(site)) for step in again), (parts(site), again)
    last = next(line for line in output(site).splitlines() if line.startswith("trained "))
    first_loss, last_loss = map(float, re.findall(r"loss (\S+) to (\S+)", last)[0])
    assert last_loss < first_loss / 10
    print(f"\n{last}; {len(again)} steps taken twice")
