"""OpenPAI's variables, every one that its two generations have (facts: workload-specs 3.3)."""

import shlex
import subprocess

from tests.agents.told.jobs import at, job, role, told, variables

ROLES = (
    role("ps_server", "http", "ssh", "tb*2", failed_enough=1, slots_per_task=4, memory_limit_mib=8192),
    role("worker", "http", "ssh", failed_enough=1, succeeded_enough=2),
)
HOSTS = (
    at("n1", "10.0.0.1", r0="0:4001/4002/4003/4004", r1="0:4005/4006"),
    at("n2", "10.0.0.2", r1="1:4001/4002"),
)
LINE = "pai vc=vc1 worker.gpu=2 worker.shm=1024 worker.mem=100"
SAME = {
    "PAI_JOB_NAME": "ada~mnist",
    "PAI_FRAMEWORK_NAME": "ada~mnist",
    "PAI_USER_NAME": "ada",
    "PAI_USERNAME": "ada",
    "PAI_VIRTUAL_CLUSTER": "vc1",
    "PAI_DEFAULT_FS_URI": "",
    "PAI_TASK_ROLE_COUNT": "2",
    "PAI_TASK_ROLE_LIST": "ps_server,worker",
    "PAI_TASK_ROLE_INSTANCES": "ps_server:0,worker:0,worker:1",
    "PAI_TASK_ROLE_TASK_COUNT_ps_server": "1",
    "PAI_TASK_ROLE_TASK_COUNT_worker": "2",
    "PAI_HOST_IP_ps_server_0": "10.0.0.1",
    "PAI_HOST_IP_worker_0": "10.0.0.1",
    "PAI_HOST_IP_worker_1": "10.0.0.2",
    "PAI_PORT_LIST_ps_server_0_http": "4001",
    "PAI_PORT_LIST_ps_server_0_ssh": "4002",
    "PAI_PORT_LIST_ps_server_0_tb": "4003,4004",
    "PAI_PORT_LIST_worker_0_http": "4005",
    "PAI_PORT_LIST_worker_0_ssh": "4006",
    "PAI_PORT_LIST_worker_1_http": "4001",
    "PAI_PORT_LIST_worker_1_ssh": "4002",
    "PAI_ps_server_0_http_PORT": "4001",
    "PAI_ps_server_0_ssh_PORT": "4002",
    "PAI_ps_server_0_tb_PORT": "4003,4004",
    "PAI_worker_0_http_PORT": "4005",
    "PAI_worker_0_ssh_PORT": "4006",
    "PAI_worker_1_http_PORT": "4001",
    "PAI_worker_1_ssh_PORT": "4002",
    "PAI_RESOURCE_worker": "2,1,100,1024",
    "PAI_MIN_FAILED_TASK_COUNT_ps_server": "1",
    "PAI_MIN_FAILED_TASK_COUNT_worker": "1",
    "PAI_MIN_SUCCEEDED_TASK_COUNT_worker": "2",
    "PAI_TASK_ROLE_ps_server_HOST_LIST": "10.0.0.1:4001",
    "PAI_TASK_ROLE_worker_HOST_LIST": "10.0.0.1:4005,10.0.0.2:4001",
    "PAI_WORK_DIR": "/home/ada",
    "PAI_TASKS_NUM": "3",
    "PAI_JOB_TASK_COUNT": "3",
    "PAI_TASK_ROLES_NUM": "2",
    "PAI_JOB_TASK_ROLE_COUNT": "2",
    "PAI_JOB_TASK_ROLE_LIST": "ps_server,worker",
}


def test_every_variable_of_the_present_protocol() -> None:
    """Of a worker, with all tasks and all ports, and nothing else."""
    result = told(job(ROLES, LINE), HOSTS, role=1, index=1)
    assert variables(result, "PAI_") == {
        **SAME,
        "PAI_RESOURCE_ps_server": "0,4,8192,512",
        "PAI_MIN_SUCCEEDED_TASK_COUNT_ps_server": "-1",
        "PAI_CURRENT_TASK_ROLE_NAME": "worker",
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
        "PAI_TASK_INDEX": "1",
        "PAI_CONTAINER_HOST_IP": "10.0.0.2",
        "PAI_CURRENT_CONTAINER_IP": "10.0.0.2",
        "PAI_CONTAINER_HOST_PORT": "4001",
        "PAI_CURRENT_CONTAINER_PORT": "4001",
        "PAI_CONTAINER_SSH_PORT": "4002",
        "PAI_CONTAINER_HOST_http_PORT_LIST": "4001",
        "PAI_CONTAINER_HOST_ssh_PORT_LIST": "4002",
        "PAI_CONTAINER_HOST_PORT_LIST": "http:4001;ssh:4002;",
    }


