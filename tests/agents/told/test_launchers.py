"""MPIJobs, Horovod, DeepSpeed and MindSpore (facts: workload-specs 2.1, 4.1, 4.3, 4.4)."""

import pytest

from protos.common_pb2 import LAUNCH_EACH, LAUNCH_HOST, LAUNCH_NONE, GpuRequest
from tests.agents.told.jobs import DIRECTORY, at, job, role, text, told, variables

LAUNCHER = (role("launcher"), role("worker", launch=LAUNCH_NONE))
HOSTS = (at("n1", "10.0.0.1", r0="0", r1="0"), at("n2", "10.0.0.2", r1="1"))
FOUR = (role("worker", launch=LAUNCH_EACH),)
THREE_AND_ONE = (at("n1", "10.0.0.1", r0="0,1,2"), at("n2", "10.0.0.2", r0="3"))


def test_a_v2beta1_launcher_of_open_mpi() -> None:
    """Full names, no slots in the discovery; the settings for Open MPI 5 beside those that it ignores."""
    result = told(job(LAUNCHER, "mpijob slots-per-worker=2", name="pi"), HOSTS, role=0, index=0)
    assert (
        text(result, "/etc/mpi/hostfile") == "pi-worker-0.pi.default.svc slots=2\npi-worker-1.pi.default.svc slots=2\n"
    )
    assert text(result, "/etc/mpi/discover_hosts.sh") == (
        "#!/bin/sh\necho pi-worker-0.pi.default.svc\necho pi-worker-1.pi.default.svc\n"
    )
    assert result.files["/etc/mpi/discover_hosts.sh"].mode == 0o555
    assert variables(result, "OMPI_", "PRTE_", "K_MPI", "NVIDIA_") == {
        "K_MPI_JOB_ROLE": "launcher",
        "NVIDIA_VISIBLE_DEVICES": "",
        "NVIDIA_DRIVER_CAPABILITIES": "",
        "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
        "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
        "OMPI_MCA_orte_set_default_slots": "2",
        "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
        "OMPI_MCA_plm_rsh_agent": f"{DIRECTORY}/bin/ssh",
        "PRTE_MCA_prte_default_hostfile": "/etc/mpi/hostfile",
        "PRTE_MCA_prte_keep_fqdn_hostnames": "true",
        "PRTE_MCA_prte_set_default_slots": "2",
        "PRTE_MCA_plm_ssh_args": "-o ConnectionAttempts=10",
        "PRTE_MCA_plm_ssh_agent": f"{DIRECTORY}/bin/ssh",
    }
    names = dict(result.names)["10.0.0.1"]
    assert names[:3] == ("pi-worker-0", "pi-worker-0.pi", "pi-worker-0.pi.default.svc")
    assert ("10.0.0.1", ("pi-launcher-0", "pi-launcher-0.pi", "pi-launcher-0.pi.default.svc", "pi-launcher", "pi-launcher.pi", "pi-launcher.pi.default.svc")) in result.names  # fmt: skip  # noqa: E501


def test_a_worker_knows_that_it_is_one() -> None:
    """It has the files, and no settings of a launcher."""
    result = told(job(LAUNCHER, "mpijob", name="pi"), HOSTS, role=1, index=1)
    assert variables(result, "K_MPI", "OMPI_MCA_orte", "NVIDIA_") == {"K_MPI_JOB_ROLE": "worker"}
    assert "/etc/mpi/hostfile" in result.files


@pytest.mark.parametrize(
    ("implementation", "expected"),
    [
        (
            "Intel",
            {
                "I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hostfile",
                "I_MPI_HYDRA_BOOTSTRAP": "rsh",
                "I_MPI_HYDRA_BOOTSTRAP_EXEC": f"{DIRECTORY}/bin/ssh",
                "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "-o ConnectionAttempts=10",
                "I_MPI_PERHOST": "3",
            },
        ),
        (
            "MPICH",
            {
                "HYDRA_HOST_FILE": "/etc/mpi/hostfile",
                "HYDRA_LAUNCHER": "ssh",
                "HYDRA_LAUNCHER_EXEC": f"{DIRECTORY}/bin/ssh",
                "HYDRA_LAUNCH_EXTRA_ARGS": "-o ConnectionAttempts=10",
            },
        ),
    ],
)
def test_other_implementations(implementation: str, expected: dict[str, str]) -> None:
    """Lines HOST:SLOTS, and hydra's variables."""
    blob = job(LAUNCHER, f"mpijob implementation={implementation} slots-per-worker=3", name="pi")
    result = told(blob, HOSTS, role=0, index=0)
    assert text(result, "/etc/mpi/hostfile") == "pi-worker-0.pi.default.svc:3\npi-worker-1.pi.default.svc:3\n"
    assert variables(result, "I_MPI", "HYDRA") == expected


def test_a_launcher_that_is_a_worker_comes_first() -> None:
    """And keeps its devices."""
    result = told(job(LAUNCHER, "mpijob launcher-as-worker=yes", name="pi"), HOSTS, role=0, index=0)
    assert text(result, "/etc/mpi/hostfile").splitlines()[0] == "pi-launcher.pi.default.svc slots=1"
    assert "NVIDIA_VISIBLE_DEVICES" not in result.environment


