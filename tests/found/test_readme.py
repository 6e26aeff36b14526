"""The README's commands as a reader types them."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, wait_for

README = Path(__file__).resolve().parents[2] / "README.md"


def blocks(section: str) -> list[str]:
    """The shell blocks of a section."""
    text = README.read_text(encoding="utf-8").partition(f"## {section}\n")[2].partition("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", text, re.DOTALL)


def test_each_way_to_try_it_stands_on_a_line_of_its_own() -> None:
    """No virtual environment is activated: .venv holds an MPI for lava's tests, whose mpirun ran users' programs
    wrongly.
    """
    lines = [line for block in blocks("Try it on one machine") for line in block.splitlines()]
    assert [line for line in lines if line.startswith("make ")] == ["make setup", "make demo", "make test"]
    assert not any("activate" in line for line in lines)


@pytest.mark.acceptance
@pytest.mark.slow
def test_the_first_jobs_work_as_printed(cluster: Cluster, tmp_path: Path) -> None:
    """The script named a program that does not exist, and ended with 255 for every reader."""
    for block in blocks("A first job"):
        text = block.replace("cat hello.out\n", "")
        environment = {**cluster.environment, "PATH": f"{cluster.environment['PATH']}:/usr/bin:/bin"}
        done = subprocess.run(
            ["sh", "-e", "-c", text], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done
    wait_for(lambda: not cluster.run("bjobs", "-noheader").stdout, 60, "the jobs to end")
    assert "hello from" in (tmp_path / "hello.out").read_text()
    (wave,) = tmp_path.glob("wave.[0-9]*")
    hosts = [line for line in wave.read_text().splitlines() if line in ("lava1", "lava2")]
    assert sorted(hosts) == ["lava1", "lava1", "lava2", "lava2"]


def test_the_environment_of_a_cluster_brings_no_mpi(cluster: Cluster) -> None:
    """``lavactl env`` puts lava's commands on PATH, which is all that the README's way adds."""
    first = Path(cluster.environment["PATH"].partition(":")[0])
    assert (first / "bsub").exists()
    assert not any((first / name).exists() for name in ("mpirun", "mpiexec", "python"))