def test_options_may_begin_with_the_role() -> None:
    """As importers of OpenPAI's files write them, too."""
    line = "pai virtual-cluster=vc1 gpu.worker=2 shm-mb.worker=1024 memory-mb.worker=100 min-failed.ps_server=1"
    same = [told(job(ROLES, one), HOSTS, role=1, index=1).environment for one in (LINE, line)]
    assert same[0] == same[1]


def test_every_variable_of_the_first_generation() -> None:
    """Those of the present one, and its own; a count that was not given is empty."""
    line = f"{LINE} generation=0 data-dir=hdfs://d output-dir=hdfs://o code-dir=/code/mnist"
    result = told(job(ROLES, line), HOSTS, role=0, index=0)
    assert variables(result, "PAI_") == {
        **SAME,
        "PAI_RESOURCE_ps_server": "0,4,8192,64",
        "PAI_MIN_SUCCEEDED_TASK_COUNT_ps_server": "",
        "PAI_CURRENT_TASK_ROLE_NAME": "ps_server",
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "0",
        "PAI_TASK_INDEX": "0",
        "PAI_CONTAINER_HOST_IP": "10.0.0.1",
        "PAI_CURRENT_CONTAINER_IP": "10.0.0.1",
        "PAI_CONTAINER_HOST_PORT": "4001",
        "PAI_CURRENT_CONTAINER_PORT": "4001",
        "PAI_CONTAINER_SSH_PORT": "4002",
        "PAI_CONTAINER_HOST_http_PORT_LIST": "4001",
        "PAI_CONTAINER_HOST_ssh_PORT_LIST": "4002",
        "PAI_CONTAINER_HOST_tb_PORT_LIST": "4003,4004",
        "PAI_CONTAINER_HOST_PORT_LIST": "http:4001;ssh:4002;tb:4003,4004",
        "PAI_DATA_DIR": "hdfs://d",
        "PAI_OUTPUT_DIR": "hdfs://o",
        "PAI_CODE_DIR": "/code/mnist",
        "PAI_CURRENT_TASK_ROLE_TASK_COUNT": "1",
        "PAI_CURRENT_TASK_ROLE_CPU_COUNT": "4",
        "PAI_CURRENT_TASK_ROLE_MEM_MB": "8192",
        "PAI_CURRENT_TASK_ROLE_SHM_MB": "64",
        "PAI_CURRENT_TASK_ROLE_GPU_COUNT": "0",
        "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT": "1",
        "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT": "",
        "PAI_CONTAINER_ID": "7.0.1-ps_server-0",
        "PAI_TASK_ROLE_NAME": "ps_server",
        "PAI_TASK_ROLE_NUM": "1",
        "PAI_TASK_ROLE_INDEX": "0",
        "PAI_TASK_CPU_NUM": "4",
        "PAI_TASK_MEM_MB": "8192",
        "PAI_TASK_GPU_NUM": "0",
    }


def test_names_within_the_job_are_role_and_index() -> None:
    """As the plugin ssh of the origin has them."""
    names = told(job(ROLES, LINE), HOSTS, role=0, index=0).names
    assert [known[2] for _, known in names] == ["ps_server-0", "worker-0", "worker-1"]


def test_attempts_are_counted_from_zero() -> None:
    """FrameworkController's numbers are those of retries."""
    result = told(job(ROLES, LINE), HOSTS, role=1, index=1, run=3, key=(7, 0, 2))
    found = variables(result, "FC_")
    assert (found["FC_FRAMEWORK_NAME"], found["FC_TASKROLE_NAME"], found["FC_TASK_INDEX"]) == (
        "ada~mnist",
        "worker",
        "1",
    )
    assert (found["FC_FRAMEWORK_ATTEMPT_ID"], found["FC_TASK_ATTEMPT_ID"]) == ("1", "2")
    again = variables(told(job(ROLES, LINE), HOSTS, role=1, index=1, run=4, key=(7, 0, 2)), "FC_")
    assert {name for name in found if again[name] != found[name]} == {
        "FC_TASK_ATTEMPT_ID",
        "FC_TASK_ATTEMPT_INSTANCE_UID",
        "FC_POD_UID",
    }


def test_a_shell_expands_them_in_a_command() -> None:
    """The command of the origin's own example, with the lists equal in every task."""
    command = "echo --ps=$PAI_TASK_ROLE_ps_server_HOST_LIST --i=$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
    said = []
    for index in (0, 1):
        environment = dict(told(job(ROLES, LINE), HOSTS, role=1, index=index).environment)
        said.append(
            subprocess.run(["/bin/sh", "-c", command], env=environment, capture_output=True, text=True, check=True)
        )
    assert [shlex.split(one.stdout) for one in said] == [
        ["--ps=10.0.0.1:4001", "--i=0"],
        ["--ps=10.0.0.1:4001", "--i=1"],
    ]
