"""A job in Slurm's words: its variables, its script's arguments, the names of its files."""

from pathlib import Path

import pytest

from agents.shepherd.process.spawner import _of_slurm
from protos.common_pb2 import HostShare, IndexRange, Role
from protos.jobs_pb2 import JobSpec, SlurmTerms
from protos.slurm_words import expanded, expanded_name, names_of_job
from tests.agents.test_environment import environment_of

ALLOCATION = [
    HostShare(host="n1", slots=4, gpus=[0, 3], tasks_by_role=[2]),
    HostShare(host="n2", slots=4, tasks_by_role=[2]),
    HostShare(host="n3", slots=2, tasks_by_role=[1]),
]


def test_the_batch_step_is_told_of_its_allocation(tmp_path: Path) -> None:
    """Scripts compute ranks, ports and hosts from it; an mpirun is kept from looking for Slurm."""
    spec = JobSpec(
        name="train",
        project="p1",
        cwd="/home/alice/run",
        submit_host="login1",
        roles=[Role(tasks_min=5, tasks_max=5, slots_per_task=2)],
        slurm=SlurmTerms(command="sbatch"),
        environment=[b"SLURM_NTASKS=5"],
    )
    found = environment_of(tmp_path, spec, ALLOCATION)
    expected = {
        "SLURM_JOB_ID": "12",
        "SLURM_JOB_NAME": "train",
        "SLURM_JOB_NODELIST": "n[1-3]",
        "SLURM_JOB_NUM_NODES": "3",
        "SLURM_NNODES": "3",
        "SLURM_JOB_CPUS_PER_NODE": "4(x2),2",
        "SLURM_TASKS_PER_NODE": "2(x2),1",
        "SLURM_JOB_PARTITION": "night",
        "SLURM_JOB_ACCOUNT": "p1",
        "SLURM_JOB_USER": "alice",
        "SLURM_SUBMIT_DIR": "/home/alice/run",
        "SLURM_SUBMIT_HOST": "login1",
        "SLURMD_NODENAME": "n1",
        "SLURM_CPUS_ON_NODE": "4",
        "SLURM_GPUS_ON_NODE": "2",
        "SLURM_JOB_GPUS": "0,3",
        "SLURM_PROCID": "0",
        "SLURM_NTASKS": "5",
        "OMPI_MCA_plm": "rsh",
    }
    assert {name: found.get(name) for name in expected} == expected
    assert "SLURM_ARRAY_JOB_ID" not in found


def test_other_jobs_have_none_of_it(tmp_path: Path) -> None:
    """A program of a bsub job must not take Slurm for its launcher."""
    assert not any(name.startswith("SLURM") for name in environment_of(tmp_path, JobSpec(name="x"), ALLOCATION))


def test_elements_are_numbered_as_their_user_counts(tmp_path: Path) -> None:
    """--array=0-8:4 is 1-9:4 of lava."""
    spec = JobSpec(array=[IndexRange(first=1, last=9, step=4)], slurm=SlurmTerms(command="sbatch", array_base=1))
    found = environment_of(tmp_path, spec, ALLOCATION)
    names = ("ARRAY_JOB_ID", "ARRAY_TASK_MIN", "ARRAY_TASK_MAX", "ARRAY_TASK_STEP", "ARRAY_TASK_COUNT")
    assert [found[f"SLURM_{name}"] for name in names] == ["12", "0", "8", "4", "3"]
    assert _of_slurm((12, 1, 1), 1) == {b"SLURM_ARRAY_TASK_ID": b"0"}
    assert _of_slurm((12, 0, 3), 0) == {b"SLURM_RESTART_COUNT": b"2"}


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ("slurm-%j.out", "slurm-7_3.out"),
        ("%x-%A_%4a.log", "train-7_0003.log"),
        ("%u/%N/%t-%n-%s", "alice/n1/0-0-batch"),
        ("50%%-%q.out", "50%-%q.out"),
        ("\\%j.out", "%j.out"),
    ],
)
def test_names_of_files_have_slurms_patterns(template: str, name: str) -> None:
    """Widths pad with zeros; unknown letters stay; a backslash leaves all as it is."""
    assert expanded_name(template, names_of_job(7, 3, "train", "alice", "n1")) == name


@pytest.mark.parametrize(
    ("text", "hosts"),
    [("n[01-03,07],login", ["n01", "n02", "n03", "n07", "login"]), ("r[1-2]c[1-2]", ["r1c1", "r1c2", "r2c1", "r2c2"])],
)
def test_lists_of_hosts_are_expanded(text: str, hosts: list[str]) -> None:
    """The widths of numbers stay."""
    assert expanded(text) == hosts


@pytest.mark.parametrize("text", ["n[1-", "n[a-b]", "n[3-1]", "n]1[", "n[1-99999999]"])
def test_malformed_lists_of_hosts_are_refused(text: str) -> None:
    """And so is one of more hosts than any cluster has."""
    with pytest.raises(ValueError, match=r".*"):
        expanded(text)
