"""Golden output of site-defined resources: -s of bhosts, lsload and lshosts, and the columns of -l."""

from protos import cluster_pb2
from tests.lavactl.scripted import Desk
from tests.lavactl.test_cluster_commands import a_host

Instance = cluster_pb2.ResourceInstance


def _site(desk: Desk) -> None:
    """A licence for three hosts, cards of one, a location, and elim values of two hosts and of a shared disk."""
    add = desk.client.resources_reply.resources.add
    many = ["n001", "n002", "n003"]
    add(name="lic_vcs", instances=[Instance(hosts=many, shared=True, total=10, reserved=2)])
    add(name="fpga", instances=[Instance(hosts=["n001"], total=2, reserved=1)])
    add(name="place", instances=[Instance(hosts=["n001", "n002"], shared=True, value="north")])
    add(name="scratch", dynamic=True, instances=[Instance(hosts=["n001"], total=30.15), Instance(hosts=["n002"])])
    add(name="disk", dynamic=True, instances=[Instance(hosts=many, shared=True, total=700)])
    desk.client.host_records = [a_host("n001", run=4), a_host("n002"), a_host("n003", "unavail")]


def test_bhosts_s(desk: Desk) -> None:
    """lsf.md 1.5: widths 20, 10, 15, 15; TOTAL is the amount left; strings and resources of one host are not listed."""
    _site(desk)
    assert desk.type("bhosts", "-s").out == (
        "RESOURCE                 TOTAL       RESERVED       LOCATION\n"
        "lic_vcs                    8.0            2.0       n001 n002 n003\n"
        "disk                     700.0            0.0       n001 n002 n003\n"
    )
    assert len(desk.type("bhosts", "-s", "disk").out.splitlines()) == 2


def test_lsload_s_and_lshosts_s(desk: Desk) -> None:
    """Dynamic ones in the one, static ones in the other, strings too."""
    _site(desk)
    assert desk.type("lsload", "-s").out == (
        "RESOURCE                                VALUE       LOCATION\n"
        "disk                                    700.0       n001 n002 n003\n"
    )
    assert desk.type("lshosts", "-s").out == (
        "RESOURCE                                VALUE       LOCATION\n"
        "lic_vcs                                  10.0       n001 n002 n003\n"
        "place                                   north       n001 n002\n"
    )


def test_hosts_of_a_resource_go_over_several_lines(desk: Desk) -> None:
    """80 columns, the names below one another."""
    names = [f"node{number:03}" for number in range(5)]
    desk.client.resources_reply.resources.add(name="lic", instances=[Instance(hosts=names, shared=True, total=1)])
    assert desk.type("lshosts", "-s").out.splitlines()[1:] == [
        "lic                                       1.0       node000 node001 node002",
        "                                                    node003 node004",
    ]


def test_a_resource_that_nobody_knows(desk: Desk) -> None:
    """A sentence and exit code 255; another sentence if no resource is defined."""
    _site(desk)
    result = desk.type("bhosts", "-s", "nope", "disk")
    assert (result.code, result.err) == (255, "nope: Bad resource name\n")
    assert "disk" in result.out
    desk.client.resources_reply = cluster_pb2.ResourcesReply()
    assert desk.type("bhosts", "-s").out == "No shared resources defined\n"
    assert desk.type("lsload", "-s").out == "No dynamic shared resources defined\n"
    assert desk.type("lshosts", "-s").out == "No static shared resources defined\n"


def test_lsload_long(desk: Desk) -> None:
    """io and elim values; a dash if the host lacks the resource or no elim has reported it."""
    _site(desk)
    assert desk.type("lsload", "-l").out == (
        "HOST_NAME       status  r15s   r1m  r15m   ut    pg    io  ls    it   tmp   swp   mem  scratch  disk\n"
        "n001                ok   0.1   0.3   0.2   2%   0.0     4   1   120   40G   16G  240G     30.1 700.0\n"
        "n002                ok   0.1   0.3   0.2   2%   0.0     4   1   120   40G   16G  240G        - 700.0\n"
        "n003            unavail\n"
    )


def test_lsload_wide(desk: Desk) -> None:
    """Names in full, which the plain form cuts."""
    desk.client.host_records = [a_host("a-host-with-a-long-name")]
    assert desk.type("lsload", "-w").out.splitlines()[1].startswith("a-host-with-a-long-name     ok   0.1")
    assert desk.type("lsload").out.splitlines()[1].startswith("a-host-with-a-l     ok   0.1")


def test_bhosts_long_has_the_sites_own_resources(desk: Desk) -> None:
    """Below LSF's indices, the host's numeric resources with reserved amounts; no table for a host without any."""
    _site(desk)
    lines = desk.type("bhosts", "-l", "n001").out.splitlines()
    at = lines.index(" CURRENT LOAD USED FOR SCHEDULING:")
    assert lines[at + 4 : at + 9] == [
        "",
        "                lic_vcs         fpga      scratch         disk",
        " Total             10.0          2.0         30.1        700.0",
        " Reserved           2.0          1.0          0.0          0.0",
        "",
    ]
    desk.client.resources_reply = cluster_pb2.ResourcesReply()
    assert desk.type("bhosts", "-l", "n001").out.splitlines()[at + 4 : at + 6] == [
        "",
        " LOAD THRESHOLD USED FOR SCHEDULING:",
    ]
