"""Slurm's variables, as the programs that look for them read them."""

import pytest

from protos.slurm_words import compressed, repeated
from tests.agents.told.jobs import at, job, role, told, variables

ROLES = (role("worker", slots_per_task=4),)
HOSTS = (at("n08", "10.0.0.8", r0="0,1"), at("n09", "10.0.0.9", r0="2,3"), at("n10", "10.0.0.10", r0="4"))


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        (["n1"], "n1"),
        (["n1", "n2", "n3", "n5"], "n[1-3,5]"),
        (["n08", "n09", "n10"], "n[08-10]"),
        (["n9", "n10"], "n[9-10]"),
        (["n09", "n9"], "n[09,9]"),
        (["n3", "n2"], "n[3,2]"),
        (["login", "gpu1", "gpu2", "a7"], "login,gpu[1-2],a7"),
        (["n1.site", "n2.site"], "n1.site,n2.site"),
    ],
)
def test_hosts_are_compressed_in_their_order(hosts: list[str], text: str) -> None:
    """Slurm's own notation; nothing is sorted, since the first host has rank 0."""
    assert compressed(hosts) == text


def test_counts_are_repeated() -> None:
    """As in SLURM_TASKS_PER_NODE."""
    assert repeated([2, 2, 2, 1]) == "2(x3),1"
    assert repeated([4]) == "4"


def test_what_jax_and_lightning_look_for() -> None:
    """Ranks by node, and the numbers of the step."""
    result = variables(told(job(ROLES, "slurm"), HOSTS, role=0, index=3, gpus=(1,)), "SLURM")
    expected = {
        "SLURM_JOB_ID": "7",
        "SLURM_JOBID": "7",
        "SLURM_JOB_NAME": "mnist",
        "SLURM_JOB_NODELIST": "n[08-10]",
        "SLURM_NODELIST": "n[08-10]",
        "SLURM_JOB_NUM_NODES": "3",
        "SLURM_NNODES": "3",
        "SLURM_JOB_CPUS_PER_NODE": "8(x2),4",
        "SLURM_JOB_PARTITION": "gpu",
        "SLURM_TASKS_PER_NODE": "2(x2),1",
        "SLURM_NTASKS": "5",
        "SLURM_NPROCS": "5",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": "n[08-10]",
        "SLURM_STEP_NUM_NODES": "3",
        "SLURM_STEP_NUM_TASKS": "5",
        "SLURM_STEP_TASKS_PER_NODE": "2(x2),1",
        "SLURM_LAUNCH_NODE_IPADDR": "10.0.0.8",
        "SLURM_SRUN_COMM_HOST": "10.0.0.8",
        "SLURM_PROCID": "3",
        "SLURM_LOCALID": "1",
        "SLURM_NODEID": "1",
        "SLURM_GTIDS": "2,3",
        "SLURMD_NODENAME": "n09",
        "SLURM_CPUS_PER_TASK": "4",
        "SLURM_CPUS_ON_NODE": "8",
        "SLURM_STEP_GPUS": "1",
    }
    assert {name: result[name] for name in expected} == expected
    assert "SLURM_RESTART_COUNT" not in result
    assert "SLURM_ARRAY_JOB_ID" not in result


def test_an_element_and_a_later_attempt() -> None:
    """SLURM_ARRAY_TASK_ID is the element's index, SLURM_RESTART_COUNT that of attempts before."""
    result = told(job(ROLES, "slurm"), HOSTS, role=0, index=0, key=(7, 12, 3)).environment
    assert (result["SLURM_ARRAY_JOB_ID"], result["SLURM_ARRAY_TASK_ID"]) == ("7", "12")
    assert result["SLURM_RESTART_COUNT"] == "2"


def test_a_step_of_some_roles() -> None:
    """Tasks of other roles are in no step."""
    roles = (role("launcher"), role("worker"))
    hosts = [at("n1", "10.0.0.1", r0="0", r1="0"), at("n2", "10.0.0.2", r1="1")]
    blob = job(roles, "slurm roles=worker")
    assert variables(told(blob, hosts, role=0, index=0), "SLURM") == {}
    assert told(blob, hosts, role=1, index=1).environment["SLURM_PROCID"] == "1"


def test_mpirun_in_a_task_does_not_look_for_srun() -> None:
    """There is none: the launchers take lava's way."""
    result = told(job(ROLES, "slurm"), HOSTS, role=0, index=0).environment
    assert (result["OMPI_MCA_plm"], result["PRTE_MCA_plm"], result["HYDRA_LAUNCHER"]) == ("rsh", "ssh", "lsf")
