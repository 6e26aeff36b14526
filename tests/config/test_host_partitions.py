"""HostPartition sections of lsb.hosts: what is read, and what is told with its line."""

from pathlib import Path

import pytest

from lavad.core.model.priorities.host_partition import partition_of
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from tests.config.files import loaded, policy_of, said

SECTION = "Begin HostPartition\nHPART_NAME = {}\nHOSTS = {}\nUSER_SHARES = {}\nEnd HostPartition\n"
HOSTS = SECTION.format("p1", "h1", "[ann, 3] [default, 1]")
QUEUES = "Begin Queue\nQUEUE_NAME = a\nHOSTS = p1\nEnd Queue\nBegin Queue\nQUEUE_NAME = b\nHOSTS = h2\nEnd Queue\n"
PARAMS = "Begin Parameters\nRUN_JOB_FACTOR = 7\nEnd Parameters\n"


def test_a_partition_is_read(tmp_path: Path) -> None:
    """With the factors of lsb.params; its hosts are a host group of its name, for queues and bmgroup."""
    policy = policy_of(tmp_path, {"lsb.hosts": HOSTS, "lsb.queues": QUEUES, "lsb.params": PARAMS})
    (one,) = policy.host_partitions
    assert (one.name, one.hosts, one.written) == ("p1", Names(False, frozenset({"h1"})), ("h1",))
    assert [(share.name, share.shares) for share in one.fairshare.shares] == [("ann", 3), ("default", 1)]
    assert one.fairshare.run_job_factor == 7
    assert policy.by_name["a"].hosts == Names(False, frozenset({"h1"}))
    assert [(row.name, row.members) for row in policy.host_group_rows] == [("p1", ("h1",))]
    assert [partition_of(policy.by_name[name], policy.host_partitions) for name in "ab"] == [one, None]


@pytest.mark.parametrize(
    ("hosts", "queue", "serves", "holds"),
    [
        (Names(False, frozenset({"h1"})), Names(False, frozenset({"h1"})), True, True),
        (Names(False, frozenset({"h1"})), Names(False, frozenset({"h1", "h2"})), True, False),
        (Names(False, frozenset({"h1"})), Names(True, frozenset({"h1"})), False, False),
        (Names(False, frozenset({"h1"})), Names(), True, False),
        (Names(True, frozenset({"h1"})), Names(False, frozenset({"h2"})), True, True),
        (Names(True, frozenset({"h1"})), Names(), True, False),
        (Names(), Names(True, frozenset({"h1"})), True, True),
    ],
)
def test_which_queues_use_its_hosts(tmp_path: Path, hosts: Names, queue: Names, serves: bool, holds: bool) -> None:
    """Lists of hosts, and all hosts but some."""
    one = policy_of(tmp_path, {"lsb.hosts": HOSTS}).host_partitions[0]
    object.__setattr__(one, "hosts", hosts)
    assert (one.serves(Queue("q", hosts=queue)), one.holds(Queue("q", hosts=queue))) == (serves, holds)


@pytest.mark.parametrize(
    ("hosts", "queue", "sentence"),
    [
        (HOSTS, "FAIRSHARE = USER_SHARES[[ann,1]]",
         "lsb.hosts:3: HostPartition p1: queue a uses its hosts and has FAIRSHARE; there can be only one of the two"),
        (HOSTS, "ROUND_ROBIN_POLICY = Y", "lsb.hosts:3: HostPartition p1: queue a uses its hosts and has ROUND_ROBIN"),
        (HOSTS, "APS_PRIORITY = WEIGHT[[PROC,1]]", "lsb.hosts:3: HostPartition p1: queue a uses its hosts and has APS"),
        (HOSTS, "HOSTS = h1 h2", "lsb.hosts:3: HostPartition p1: queue a also uses other hosts; the shares"),
        (HOSTS + SECTION.format("p2", "h2", "[default,1]"), "HOSTS = h1 h2",
         "lsb.hosts:8: HostPartition p2: queue a uses hosts of p1, too, whose shares alone count for its jobs"),
        (SECTION.format("p1", "h1", "ann"), "NICE = 1", "lsb.hosts:4: USER_SHARES = ann: expected [user or group, "),
        (SECTION.format("p1", "h1", ""), "NICE = 1", "HostPartition: USER_SHARES is missing"),
        (HOSTS + HOSTS, "NICE = 1", "lsb.hosts:7: p1: there is a host partition of this name already"),
        ("Begin HostGroup\nGROUP_NAME GROUP_MEMBER\np1 (h2)\nEnd HostGroup\n" + HOSTS, "NICE = 1",
         "lsb.hosts:6: HPART_NAME = p1: there is a host group of this name already"),
    ],
)  # fmt: skip
def test_what_is_told(tmp_path: Path, hosts: str, queue: str, sentence: str) -> None:
    """lsf.md 5.2: it excludes queue fairshare on these hosts; a queue should use hosts of one partition only."""
    text = f"Begin Queue\nQUEUE_NAME = a\n{queue}\nEnd Queue\n"
    text = text if "HOSTS" in queue else text.replace("\nEnd", "\nHOSTS = h1\nEnd")
    files = {"lsb.hosts": hosts, "lsb.queues": text}
    assert sentence in "\n".join(said(loaded(tmp_path, files)))
