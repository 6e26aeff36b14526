"""Roles of the devices in an allocation."""

from lavad.core.model import HostShare, ResourceShare
from lavad.core.scheduling.placement.host_part import HostPart
from lavad.core.scheduling.placement.place import share_of
from tests.builders import a_cluster, a_host, a_job, a_role

FPGAS = (ResourceShare("fpga", 2000, (0, 1)),)


def test_an_allocation_says_which_term_a_device_is_for() -> None:
    """With several roles on one host; with a single one none is recorded."""
    story = a_cluster(a_host("n1", 4, gpus=4))
    roles = (a_role(1, gpus=1), a_role(2, gpus=2), a_role(1))
    several = story.cluster.attempts[story.run(a_job(roles=roles))].allocation
    assert [(share.gpus, share.gpu_roles, share.tasks_by_role) for share in several] == [
        ((0, 1, 2), (0, 1, 1), (1, 2, 1))
    ]
    story = a_cluster(a_host("n1", 4, gpus=4))
    single = story.cluster.attempts[story.run(a_job(roles=roles[1:2]))].allocation
    assert [(share.gpus, share.gpu_roles) for share in single] == [((0, 1), ())]


def test_devices_of_a_sites_resource_have_roles_as_well() -> None:
    """As many roles as the resource has devices; an amount without numbers has none."""
    table = a_cluster(a_host("n1")).cluster.table
    licence = ResourceShare("lic", 1000)
    parts = [
        HostPart(0, 0, 1, 1, 0, (), resources=(licence,)),
        HostPart(0, 1, 2, 2, 0, (), resources=(licence, ResourceShare("fpga", 1000, (3,)))),
        HostPart(0, 0, 1, 1, 0, (), resources=FPGAS),
    ]
    assert share_of(table, 0, parts, 2).resources == (
        ResourceShare("lic", 2000),
        ResourceShare("fpga", 3000, (3, 0, 1), (1, 0, 0)),
    )
    assert share_of(table, 0, [parts[2], parts[2]], 1).resources[0].device_roles == ()


def test_shares_that_are_made_in_a_hurry_are_whole() -> None:
    """One task with its own devices, whose share is made by the fast way."""
    story = a_cluster(a_host("n1", 4, gpus=4))
    (share,) = story.cluster.attempts[story.run(a_job(gpus=2))].allocation
    assert share == HostShare("n1", 1, 0, (0, 1), (1,))
