"""CPU and memory-node binding of a job, with real processes: it cannot be widened, and ends with the job."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agents.shepherd.confinement import cpuset, memory_policy
from agents.shepherd.confinement.hierarchy import CPUSET
from protos.common_pb2 import HostShare, TaskCpus
from tests.agents.hosts import NAME, Host, Place, blob, lines, stage

ALL = sorted(os.sched_getaffinity(0))
# Tries to use every processor, also in a child, and prints those it got.
WIDEN = (
    "python3 -c 'import os; os.sched_setaffinity(0, range(1024)); child = os.fork(); "
    "child or os.sched_setaffinity(0, range(1024)); print(sorted(os.sched_getaffinity(0)), flush=True); "
    "child and os.waitpid(child, 0)'"
)


def bound(cpu: int, memory: str = "") -> HostShare:
    """One task on one processor."""
    return HostShare(host=NAME, slots=1, cpus=[TaskCpus(cpus=[cpu], nodes=[0], memory=memory)])


@pytest.mark.root
def test_a_job_stays_on_its_processors_whatever_it_asks_for(place: Place) -> None:
    """Neither it nor its child can widen its affinity; the next job of the same shepherd has all processors again."""

    async def act() -> list[list[str]]:
        async with Host(place, slots=1) as host:
            if CPUSET not in dict(host.base.paths):
                pytest.skip("no cpuset controller to be had")
            said = []
            for number, where in enumerate((bound(ALL[-1]), HostShare(host=NAME, slots=1), bound(ALL[0])), 1):
                await host.finish(blob(place, number, WIDEN), stage(where))
                said.append(sorted(lines(place.out())))
                place.out().unlink()
            return said

    first, second, third = asyncio.run(act())
    assert first == [f"[{ALL[-1]}]"] * 2
    assert second == [str(ALL)] * 2
    assert third == [f"[{ALL[0]}]"] * 2


@pytest.mark.parametrize(
    ("memory", "policies"),
    [("localonly", ["bind:0"]), ("localprefer", ["prefer:0", "prefer (many):0"]), ("", ["default"])],
)
def test_memory_comes_from_the_nodes_of_the_job(place: Place, memory: str, policies: list[str]) -> None:
    """By the kernel's own list of a job's memory: all of it was taken by that policy."""
    if not Path("/proc/self/numa_maps").exists() or not Path("/sys/devices/system/node/node0").exists():
        pytest.skip("a kernel without memory nodes")
    command = "cut -d' ' -f2- /proc/self/numa_maps"

    async def act() -> list[str]:
        async with Host(place, slots=1) as host:
            await host.finish(blob(place, 1, command), stage(bound(ALL[0], memory)))
            await host.finish(blob(place, 2, "true"), stage())
            return lines(place.out())

    said = asyncio.run(act())
    assert said
    assert all(any(line.startswith(policy) for policy in policies) for line in said if line), said


def test_a_node_that_is_not_there() -> None:
    """The kernel's refusal is an error of the call, not of the job."""
    ask = "from agents.shepherd.confinement import memory_policy as m; m.prefer('localonly', [1023])"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=False)
    assert "OSError" in done.stderr
    assert memory_policy.LOCAL_ONLY == "localonly"


def version_2(place: Path) -> Path:
    """A slot's group without a restriction, below one with four processors."""
    own = place / "1"
    own.mkdir()
    for name, all_of_it in ((cpuset.CPUS, "0-3\n"), (cpuset.NODES, "0\n")):
        (place / f"{name}.effective").write_text(all_of_it)
        (own / name).write_text("\n")
    return own


def test_version_2_writes_only_what_changes(tmp_path: Path) -> None:
    """A cpuset file is written only if its content changes."""
    own = version_2(tmp_path)
    group = cpuset.Cpuset(str(own))
    assert (own / cpuset.CPUS).read_text() == "\n"
    group.hold((1, 3), (0,))
    assert (own / cpuset.CPUS).read_text().startswith("1,3")
    (own / cpuset.CPUS).write_text("")
    group.hold((1, 3), (0,))
    assert (own / cpuset.CPUS).read_text() == ""


def test_version_2_gives_all_processors_back(tmp_path: Path) -> None:
    """The kernel refuses to empty the file of a group with members: the next job of the slot would not start."""
    own = version_2(tmp_path)
    group = cpuset.Cpuset(str(own))
    group.hold((1, 3), (0,))
    group.hold((), ())
    assert ((own / cpuset.CPUS).read_text(), (own / cpuset.NODES).read_text()) == ("0-3", "0")


def test_version_2_takes_a_restriction_off_that_another_shepherd_left(tmp_path: Path) -> None:
    """The group may be kept while its next shepherd starts."""
    own = version_2(tmp_path)
    (own / cpuset.CPUS).write_text("2\n")
    cpuset.Cpuset(str(own))
    assert ((own / cpuset.CPUS).read_text(), (own / cpuset.NODES).read_text()) == ("0-3", "\n")
