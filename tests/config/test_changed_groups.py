"""Host groups with the hosts that badmin hghostadd and hghostdel added and deleted, wherever the files name them."""

from pathlib import Path

from lavad.config.load import Loaded, load
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import MemberChange, Names
from tests.config.files import MadeUp, write

HOSTS = """\
Begin HostGroup
GROUP_NAME GROUP_MEMBER
few        (h1 h2)
more       (few h3)
most       (all ~h9)
End HostGroup
Begin HostPartition
HPART_NAME = p1
HOSTS = h4
USER_SHARES = [default, 1]
End HostPartition
Begin ComputeUnit
NAME TYPE MEMBER
r1   rack (few)
End ComputeUnit
Begin Host
HOST_NAME MXJ
few       3
default   ()
End Host
"""
QUEUES = "Begin Queue\nQUEUE_NAME = a\nHOSTS = few+2 h5\nEnd Queue\n"
PARAMS = "Begin Parameters\nCOMPUTE_UNIT_TYPES = rack\nEnd Parameters\n"


def some(*names: str) -> Names:
    """These hosts."""
    return Names(False, frozenset(names))


def changed(directory: Path, **changes: MemberChange) -> Loaded:
    """The files, with these changes."""
    write(directory, {"lsb.hosts": HOSTS, "lsb.queues": QUEUES, "lsb.params": PARAMS})
    found = load(directory, Policy(), "c1", MadeUp(), group_changes=changes)
    assert not found.complaints
    return found


def change(added: str = "", deleted: str = "") -> MemberChange:
    """These hosts, by their names."""
    return MemberChange(frozenset(added.split()), frozenset(deleted.split()))


def test_a_change_counts_wherever_the_group_is_named(tmp_path: Path) -> None:
    """In other groups, queues, compute units and rows of hosts."""
    policy = changed(tmp_path, few=change("h7", "h1")).policy
    assert policy.host_groups["few"] == some("h2", "h7")
    assert policy.host_groups["more"] == some("h2", "h3", "h7")
    assert policy.by_name["a"].hosts == some("h2", "h5", "h7")
    assert policy.compute_units[0].hosts == some("h2", "h7")
    assert policy.host_rule("h7").slots == 3
    assert policy.host_rule("h1").slots is None


def test_how_a_changed_group_is_listed(tmp_path: Path) -> None:
    """As written, without a host that was deleted by its name; one that another word means is behind a ~."""
    changes = {"few": change("h7 h2", "h1"), "more": change("h8", "h1"), "most": change("h9", "h3"), "p1": change("h6")}
    policy = changed(tmp_path, **changes).policy
    assert {row.name: row.members for row in policy.host_group_rows} == {
        "few": ("h2", "h7"),
        "more": ("few/", "h3", "h8", "~h1"),
        "most": ("all", "~h3"),
        "p1": ("h4", "h6"),
    }
    assert policy.host_groups["most"] == Names(True, frozenset({"h3"}))


def test_a_host_partition_is_changed_like_a_group(tmp_path: Path) -> None:
    """Its hosts and those of the group of its name."""
    policy = changed(tmp_path, p1=change("h6", "h4")).policy
    assert (policy.host_partitions[0].hosts, policy.host_groups["p1"]) == (some("h6"), some("h6"))


def test_files_that_name_hosts_by_a_pattern_follow_the_joined_hosts(tmp_path: Path) -> None:
    """A master that starts reads them with the hosts that it knew: without them the groups were empty."""
    group = "Begin HostGroup\nGROUP_NAME GROUP_MEMBER\nwild ({})\nEnd HostGroup\n"
    write(tmp_path, {"lsb.hosts": group.format("n*")})
    found = load(tmp_path, Policy(), "c1", MadeUp(), frozenset({"n1", "m1"}))
    assert (found.follows_hosts, found.policy.host_groups["wild"]) == (True, some("n1"))
    write(tmp_path, {"lsb.hosts": group.format("n[1-2]")})
    assert not load(tmp_path, Policy(), "c1", MadeUp()).follows_hosts
    hosts = "Begin Host\nHOSTNAME model type server RESOURCES\nn1 ! ! 1 ()\nEnd Host\n"
    write(tmp_path, {"lsb.hosts": group.format("n*"), "lsf.cluster.c1": hosts})
    assert not load(tmp_path, Policy(), "c1", MadeUp()).follows_hosts
