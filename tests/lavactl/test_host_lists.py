"""Golden output of lsload, lshosts, bhosts and lsplace with chosen hosts, indices and fields (lsf.md 1.5, 1.7)."""

import json

import pytest

from protos import cluster_pb2
from tests.lavactl.scripted import Desk
from tests.lavactl.test_cluster_commands import a_host


@pytest.fixture(autouse=True)
def three_hosts(desk: Desk) -> None:
    """A busy host, an idle one, and one that is away."""
    busy = a_host("n001", "closed_Full", cpus=4)
    busy.load.r1m = 9.0
    desk.client.host_records = [busy, a_host("n002"), a_host("n003", "unavail")]


def _requirement(desk: Desk) -> str:
    return str(desk.client.asked[-1].requirement)


def test_lsload_of_chosen_indices(desk: Desk) -> None:
    """lsf.md 1.7: -I index:index; the aliases of 3.6 stand for their indices; a host that is away has no values."""
    assert desk.type("lsload", "-I", "cpu:ut:mem:io").out == (
        "HOST_NAME       status   r1m   ut   mem    io\n"
        "n001                ok   9.0   2%  240G     4\n"
        "n002                ok   0.3   2%  240G     4\n"
        "n003            unavail\n"
    )
    result = desk.type("lsload", "-I", "r1m:nope")
    assert (result.code, result.out, result.err) == (255, "", "lsload: nope: Unknown load index name\n")


def test_lsload_of_an_index_of_the_site(desk: Desk) -> None:
    """An index that elims report is named like the others."""
    instance = cluster_pb2.ResourceInstance(hosts=["n002"], total=30.15)
    desk.client.resources_reply.resources.add(name="scratch", dynamic=True, instances=[instance])
    rows = desk.type("lsload", "-I", "scratch:ls").out.splitlines()
    assert rows[:3] == [
        "HOST_NAME       status  scratch  ls",
        "n001                ok        -   1",
        "n002                ok     30.1   1",
    ]


def test_lsload_selects_hosts_whose_load_is_known(desk: Desk) -> None:
    """-R goes to the master, which knows the load; a host that is away has none; -n is the most hosts shown."""
    rows = desk.type("lsload", "-R", "select[mem>100] order[r1m]", "-w").out.splitlines()
    assert [row.split()[0] for row in rows[1:]] == ["n001", "n002"]
    assert _requirement(desk) == "select[mem>100] order[r1m]"
    assert len(desk.type("lsload", "-n", "1").out.splitlines()) == 2
    assert desk.type("lsload", "-n", "x").code == 255


def test_lsload_of_effective_and_normalized_queues(desk: Desk) -> None:
    """-E leaves out a process for each processor but one; -N is for one more process, by the CPU factor."""
    assert desk.type("lsload", "-E", "-I", "r1m", "n001").out.split()[-1] == "6.0"
    desk.client.host_records = [a_host("n001", cpus=4, cpu_factor=2.0)]
    desk.client.host_records[0].load.r1m = 9.0
    assert desk.type("lsload", "-N", "-I", "r1m", "n001").out.split()[-1] == "3.5"
    assert desk.type("lsload", "-N", "-E").code == 255


@pytest.mark.parametrize("command", ["lsload", "lshosts", "bhosts"])
def test_formats_of_many_fields(desk: Desk, command: str) -> None:
    """``all`` and ``*`` are every field, ``m*`` those that begin so; a width behind them is that of each."""
    every = desk.type(command, "-o", "all").out.splitlines()[0].split()
    assert len(every) > 5
    assert desk.type(command, "-o", "*").out.splitlines()[0].split() == every
    some = [name for name in every if name.startswith("M")]
    assert desk.type(command, "-o", "m*").out.splitlines()[0].split() == some
    assert desk.type(command, "-o", "ALL:4").out.splitlines()[0] == " ".join(f"{name[:4]:<4}" for name in every)
    assert desk.type(command, "-o", "nope*").code == 99


