"""Volcano's plugins, as they are written down in its sources (facts: workload-specs 1.4)."""

import json

from protos.common_pb2 import GpuRequest
from tests.agents.told.jobs import DIRECTORY, PS_AND_WORKERS, at, job, role, text, told, variables

ROLES = (role("ps"), role("mpi-worker"))
HOME_OF_ROOT = "/root"


def test_env_gives_the_index_under_both_names() -> None:
    """The index within the role, not among all."""
    result = told(job(ROLES, "env"), PS_AND_WORKERS, role=1, index=1)
    assert variables(result, "V") == {"VC_TASK_INDEX": "1", "VK_TASK_INDEX": "1"}


def test_svc_lists_hosts_in_files_and_variables() -> None:
    """Names of files keep their letters, names of variables are capitals; both lose the hyphen."""
    result = told(job(ROLES, "svc"), PS_AND_WORKERS, role=0, index=0)
    assert text(result, "/etc/volcano/ps.host") == "mnist-ps-0.mnist"
    assert text(result, "/etc/volcano/mpi_worker.host") == "mnist-mpi-worker-0.mnist\nmnist-mpi-worker-1.mnist"
    assert variables(result, "VC_") == {
        "VC_PS_HOSTS": "mnist-ps-0.mnist",
        "VC_PS_NUM": "1",
        "VC_MPI_WORKER_HOSTS": "mnist-mpi-worker-0.mnist,mnist-mpi-worker-1.mnist",
        "VC_MPI_WORKER_NUM": "2",
    }
    assert result.names == (
        ("10.0.0.1", ("mnist-ps-0", "mnist-ps-0.mnist", "ps-0")),
        ("10.0.0.1", ("mnist-mpi-worker-0", "mnist-mpi-worker-0.mnist", "mpi-worker-0")),
        ("10.0.0.2", ("mnist-mpi-worker-1", "mnist-mpi-worker-1.mnist", "mpi-worker-1")),
    )
    assert result.environment["LAVA_TASK_FILES"] == f"{DIRECTORY}/tree"


def test_svc_without_variables() -> None:
    """The flag of the origin, as it is written there."""
    result = told(job(ROLES, "svc --inject-hosts-env=false"), PS_AND_WORKERS, role=0, index=0)
    assert variables(result, "VC_") == {}
    assert set(result.files) == {"/etc/volcano/ps.host", "/etc/volcano/mpi_worker.host"}


def test_names_of_hosts_stand_where_tasks_have_none() -> None:
    """Without private files a name in a list must be one that every program can use."""
    result = told(job(ROLES, "svc"), PS_AND_WORKERS, role=0, index=0, is_private=False)
    assert result.environment["VC_MPI_WORKER_HOSTS"] == "n1,n2"
    assert text(result, "/etc/volcano/mpi_worker.host") == "n1\nn2"


def test_names_can_be_had_alone() -> None:
    """No variable, no file; characters of the job's name that no host name has are replaced."""
    result = told(job(ROLES, "dns", name="my job"), PS_AND_WORKERS, role=0, index=0)
    assert result.names[0] == ("10.0.0.1", ("my-job-ps-0", "my-job-ps-0.my-job", "ps-0"))
    assert not result.files


def test_ssh_is_a_program_and_for_root_a_configuration() -> None:
    """An ordinary user gets no file by root's hand."""
    blob = job(ROLES, "ssh")
    assert not told(blob, PS_AND_WORKERS, role=0, index=0).files
    blob.uid = 0
    result = told(blob, PS_AND_WORKERS, role=0, index=0)
    path = f"{HOME_OF_ROOT}/.ssh/config"
    assert text(result, path).startswith(
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
        "Host mnist-ps-0\n  HostName mnist-ps-0.mnist\n  Port 22\n"
    )
    assert result.files[path].mode == 0o600
    assert result.path_prefix == f"{DIRECTORY}/bin"


