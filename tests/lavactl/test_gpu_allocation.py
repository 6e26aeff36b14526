"""bjobs -l -gpu: a line for each GPU of a job, from its hosts' reports."""

from protos import cluster_pb2, common_pb2, jobs_pb2
from tests.lavactl.scripted import Desk, a_job

GIB = 1024
TITLES = "HOST TASK GPU_ID GI_PLACEMENT/SIZE CI_PLACEMENT/SIZE MODEL MTOTAL FACTOR MRSV SOCKET NVLINK/XGMI"


def a_gpu_host(name: str) -> cluster_pb2.HostRecord:
    """Four devices on two sockets, those of a socket with links to each other."""
    gpus = [
        cluster_pb2.Gpu(index=number, model="NVIDIA A100", memory_mib=80 * GIB, numa_node=number // 2,
                        nvlink_peers=[number ^ 1])
        for number in range(4)
    ]  # fmt: skip
    return cluster_pb2.HostRecord(facts=cluster_pb2.HostFacts(name=name, gpus=gpus), status="ok")


def a_gpu_job(per_task: int = 0, **share: object) -> jobs_pb2.JobRecord:
    """Three tasks on n010 with devices 0, 1 and 2, one on n011 with device 3."""
    role = common_pb2.Role(gpu=common_pb2.GpuRequest(num=per_task or 3, per_task=bool(per_task)))
    job = a_job(state=common_pb2.RUN, spec=jobs_pb2.JobSpec(roles=[role]))
    job.hosts.add(host="n010", slots=6, tasks_by_role=[3], gpus=[0, 1, 2], **share)  # type: ignore[arg-type]
    job.hosts.add(host="n011", slots=2, tasks_by_role=[1], gpus=[3])
    return job


def rows(desk: Desk, *argv: str) -> list[list[str]]:
    """The block as words, line by line; empty without such a block."""
    _, title, block = desk.type("bjobs", *argv, "1201").out.partition("\n GPU_ALLOCATION:\n")
    lines = [line.split() for line in block.splitlines()]
    assert not title or lines.pop(0) == TITLES.split()
    return lines


def test_the_devices_of_each_host(desk: Desk) -> None:
    """Tasks are counted through all hosts; links are shown between the job's own GPUs."""
    desk.client.host_records = [a_gpu_host("n010"), a_gpu_host("n011")]
    desk.client.jobs = [a_gpu_job(gpu_memory_mib=[4096, 4096, 4096])]
    expected = [
        ["n010", "0,1,2", "0", "-", "-", "NVIDIAA100", "80G", "-", "4096M", "0", "-/Y/N"],
        ["0,1,2", "1", "-", "-", "NVIDIAA100", "80G", "-", "4096M", "0", "Y/-/N"],
        ["0,1,2", "2", "-", "-", "NVIDIAA100", "80G", "-", "4096M", "1", "N/N/-"],
        ["n011", "3", "3", "-", "-", "NVIDIAA100", "80G", "-", "0M", "1", "-"],
    ]
    assert rows(desk, "-l", "-gpu") == expected
    assert rows(desk, "-UF", "-gpu") == expected
    assert rows(desk, "-l") == []


def test_devices_of_single_tasks(desk: Desk) -> None:
    """-gpu num=1/task: each device is its task's."""
    desk.client.host_records = [a_gpu_host("n010"), a_gpu_host("n011")]
    desk.client.jobs = [a_gpu_job(per_task=1)]
    shown = [line[-10:] for line in rows(desk, "-l", "-gpu")]
    assert [(line[0], line[1]) for line in shown] == [("0", "0"), ("1", "1"), ("2", "2"), ("3", "3")]


def test_devices_of_blocks_of_tasks(desk: Desk) -> None:
    """-gpu num=2:block=yes: tasks in a row have one device."""
    desk.client.host_records = [a_gpu_host("n010")]
    role = common_pb2.Role(gpu=common_pb2.GpuRequest(num=2, text="num=2:block=yes"))
    job = a_job(state=common_pb2.RUN, spec=jobs_pb2.JobSpec(roles=[role]))
    job.hosts.add(host="n010", slots=5, tasks_by_role=[5], gpus=[1, 3])
    desk.client.jobs = [job]
    assert [line[-10:][:2] for line in rows(desk, "-l", "-gpu")] == [["0,1,2", "1"], ["3,4", "3"]]


def test_hosts_are_asked_once_and_may_have_gone(desk: Desk) -> None:
    """For a GPU that is not reported any more the number stays; a job without GPUs has no such block."""
    desk.client.host_records = [a_gpu_host("n010")]
    desk.client.jobs = [a_gpu_job(), a_gpu_job()]
    block = rows(desk, "-l", "-gpu")
    assert block[-1] == ["n011", "3", "3", "-", "-", "-", "-", "-", "0M", "-", "-"]
    asked = [one for one in desk.client.asked if isinstance(one, cluster_pb2.HostsRequest)]
    assert [list(one.names) for one in asked] == [["n010", "n011"]]
    desk.client.jobs = [a_job([("n001", 2)], state=common_pb2.RUN)]
    assert rows(desk, "-l", "-gpu") == []


def test_only_long_forms_have_room_for_it(desk: Desk) -> None:
    """As in LSF."""
    result = desk.type("bjobs", "-gpu")
    assert result.code == 255
    assert result.err.startswith("bjobs: -gpu needs -l or -UF\n")


def test_devices_of_terms(desk: Desk) -> None:
    """Of a compound requirement's terms each device is for the tasks of one."""
    desk.client.host_records = [a_gpu_host("n010")]
    job = a_job(state=common_pb2.RUN, spec=jobs_pb2.JobSpec(roles=[common_pb2.Role()]))
    job.hosts.add(host="n010", slots=4, tasks_by_role=[1, 0, 3], gpus=[0, 1, 3], gpu_roles=[0, 2, 2])
    desk.client.jobs = [job]
    assert [line[-10:][:2] for line in rows(desk, "-l", "-gpu")] == [["0", "0"], ["1,2,3", "1"], ["1,2,3", "3"]]


def test_devices_of_several_roles(desk: Desk) -> None:
    """Each role's devices are divided as that role asks, and each request is shown with its role's name."""
    desk.client.host_records = [a_gpu_host("n010")]
    spec = jobs_pb2.JobSpec(
        roles=[
            common_pb2.Role(name="server"),
            common_pb2.Role(name="trainer", gpu=common_pb2.GpuRequest(num=1, per_task=True, text="num=1/task")),
        ]
    )
    job = a_job(state=common_pb2.RUN, spec=spec)
    job.hosts.add(host="n010", slots=3, tasks_by_role=[1, 2], gpus=[0, 1], gpu_roles=[1, 1])
    desk.client.jobs = [job]
    shown = [line[-10:] for line in rows(desk, "-l", "-gpu")]
    assert [(line[0], line[1]) for line in shown] == [("1", "0"), ("2", "1")]
    assert "Requested GPU <trainer: num=1/task>" in desk.type("bjobs", "-UF", "1201").out
    assert desk.type("bjobs", "-noheader", "-o", "gpu_num", "1201").out == "1\n"