def test_lsload_fields(desk: Desk) -> None:
    """-o with widths and a delimiter; -json as bhosts has it."""
    out = desk.type("lsload", "-o", "host_name:8 r1m:-6 status delimiter='|'").out
    assert out.splitlines() == [
        "HOST_NAM|   R1M|STATUS",
        "n001    |   9.0|ok",
        "n002    |   0.3|ok",
        "n003    |     -|unavail",
    ]
    told = json.loads(desk.type("lsload", "-o", "host_name mem", "-json", "n002").out)
    assert told == {"COMMAND": "lsload", "HOSTS": 1, "RECORDS": [{"HOST_NAME": "n002", "MEM": "240G"}]}
    assert desk.type("lsload", "-o", "nope").code == 99
    assert desk.type("lsload", "-json").code == 255
    desk.environ["LSF_LSLOAD_FORMAT"] = "host_name"
    assert desk.type("lsload", "-noheader").out == "n001\nn002\nn003\n"


def test_lshosts_fields(desk: Desk) -> None:
    """-o, -json and -R of the static attributes."""
    out = desk.type("lshosts", "-o", "host_name ncpus maxmem server resources", "-noheader", "-R", "mpi", "n002").out
    assert out == "n002 32 256G Yes (mpi gpu)\n"
    assert _requirement(desk) == "mpi"
    told = json.loads(desk.type("lshosts", "-json", "-o", "type model", "n002").out)
    assert told["RECORDS"] == [{"TYPE": "X86_64", "MODEL": "Intel_E5"}]
    assert desk.type("lshosts", "-l", "-T").code == 255


def test_lshosts_topology(desk: Desk) -> None:
    """-T: NUMA nodes, sockets, and cores with the numbers of their processors."""
    desk.client.host_records = [a_host("n001", topology="0 0 0 0,1 1 0 0,2 0 0 0,3 1 0 0,4 0 1 1"), a_host("n002")]
    assert desk.type("lshosts", "-T").out == (
        "Host[256G] n001\n"
        "    NUMA[0]\n"
        "        Socket\n"
        "            core(0 2)\n"
        "            core(1 3)\n"
        "    NUMA[1]\n"
        "        Socket\n"
        "            core(4)\n"
        "Host[256G] n002\n"
        "    The host has not reported its processors.\n"
    )


def test_bhosts_selects_hosts(desk: Desk) -> None:
    """lsf.md 1.5: -R; no host that satisfies it is one sentence."""
    assert desk.type("bhosts", "-R", "mem>100", "-noheader").out.startswith("n001")
    assert _requirement(desk) == "mem>100"
    desk.client.host_records = []
    result = desk.type("bhosts", "-R", "mem>100")
    assert (result.code, result.err) == (255, "No hosts found\n")


@pytest.mark.parametrize(
    ("argv", "asked", "names"),
    [
        ([], "order[r15s:pg]", "n001"),
        (["-n", "2"], "order[r15s:pg]", "n001 n002"),
        (["-n", "0"], "order[r15s:pg]", "n001 n002"),
        (["-w", "5"], "order[r15s:pg]", "n001 n002"),
        (["-R", "mem>100"], "select[mem>100] order[r15s:pg]", "n001"),
        (["-R", "select[mem>100]"], "select[mem>100] order[r15s:pg]", "n001"),
        (["-R", "order[mem]", "n001", "n002"], "order[mem]", "n001"),
    ],
)
def test_lsplace(desk: Desk, argv: list[str], asked: str, names: str) -> None:
    """lsf.md 1.7: names on one line, the best first; the master sorts by r15s and pg unless -R says otherwise."""
    assert desk.type("lsplace", *argv).out == names + "\n"
    assert _requirement(desk) == asked


def test_lsplace_without_enough_hosts(desk: Desk) -> None:
    """lsf.md 1.7: LSF's sentence."""
    result = desk.type("lsplace", "-n", "3")
    assert result.code == 255
    assert result.out == ""
    assert result.err == "lsplace: ls_placereq failed: Not enough host(s) currently eligible\n"
