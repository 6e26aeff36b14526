"""Conventions of Kubeflow's Trainer: each framework's words for the same nodes, and JAXJob's."""

import pytest

from tests.agents.told.jobs import at, job, role, text, told, variables

NODES = (at("n1", "10.0.0.1", r0="0:29500"), at("n2", "10.0.0.2", r0="1:31000"))


def test_torch_tells_the_options_of_torchrun_and_no_rank() -> None:
    """RANK, WORLD_SIZE and MASTER_ADDR are torchrun's own to set."""
    blob = job([role("node", "trainer")], "trainjob framework=torch worker=node nproc-per-node=4", name="t")
    result = told(blob, NODES, role=0, index=1)
    assert variables(result, "PET_") == {
        "PET_NNODES": "2",
        "PET_NPROC_PER_NODE": "4",
        "PET_NODE_RANK": "1",
        "PET_MASTER_ADDR": "t-node-0-0.t",
        "PET_MASTER_PORT": "29500",
    }
    assert not variables(result, "RANK", "WORLD_SIZE", "MASTER_ADDR")
    assert [names for _, names in result.names] == [("t-node-0-0.t",), ("t-node-0-1.t",)]


@pytest.mark.parametrize(
    ("framework", "expected"),
    [
        (
            "jax",
            {
                "JAX_NUM_PROCESSES": "2",
                "JAX_PROCESS_ID": "1",
                "JAX_COORDINATOR_ADDRESS": "10.0.0.1:29500",
            },
        ),
        (
            "xgboost",
            {
                "DMLC_TRACKER_URI": "10.0.0.1",
                "DMLC_TRACKER_PORT": "29500",
                "DMLC_TASK_ID": "1",
                "DMLC_NUM_WORKER": "8",
            },
        ),
        ("", {}),
    ],
)
def test_other_frameworks(framework: str, expected: dict[str, str]) -> None:
    """The same facts under their names; by address where tasks have no names, and nothing without a framework."""
    blob = job([role("node", "trainer")], f"trainjob framework={framework} worker=node nproc-per-node=4", name="t")
    result = told(blob, NODES, role=0, index=1, is_private=False)
    assert variables(result, "PET_", "JAX_", "DMLC_") == expected


def test_initializers_are_told_nothing_of_a_framework() -> None:
    """Only the nodes are."""
    blob = job([role("model-initializer"), role("node")], "trainjob framework=torch worker=node", name="t")
    hosts = [at("n1", "10.0.0.1", r0="0", r1="0")]
    assert not variables(told(blob, hosts, role=0, index=0), "PET_")
    assert told(blob, hosts, role=1, index=0).environment["PET_NPROC_PER_NODE"] == "auto"


def test_mpi_tells_the_launcher_its_nodes() -> None:
    """A host file with the launcher first, where it is a node itself; ssh reaches the nodes by those names."""
    roles = (role("node"), role("launcher"))
    hosts = (at("n1", "10.0.0.1", r0="0", r1="0"), at("n2", "10.0.0.2", r0="1"))
    options = "framework=mpi launcher=launcher worker=node slots=2"
    blob = job(roles, f"trainjob {options} launcher-as-worker=yes", name="t")
    launcher = told(blob, hosts, role=1, index=0)
    lines = "t-launcher-0-0.t slots=2\nt-node-0-0.t slots=2\nt-node-0-1.t slots=2\n"
    assert text(launcher, "/etc/mpi/hostfile") == lines
    assert launcher.environment["OMPI_MCA_orte_default_hostfile"] == "/etc/mpi/hostfile"
    assert launcher.environment["OMPI_MCA_orte_set_default_slots"] == "2"
    assert "K_MPI_JOB_ROLE" not in launcher.environment
    assert "NVIDIA_VISIBLE_DEVICES" not in launcher.environment
    assert b"t-node-0-1.t n2 node/1\n" in launcher.own["ssh_hosts"].content
    node = told(blob, hosts, role=0, index=0)
    assert not node.files
    assert not variables(node, "OMPI_MCA_orte")
    alone = told(job(roles, f"trainjob {options}", name="t"), hosts, role=1, index=0)
    assert text(alone, "/etc/mpi/hostfile") == lines.partition("\n")[2]


def test_a_jaxjob_names_its_first_worker() -> None:
    """Under JAXJob's own names, at the port that its container has for it."""
    hosts = (at("n1", "10.0.0.1", r0="0:6666"), at("n2", "10.0.0.2", r0="1:7000"))
    result = told(job([role("worker", "jaxjob-port")], "jaxjob", name="j"), hosts, role=0, index=1)
    assert variables(result, "COORDINATOR", "NUM_", "PROCESS_", "PYTHONUNB") == {
        "PYTHONUNBUFFERED": "1",
        "COORDINATOR_ADDRESS": "j-worker-0",
        "COORDINATOR_PORT": "6666",
        "NUM_PROCESSES": "2",
        "PROCESS_ID": "1",
    }
