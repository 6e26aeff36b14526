"""The variables of every task, the table, and the bounds of the kernel."""

import json

import pytest

from agents.job_setup.told.table import Table
from agents.job_setup.told.tell import tell
from agents.job_setup.told.values import CannotTell
from protos.common_pb2 import TaskRun
from tests.agents.told.jobs import DIRECTORY, PS_AND_WORKERS, at, facts, job, role, told, variables


def test_every_task_knows_its_place() -> None:
    """Role, index, count, number among all, run and ports, without any convention."""
    blob = job([role("ps"), role("worker", "http", "my-port*2")])
    hosts = [at("n2", "10.0.0.2", r1="1:51/52/53"), at("n1", "10.0.0.1", r0="0", r1="0:41/42/43")]
    result = told(blob, hosts, role=1, index=1, run=3)
    assert result.environment == {
        "LAVA_ROLE": "worker",
        "LAVA_ROLE_INDEX": "1",
        "LAVA_ROLE_COUNT": "2",
        "LAVA_TASK_INDEX": "2",
        "LAVA_TASK_COUNT": "3",
        "LAVA_TASK_RUN": "3",
        "LAVA_TASK_ADDRESS": "10.0.0.2",
        "LAVA_PORT_HTTP": "51",
        "LAVA_PORT_MY_PORT": "52,53",
        "LAVA_TASKS_FILE": f"{DIRECTORY}/tasks.json",
    }
    assert not result.files
    assert not result.names
    assert not result.path_prefix


def test_the_table_is_a_file_for_programs() -> None:
    """Tasks role by role, in the order of their indices, whatever the order of hosts."""
    blob = job([role("ps"), role("worker", "http")])
    hosts = [at("n2", "10.0.0.2", r1="1:51"), at("n1", "10.0.0.1", r0="0", r1="0:41")]
    content = json.loads(told(blob, hosts, role=0, index=0).own["tasks.json"].content)
    assert content["job"] == "mnist"
    assert [(task["role"], task["index"], task["task"], task["host"]) for task in content["tasks"]] == [
        ("ps", 0, 0, "n1"),
        ("worker", 0, 1, "n1"),
        ("worker", 1, 2, "n2"),
    ]
    assert content["tasks"][2]["ports"] == {"http": [51]}


def test_programs_of_the_task_come_first_in_path() -> None:
    """The job's own PATH follows; variables of the task replace the job's."""
    blob = job([role("ps"), role("worker")], "ssh")
    result = told(blob, PS_AND_WORKERS, role=0, index=0)
    overlaid = result.laid_over({b"PATH": b"/usr/bin", b"LAVA_ROLE": b"other", b"HOME": b"/h"})
    assert overlaid[b"PATH"] == f"{DIRECTORY}/bin:/usr/bin".encode()
    assert (overlaid[b"LAVA_ROLE"], overlaid[b"HOME"]) == (b"ps", b"/h")


def test_a_task_that_is_not_in_the_table_is_an_error() -> None:
    """So is a convention of a newer client: the task must not start half told."""
    blob = job([role("ps")])
    with pytest.raises(CannotTell, match="Role 0 has no task 4 in the table of job 7"):
        told(blob, [at("n1", "", r0="0")], role=0, index=4)
    with pytest.raises(CannotTell, match="The convention smoke-signals is not known on n1"):
        told(job([role("ps")], "smoke-signals"), [at("n1", "", r0="0")], role=0, index=0)


def test_no_variable_is_too_long_for_the_kernel() -> None:
    """A list of 6,000 host names is left out, with its name in LAVA_TASK_LEFT_OUT; the file has it."""
    blob = job([role("worker")], "svc", name="a-long-name-of-a-job")
    table = Table.of(blob, [at("n1", "10.0.0.1", r0=",".join(map(str, range(6000))))])
    result = tell(blob, TaskRun(role=0, index=5999, run=1), table, facts())
    assert result.environment["LAVA_TASK_LEFT_OUT"] == "VC_WORKER_HOSTS"
    assert variables(result, "VC_") == {"VC_WORKER_NUM": "6000"}
    assert result.files["/etc/volcano/worker.host"].content.count(b"\n") == 5999