def test_tensorflow_plugin() -> None:
    """Roles in the plugin's order, absent ones left out, the reserved port of each task."""
    roles = (role("ps", "tensorflow"), role("worker", "tensorflow"))
    hosts = [at("n1", "10.0.0.1", r0="0:4001", r1="0:4002"), at("n2", "10.0.0.2", r1="1:4001")]
    result = told(job(roles, "tensorflow"), hosts, role=1, index=1)
    assert result.environment["TF_CONFIG"] == (
        '{"cluster":{"ps":["mnist-ps-0.mnist:4001"],"worker":["mnist-worker-0.mnist:4002","mnist-worker-1.mnist:4001"]},'
        '"task":{"type":"worker","index":1}}'
    )


def test_every_task_has_the_same_cluster_and_an_address_of_its_own() -> None:
    """Two parameter servers and two workers on one host: four addresses."""
    roles = (role("ps", "tensorflow"), role("worker", "tensorflow"))
    hosts = [at("n1", "10.0.0.1", r0="0:4001,1:4002", r1="0:4003,1:4004")]
    found = [
        json.loads(told(job(roles, "tensorflow"), hosts, role=at_role, index=index).environment["TF_CONFIG"])
        for at_role in (0, 1)
        for index in (0, 1)
    ]
    assert [one["cluster"] for one in found] == [found[0]["cluster"]] * 4
    assert [(one["task"]["type"], one["task"]["index"]) for one in found] == [
        ("ps", 0),
        ("ps", 1),
        ("worker", 0),
        ("worker", 1),
    ]
    addresses = [address for some in found[0]["cluster"].values() for address in some]
    assert len(set(addresses)) == len(set(address.rpartition(":")[2] for address in addresses)) == 4


def test_tensorflow_by_default_port_and_other_names() -> None:
    """2222 without a reserved port; --port and names of roles as the plugin takes them."""
    roles = (role("server"), role("worker"), role("judge"))
    hosts = [at("n1", "10.0.0.1", r0="0", r1="0"), at("n2", "10.0.0.2", r2="0")]
    line = "tensorflow --ps=server --evaluator=judge --port=5000"
    result = told(job(roles, line), hosts, role=2, index=0, is_private=False)
    assert result.environment["TF_CONFIG"] == (
        '{"cluster":{"ps":["10.0.0.1:5000"],"worker":["10.0.0.1:5000"],"evaluator":["10.0.0.2:5000"]},'
        '"task":{"type":"evaluator","index":0}}'
    )
    plain = told(job(ROLES, "tensorflow --worker=mpi-worker"), PS_AND_WORKERS, role=0, index=0)
    assert '"ps":["mnist-ps-0.mnist:2222"]' in plain.environment["TF_CONFIG"]
    alone = told(job([role("worker")], "tensorflow"), [at("n1", "", r0="0")], role=0, index=0)
    assert "TF_CONFIG" not in alone.environment


def test_a_tfjob_is_in_the_cloud_and_has_its_evaluator_apart() -> None:
    """Roles sorted (facts: 2.2); with dynamic workers a worker sees itself and the servers, a server itself."""
    roles = (role("worker"), role("ps"), role("evaluator"))
    hosts = [at("n1", "10.0.0.1", r0="0,1", r1="0"), at("n2", "10.0.0.2", r2="0")]
    result = told(job(roles, "tfjob"), hosts, role=0, index=1)
    assert result.environment["TF_CONFIG"] == (
        '{"cluster":{"ps":["mnist-ps-0.mnist:2222"],"worker":["mnist-worker-0.mnist:2222","mnist-worker-1.mnist:2222"]},'
        '"task":{"type":"worker","index":1},"environment":"cloud"}'
    )
    assert told(job(roles, "tensorflow style=tfjob"), hosts, role=0, index=1).environment == result.environment
    sparse = told(job(roles, "tfjob dynamic-worker=yes"), hosts, role=0, index=1)
    assert json.loads(sparse.environment["TF_CONFIG"])["cluster"] == {
        "worker": {"1": "mnist-worker-1.mnist:2222"},
        "ps": ["mnist-ps-0.mnist:2222"],
    }


