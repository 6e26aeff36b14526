"""Environment of a job, and the variables of its submitter that are removed."""

import os
import stat
from pathlib import Path

import pytest

from agents.job_setup import environment
from agents.job_setup.environment import HostFiles, set_by_lava, submitted, with_submitted
from agents.job_setup.host_context import HostContext
from protos.agents_pb2 import JobSpecBlob, Stage
from protos.common_pb2 import HostShare, IndexRange, Role
from protos.jobs_pb2 import JobSpec

HOST = HostContext("n1", "/run/lava/agent.sock", "/opt/lava/bin", "/etc/lava", has_gpus=False, oversubscribed=False)
ALLOCATION = [HostShare(host="n1", slots=2, gpus=[0, 3]), HostShare(host="n2", slots=1)]


def environment_of(
    tmp_path: Path, spec: JobSpec, allocation: list[HostShare] | None = None, host: HostContext = HOST, uid: int = 1000
) -> dict[str, str]:
    """The environment as text."""
    blob = JobSpecBlob(job=12, spec=spec, user="alice", uid=uid, queue="normal")
    stage = Stage(allocation=allocation or ALLOCATION, queue="night", environment={"FROM_MASTER": "yes"})
    by_lava = set_by_lava(blob, stage, "/home/alice", "", host, HostFiles(tmp_path))
    found = with_submitted(blob, by_lava, is_resizable=False)
    return {os.fsdecode(name): os.fsdecode(value) for name, value in found.items()}


def test_lsfs_variables_describe_job_and_place(tmp_path: Path) -> None:
    """The names that LSF's users count on, with the values they expect."""
    spec = JobSpec(
        name="md",
        project="p1",
        submit_cwd="/home/alice/run",
        submit_host="login1",
        roles=[Role(tasks_min=2, tasks_max=4)],
        array=[IndexRange(first=1, last=9, step=2)],
        environment=[b"MINE=1", b"LSB_JOBID=999", b"HOME=/elsewhere", b"odd"],
    )
    found = environment_of(tmp_path, spec)
    expected = {
        "LSB_JOBID": "12",
        "LSB_JOBNAME": "md",
        "LSB_QUEUE": "night",
        "LSB_SUB_HOST": "login1",
        "LSB_HOSTS": "n1 n1 n2",
        "LSB_MCPU_HOSTS": "n1 2 n2 1",
        "LSB_DJOB_NUMPROC": "3",
        "LSB_MAX_NUM_PROCESSORS": "4",
        "LSB_JOBINDEX_STEP": "2",
        "LSB_JOBINDEX_END": "9",
        "LS_SUBCWD": "/home/alice/run",
        "LSFUSER": "alice",
        "USER": "alice",
        "HOME": "/home/alice",
        "LSF_BINDIR": "/opt/lava/bin",
        "LSF_ENVDIR": "/etc/lava",
        "LAVA_SOCKET": "/run/lava/agent.sock",
        "MINE": "1",
        "FROM_MASTER": "yes",
    }
    assert {name: found.get(name) for name in expected} == expected
    assert "odd" not in found
    assert Path(found["LSB_DJOB_HOSTFILE"]).read_text() == "n1\nn1\nn2\n"
    assert Path(found["LSB_DJOB_RANKFILE"]).read_text() == "n1\nn1\nn2\n"


def test_mpi_finds_the_allocation_without_flags(tmp_path: Path) -> None:
    """Open MPI 4 and 5 by agent and host file, hydra by LSF's own variables; root's consent only for root."""
    found = environment_of(tmp_path, JobSpec())
    for name in ("PRTE_MCA_plm_ssh_agent", "OMPI_MCA_plm_rsh_agent"):
        assert found[name] == "/opt/lava/bin/blaunch"
    for name in ("PRTE_MCA_prte_default_hostfile", "OMPI_MCA_orte_default_hostfile"):
        assert Path(found[name]).read_text() == "n1 slots=2\nn2 slots=1\n"
    assert "OMPI_ALLOW_RUN_AS_ROOT" not in found
    assert "OMPI_MCA_mpi_yield_when_idle" not in found
    assert environment_of(tmp_path, JobSpec(), uid=0)["OMPI_ALLOW_RUN_AS_ROOT"] == "1"