def test_a_v1_job_has_slots_in_its_discovery() -> None:
    """Short names; workers by name in the order of letters; the remote start that horovodrun looks for."""
    hosts = [at("n1", "10.0.0.1", r0="0", r1=",".join(map(str, range(11))))]
    result = told(job(LAUNCHER, "mpijob style=v1 slots=1", name="elastic"), hosts, role=0, index=0)
    lines = text(result, "/etc/mpi/discover_hosts.sh").splitlines()
    assert lines[:5] == [
        "#!/bin/sh",
        "echo elastic-worker-0:1",
        "echo elastic-worker-1:1",
        "echo elastic-worker-10:1",
        "echo elastic-worker-2:1",
    ]
    assert text(result, "/etc/mpi/hostfile").splitlines()[10] == "elastic-worker-10 slots=1"
    assert text(result, "/etc/mpi/kubexec.sh") == f'#!/bin/sh\nexec "{DIRECTORY}/bin/ssh" "$@"\n'
    assert result.environment["OMPI_MCA_plm_rsh_agent"] == "/etc/mpi/kubexec.sh"
    assert "K_MPI_JOB_ROLE" not in result.environment


def test_without_private_files_paths_and_names_are_real_ones() -> None:
    """The variables name the files where they are; the files name hosts."""
    result = told(job(LAUNCHER, "mpijob", name="pi"), HOSTS, role=0, index=0, is_private=False)
    assert result.environment["OMPI_MCA_orte_default_hostfile"] == f"{DIRECTORY}/tree/etc/mpi/hostfile"
    assert text(result, "/etc/mpi/hostfile") == "n1 slots=1\nn2 slots=1\n"


def test_horovod_lists_and_ranks() -> None:
    """-H, host file and discovery; ranks by host for tasks with a process each (facts: 4.1)."""
    result = told(job(FOUR, "horovod", name="ring"), THREE_AND_ONE, role=0, index=3)
    assert result.environment["LAVA_HOROVOD_HOSTS"] == (
        "ring-worker-0.ring:1,ring-worker-1.ring:1,ring-worker-2.ring:1,ring-worker-3.ring:1"
    )
    assert text(result, "/etc/horovod/hostfile").splitlines()[0] == "ring-worker-0.ring slots=1"
    assert text(result, "/etc/horovod/discover_hosts.sh").splitlines()[:2] == ["#!/bin/sh", "echo ring-worker-0.ring:1"]
    assert variables(result, "HOROVOD_") == {
        "HOROVOD_HOSTNAME": "ring-worker-3.ring",
        "HOROVOD_RANK": "3",
        "HOROVOD_SIZE": "4",
        "HOROVOD_LOCAL_RANK": "0",
        "HOROVOD_LOCAL_SIZE": "1",
        "HOROVOD_CROSS_RANK": "1",
        "HOROVOD_CROSS_SIZE": "2",
    }
    third = variables(told(job(FOUR, "horovod"), THREE_AND_ONE, role=0, index=2), "HOROVOD_LOCAL", "HOROVOD_CROSS")
    assert third == {
        "HOROVOD_LOCAL_RANK": "2",
        "HOROVOD_LOCAL_SIZE": "3",
        "HOROVOD_CROSS_RANK": "0",
        "HOROVOD_CROSS_SIZE": "1",
    }


def test_horovods_rendezvous_has_a_reserved_port_or_is_not_told() -> None:
    """The first task's port of that name."""
    roles = (role("worker", "horovod", launch=LAUNCH_EACH),)
    hosts = [at("n1", "10.0.0.1", r0="0:4001"), at("n2", "10.0.0.2", r0="1:4009")]
    result = variables(told(job(roles, "horovod"), hosts, role=0, index=1), "HOROVOD_GLOO", "HOROVOD_C")
    assert result["HOROVOD_GLOO_RENDEZVOUS_ADDR"] == "10.0.0.1"
    assert result["HOROVOD_GLOO_RENDEZVOUS_PORT"] == "4001"
    assert (result["HOROVOD_CONTROLLER"], result["HOROVOD_CPU_OPERATIONS"]) == ("gloo", "gloo")


def test_deepspeeds_host_file_counts_gpus() -> None:
    """One line a task, at the path that is fixed there (facts: 4.3); a launcher gets no rank."""
    roles = (role("worker", launch=LAUNCH_HOST, gpu=GpuRequest(num=8, per_task=True)),)
    hosts = [at("n1", "10.0.0.1", r0="0"), at("n2", "10.0.0.2", r0="1")]
    result = told(job(roles, "deepspeed", name="llm"), hosts, role=0, index=0)
    assert text(result, "/job/hostfile") == "llm-worker-0.llm slots=8\nllm-worker-1.llm slots=8\n"
    assert variables(result, "MASTER", "RANK", "PDSH") == {
        "MASTER_ADDR": "llm-worker-0.llm",
        "MASTER_PORT": "29500",
        "PDSH_RCMD_TYPE": "ssh",
    }
    ranked = told(job(FOUR, "deepspeed port=5000"), THREE_AND_ONE, role=0, index=1).environment
    names = ("WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_SIZE", "CROSS_RANK", "CROSS_SIZE", "MASTER_PORT")
    assert [ranked[name] for name in names] == ["4", "1", "1", "3", "0", "1", "5000"]


def test_mindspores_cluster_has_one_scheduler() -> None:
    """Four workers with ids 0 to 3 and one address (facts: 4.4), as a number since names are not taken."""
    roles = (role("scheduler", "mindspore"), role("worker"))
    hosts = [at("n1", "10.0.0.1", r0="0:4001", r1="0,1"), at("n2", "10.0.0.2", r1="2,3")]
    blob = job(roles, "mindspore")
    expected = {"MS_SCHED_HOST": "10.0.0.1", "MS_SCHED_PORT": "4001", "MS_WORKER_NUM": "4", "MS_SERVER_NUM": "0"}
    assert variables(told(blob, hosts, role=0, index=0), "MS_") == {"MS_ROLE": "MS_SCHED", **expected}
    for index in range(4):
        found = variables(told(blob, hosts, role=1, index=index), "MS_")
        assert found == {"MS_ROLE": "MS_WORKER", "MS_NODE_ID": str(index), **expected}