def test_pytorch_plugin_counts_tasks() -> None:
    """The master has rank 0, a worker its index and one; the size is that of tasks, not of GPUs."""
    roles = (role("master"), role("worker"))
    environment = told(job(roles, "pytorch"), PS_AND_WORKERS, role=1, index=1).environment
    found = {name: environment[name] for name in ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")}
    assert found == {"MASTER_ADDR": "mnist-master-0.mnist", "MASTER_PORT": "23456", "WORLD_SIZE": "3", "RANK": "2"}
    assert told(job(roles, "pytorch"), PS_AND_WORKERS, role=0, index=0).environment["RANK"] == "0"


def test_a_pytorchjob_speaks_to_torchrun_too() -> None:
    """Facts: 2.2. The world has nproc-per-node ranks for each task."""
    roles = (role("master", "pytorchjob-port"), role("worker"))
    hosts = [at("n1", "10.0.0.1", r0="0:4711", r1="0"), at("n2", "10.0.0.2", r1="1")]
    result = told(job(roles, "pytorchjob nproc-per-node=4"), hosts, role=1, index=0)
    assert variables(result, "PET_", "WORLD", "PYTHON", "RANK") == {
        "WORLD_SIZE": "12",
        "RANK": "1",
        "PYTHONUNBUFFERED": "1",
        "PET_MASTER_ADDR": "mnist-master-0.mnist",
        "PET_MASTER_PORT": "4711",
        "PET_NODE_RANK": "1",
        "PET_NNODES": "3",
        "PET_NPROC_PER_NODE": "4",
    }


def test_an_elastic_pytorchjob() -> None:
    """Least and most nodes; the rendezvous is at the first worker."""
    roles = (role("worker"),)
    hosts = [at("n1", "10.0.0.1", r0="0"), at("n2", "10.0.0.2", r0="1")]
    line = (
        "torchelastic min=1 max=3 rdzv-port=23456 rdzv-id=run7 max-restarts=5 rdzv-conf=timeout=9,last_call_timeout=2"
    )
    assert variables(told(job(roles, line), hosts, role=0, index=1), "PET_", "TORCH") == {
        "PET_NNODES": "1:3",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": "mnist-worker-0.mnist:23456",
        "PET_RDZV_ID": "run7",
        "PET_MAX_RESTARTS": "5",
        "PET_RDZV_CONF": "timeout=9,last_call_timeout=2",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
    }
    plain = variables(told(job(roles, "torchelastic"), hosts, role=0, index=0), "PET_")
    assert plain["PET_NNODES"] == "2"
    assert plain["PET_RDZV_ENDPOINT"] == "mnist-worker-0.mnist:29400"


def test_the_only_role_of_a_job_is_its_workers_whatever_its_name() -> None:
    """Among several roles those of the options, or worker and master, are meant."""
    hosts = [at("n1", "10.0.0.1", r0="0"), at("n2", "10.0.0.2", r0="1")]
    found = variables(told(job([role("train")], "torchelastic"), hosts, role=0, index=1), "PET_NNODES")
    assert found == {"PET_NNODES": "2"}
    assert variables(told(job([role("train")], "pytorch"), hosts, role=0, index=1), "RANK") == {"RANK": "1"}
    assert not variables(told(job([role("train"), role("log")], "pytorch"), hosts, role=0, index=1), "RANK")
    assert not variables(told(job([role("train")], "pytorch worker=other"), hosts, role=0, index=1), "RANK")


def test_a_pytorchjob_with_an_elastic_policy() -> None:
    """Both forms: the ranks, and a rendezvous at the job's own port."""
    hosts = [at("n1", "10.0.0.1", r0="0"), at("n2", "10.0.0.2", r0="1")]
    found = variables(
        told(job([role("worker")], "pytorchjob min=1 max=4 max-restarts=100"), hosts, role=0, index=1), ""
    )
    assert found["PET_NNODES"] == "1:4"
    assert found["PET_RDZV_ENDPOINT"] == "mnist-worker-0.mnist:23456"
    assert found["PET_MAX_RESTARTS"] == "100"
    assert (found["RANK"], found["WORLD_SIZE"], found["PYTHONUNBUFFERED"]) == ("1", "2", "1")
    styled = told(
        job([role("worker")], "pytorch style=pytorchjob min=1 max=4 max-restarts=100"), hosts, role=0, index=1
    )
    assert styled.environment == found
    fixed = variables(told(job([role("worker")], "pytorchjob max-restarts=2"), hosts, role=0, index=1), "PET_")
    assert (fixed["PET_NNODES"], fixed["PET_MAX_RESTARTS"]) == ("2", "2")


def test_a_range_of_tasks_is_a_range_of_nodes() -> None:
    """Without options: least and most of the role, restarts for tasks that leave, and the GPUs of each task."""
    roles = [role("worker", tasks_min=1, tasks_max=3, gpu=GpuRequest(num=4, per_task=True))]
    hosts = [at("n1", "10.0.0.1", r0="0"), at("n2", "10.0.0.2", r0="1")]
    found = variables(told(job(roles, "torchelastic"), hosts, role=0, index=1), "PET_N", "PET_M")
    assert found == {"PET_NNODES": "1:3", "PET_MAX_RESTARTS": "100", "PET_NPROC_PER_NODE": "4"}
    given = told(job(roles, "torchelastic nnodes=2 nproc-per-node=1"), hosts, role=0, index=1)
    assert variables(given, "PET_N", "PET_M") == {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "1"}
    absent = [role("worker", tasks_min=0, tasks_max=2)]
    assert told(job(absent, "torchelastic"), hosts[:1], role=0, index=0).environment["PET_NNODES"] == "1:2"


def test_mpi_plugin_tells_the_master_alone() -> None:
    """MPI_HOST for `mpiexec --host`; every task starts ranks by the program ssh."""
    roles = (role("mpimaster"), role("mpiworker"))
    blob = job(roles, "mpi --master=mpimaster --worker=mpiworker")
    master = told(blob, PS_AND_WORKERS, role=0, index=0)
    assert master.environment["MPI_HOST"] == "mnist-mpiworker-0.mnist,mnist-mpiworker-1.mnist"
    worker = told(blob, PS_AND_WORKERS, role=1, index=0)
    assert "MPI_HOST" not in worker.environment
    for result in (master, worker):
        assert result.environment["OMPI_MCA_plm_rsh_agent"] == f"{DIRECTORY}/bin/ssh"
        assert result.environment["PRTE_MCA_plm_ssh_agent"] == f"{DIRECTORY}/bin/ssh"


def test_ray_starts_within_the_allocation() -> None:
    """The head listens, a worker joins; both with the slots and devices of their task only."""
    roles = (role("head", "ray"), role("worker", slots_per_task=4))
    hosts = [at("n1", "10.0.0.1", r0="0:6400", r1="0"), at("n2", "10.0.0.2", r1="1")]
    head = told(job(roles, "ray"), hosts, role=0, index=0)
    assert head.environment["LAVA_RAY_START"] == (
        "ray start --head --port=6400 --dashboard-host=0.0.0.0 --dashboard-port=8265 --ray-client-server-port=10001"
        " --node-ip-address=10.0.0.1 --num-cpus=1 --num-gpus=0 --block"
    )
    worker = told(job(roles, "ray"), hosts, role=1, index=1, gpus=(2, 3))
    assert worker.environment["LAVA_RAY_START"] == (
        "ray start --address=mnist-head-0.mnist:6400 --node-ip-address=10.0.0.2 --num-cpus=4 --num-gpus=2 --block"
    )
    assert worker.environment["RAY_API_SERVER_ADDRESS"] == "http://mnist-head-0.mnist:8265"
    assert head.environment["RAY_ADDRESS"] == worker.environment["RAY_ADDRESS"] == "mnist-head-0.mnist:6400"