def test_open_mpi_does_not_give_a_silent_host_up(tmp_path: Path) -> None:
    """Unless its user wants that."""
    name = "OMPI_MCA_oob_tcp_keepalive_time"
    assert environment_of(tmp_path, JobSpec())[name] == "0"
    assert environment_of(tmp_path, JobSpec(environment=[f"{name}=60".encode()]))[name] == "60"


@pytest.mark.parametrize(
    ("has_gpus", "gpus", "expected"), [(True, [0, 3], "0,3"), (True, [], ""), (False, [], None), (False, [1], None)]
)
def test_a_job_sees_its_gpus_and_no_others(
    tmp_path: Path, has_gpus: bool, gpus: list[int], expected: str | None
) -> None:
    """On a host with GPUs a job without a GPU request sees none, whatever its submission environment."""
    host = HostContext("n1", "/s", "/b", "", has_gpus=has_gpus, oversubscribed=True)
    spec = JobSpec(environment=[b"CUDA_VISIBLE_DEVICES=0,1,2,3"])
    found = environment_of(tmp_path, spec, [HostShare(host="n1", slots=1, gpus=gpus)], host)
    assert found.get("CUDA_VISIBLE_DEVICES") == expected
    assert found["OMPI_MCA_mpi_yield_when_idle"] == "1"


def test_a_huge_allocation_leaves_lsb_hosts_out(tmp_path: Path) -> None:
    """LSB_HOSTS is not set if it would be too long; programs read the host file."""
    allocation = [HostShare(host=f"node{number:05d}", slots=8) for number in range(100)]
    found = environment_of(tmp_path, JobSpec(), allocation)
    assert "LSB_HOSTS" not in found
    assert found["LSB_MCPU_HOSTS"].startswith("node00000 8 node00001 8")
    assert len(Path(found["LSB_DJOB_HOSTFILE"]).read_text().splitlines()) == 800


def test_tasks_of_several_roles_are_ranked_in_order(tmp_path: Path) -> None:
    """The rank file follows task numbers: role by role, host by host."""
    spec = JobSpec(roles=[Role(name="ps", tasks_max=1), Role(name="worker", tasks_max=3)])
    allocation = [
        HostShare(host="n1", slots=2, tasks_by_role=[1, 1]),
        HostShare(host="n2", slots=2, tasks_by_role=[0, 2]),
    ]
    found = environment_of(tmp_path, spec, allocation)
    assert Path(found["LSB_DJOB_RANKFILE"]).read_text().split() == ["n1", "n1", "n2", "n2"]


def test_the_requirement_is_that_of_all_roles(tmp_path: Path) -> None:
    """A compound one of several roles, never only the first one's."""
    roles = [Role(tasks_min=1, requirement="select[gpus]"), Role(tasks_min=3, requirement="rusage[mem=10]")]
    for some, text in (
        ([], ""),
        (roles[:1], "select[gpus]"),
        (roles, "1*{select[gpus]} + 3*{rusage[mem=10]}"),
    ):
        assert environment_of(tmp_path, JobSpec(roles=some))["LSB_EFFECTIVE_RSRCREQ"] == text


def test_host_files_are_shared_readable_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same content is the same file; old ones go, but never one that is in use."""
    monkeypatch.setattr(environment, "HOST_FILES_KEPT", 3)
    used: list[str] = []
    files = HostFiles(tmp_path, lambda: used)
    first = files.put(["a"])
    used.append(first)
    assert files.put(["a"]) == first
    assert stat.S_IMODE(os.stat(first).st_mode) == 0o644
    for number in range(10):
        files.put([str(number)])
    assert Path(first).read_text() == "a\n"
    assert len(list(tmp_path.iterdir())) <= 5


def test_what_was_of_another_job_is_not_inherited() -> None:
    """Submitting from within a job does not carry that job's identity along."""
    lines = [b"LSB_HOSTS=x", b"LAVA_TASK_INDEX=3", b"PMI_RANK=1", b"LSF_ENVDIR=/e", b"A=b=c", b"EMPTY="]
    assert submitted(lines) == {b"LSF_ENVDIR": b"/e", b"A": b"b=c", b"EMPTY": b""}
