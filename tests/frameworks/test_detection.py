"""Libraries that look for a scheduler by themselves, in a job of two hosts: rank, size and address are found."""

import re
from pathlib import Path

import pytest

from tests.frameworks.reporting import PROGRAMS, ends, note
from tests.seeds.site import Site

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

JOB = """
name: found
conventions: {{{convention}}}
roles:
  worker:
    tasks: 2
    slots: 2
    {more}
    command: exec {command}
"""


def found_by(site: Site, framework: str, convention: str, command: str, more: str = "") -> list[str]:
    """Run a job of two tasks on two hosts; the line of each about itself."""
    job = site.run(JOB.format(convention=convention, command=command, more=more))
    ends(site, job, 240)
    assert len({row["HOST"] for row in site.tasks(job).values()}) == 2
    lines = [line for index in range(2) for line in site.log(job, f"worker/{index}").splitlines()]
    found = [line for line in lines if re.match(r"(JAX|Lightning|Accelerate|DeepSpeed) \d", line)]
    for line in found:
        note(framework, line)
    return found


@pytest.mark.framework("jax")
def test_jax_finds_the_job_without_arguments(site: Site, programs: Path) -> None:
    """`jax.distributed.initialize()` in the words of Slurm; a psum over both processes."""
    lines = found_by(site, "jax", "slurm: {}", f"{programs}/python {PROGRAMS}/jax_sum.py")
    for rank, line in enumerate(lines):
        assert re.search(rf"process {rank} of 2 at \S+:\d+: psum 3, all \[0, 1\]", line), line
    assert len(lines) == 2


@pytest.mark.framework("lightning")
def test_lightning_finds_the_job_in_the_words_of_slurm(site: Site, programs: Path) -> None:
    """SLURMEnvironment, with the first host as the address."""
    lines = found_by(site, "lightning", "slurm: {}", f"{programs}/python {PROGRAMS}/lightning_fit.py 2")
    first = sorted(site.cluster.hosts())[0]
    for rank, line in enumerate(lines):
        assert re.search(rf"SLURMEnvironment: rank {rank} of 2, node {rank}, {first}:\d+, sum 3", line), line
    assert len(lines) == 2


@pytest.mark.framework("lightning")
def test_lightning_finds_the_job_below_torchrun(site: Site, programs: Path) -> None:
    """TorchElasticEnvironment: torchrun has its options from the job."""
    torchrun = programs.parent.parent / "torch" / "bin" / "torchrun"
    command = f"{torchrun} --no-python {programs}/python {PROGRAMS}/lightning_fit.py 2"
    lines = found_by(site, "lightning", "torchelastic: {}", command, "ports: {rdzv: 1}")
    ranks = sorted(re.search(r"TorchElasticEnvironment: rank (\d) of 2, .*sum 3", line)[1] for line in lines)  # type: ignore[index]
    assert ranks == ["0", "1"]


@pytest.mark.framework("lightning")
def test_accelerate_finds_the_job_in_the_words_of_pytorch(site: Site, programs: Path) -> None:
    """Rank, size and master of the convention pytorch."""
    command = f"{programs}/python {PROGRAMS}/accelerate_sum.py"
    lines = found_by(site, "accelerate", "pytorch: {}", command, "ports: {pytorch: 1}")
    assert [line.partition(": ")[2] for line in lines] == ["process 0 of 2: sum 3", "process 1 of 2: sum 3"]


@pytest.mark.framework("deepspeed")
def test_deepspeed_reads_the_host_file(site: Site, programs: Path) -> None:
    """Hosts and slots, as its launcher has them."""
    lines = found_by(site, "deepspeed", "deepspeed: {}", f"{programs}/python {PROGRAMS}/deepspeed_hosts.py")
    assert lines
    assert all(line.endswith("{'found-worker-0.found': 2, 'found-worker-1.found': 2}") for line in lines), lines
