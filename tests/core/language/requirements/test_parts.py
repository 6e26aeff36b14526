"""Parts of host shares that single tasks hold."""

from lavad.core.language.requirements.parts import could_release, held_by, is_elastic, keeps_first_host, last_of
from lavad.core.model import Allocation, HostShare, Request, ResourceShare, RoleRequest
from lavad.core.model.allocation import grown, shrunk

PS = RoleRequest(1, 2, name="ps", memory_mib=500)
WORKER = RoleRequest(1, 4, slots_per_task=2, gpus=2, gpus_per_task=True, memory_mib=100, name="worker")
JOB = Request((PS, WORKER), is_of_tasks=True)
BOTH = HostShare("n1", 8, 600, (0, 1, 2, 3, 4, 5), (2, 3), gpu_roles=(1,) * 6)


def test_a_task_holds_its_own_devices() -> None:
    """So many for each task in their order; memory for the host goes with the role's last task there."""
    middle = held_by(BOTH, [(), (1,)], JOB)
    assert middle == HostShare("n1", 2, 0, (2, 3), (0, 1), gpu_roles=(1, 1))
    assert shrunk((BOTH,), (middle,)) == (HostShare("n1", 6, 600, (0, 1, 4, 5), (2, 2), gpu_roles=(1,) * 4),)
    assert last_of(BOTH, (2, 0), JOB) == HostShare("n1", 2, 500, (), (2, 0))
    assert last_of(BOTH, (0, 3), JOB) == HostShare("n1", 6, 100, (0, 1, 2, 3, 4, 5), (0, 3), gpu_roles=(1,) * 6)
    assert last_of(BOTH, (2, 3), JOB) is BOTH


def test_what_a_part_takes_away_comes_back_last() -> None:
    """Devices of tasks that join later are behind those of the others."""
    first = held_by(BOTH, [(), (0,)], JOB)
    (left,) = shrunk((BOTH,), (first,))
    (again,) = grown((left,), (first,))
    assert again.gpus == (2, 3, 4, 5, 0, 1)
    assert again._replace(gpus=BOTH.gpus) == BOTH


def test_counted_resources_for_each_task_and_each_host() -> None:
    """An amount for each task is divided with its devices, one for the host is released with the last task."""
    role = RoleRequest(1, 4, name="worker", rusage="fpga=1/task:lic=2/host")
    job = Request((role,), is_of_tasks=True)
    fpga = ResourceShare("fpga", 3000, (0, 1, 2))
    share = HostShare("n1", 3, 0, (), (3,), (fpga, ResourceShare("lic", 2000)))
    assert held_by(share, [(1,)], job).resources == (ResourceShare("fpga", 1000, (1,)),)
    assert shrunk((share,), (held_by(share, [(1,)], job),))[0].resources == (
        ResourceShare("fpga", 2000, (0, 2)),
        ResourceShare("lic", 2000),
    )
    assert held_by(share, [(0, 1, 2)], job) is share
    assert not keeps_first_host(job)
    assert keeps_first_host(Request((RoleRequest(rusage="lic=2/job"),), is_of_tasks=True))


def names(allocation: Allocation) -> list[tuple[str, tuple[int, ...]]]:
    """Hosts with the tasks of each role."""
    return [(share.host, share.tasks_by_role) for share in allocation]


def test_each_role_keeps_its_minimum() -> None:
    """The hosts that joined last are released first, on each host the last role first; the first host may go."""
    shares = (HostShare("n1", 2, tasks_by_role=(2, 0)), *(HostShare(f"n{n}", 2, 100, (0, 1), (0, 1)) for n in (2, 3)))
    assert names(could_release(shares, JOB, 9)) == [("n1", (1, 0)), ("n3", (0, 1))]
    assert names(could_release(shares, JOB, 1)) == [("n3", (0, 1))]
    assert names(could_release(shares, JOB, 9, wanted={"n1": 1})) == [("n1", (1, 0))]
    absent = Request((RoleRequest(0, 2, name="ps"), WORKER), is_of_tasks=True)
    assert names(could_release(shares, absent, 9)) == [("n1", (2, 0)), ("n3", (0, 1))]


def test_bound_processors_are_released_by_whole_hosts() -> None:
    """A part of such a share can't be given up."""
    role = RoleRequest(1, 4, name="worker", affinity="core(1)")
    job = Request((role,), is_of_tasks=True)
    shares = tuple(HostShare(f"n{n}", 2, tasks_by_role=(2,), cpus=((0,), (1,))) for n in (1, 2))
    assert names(could_release(shares, job, 9)) == [("n2", (2,))]
    assert could_release(shares, job, 1) == ()


def test_jobs_whose_hosts_are_tied_together_keep_their_size() -> None:
    """So do those without a range, and jobs that are not of tasks."""
    assert is_elastic(JOB)
    assert not is_elastic(Request((PS, WORKER)))
    assert not is_elastic(Request((RoleRequest(2, 2),), is_of_tasks=True))
    assert not is_elastic(Request((PS,), exclusive=True, is_of_tasks=True))
    assert not is_elastic(Request((RoleRequest(1, 2, block=2),), is_of_tasks=True))
    assert not is_elastic(Request((RoleRequest(1, 2, cu="balance"),), is_of_tasks=True))
