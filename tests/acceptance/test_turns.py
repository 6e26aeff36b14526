"""Scheduling order with real processes: jobs pending for the only host show it by the order of their starts."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

QUEUES = """
    Begin Queue
    QUEUE_NAME = normal
    PRIORITY   = 30
    {}
    End Queue

    Begin Queue
    QUEUE_NAME = other
    PRIORITY   = {}
    End Queue

    Begin Queue
    QUEUE_NAME = gate
    PRIORITY   = 90
    End Queue
"""
PARAMS = """
    Begin Parameters
    DEFAULT_QUEUE     = normal
    MAX_USER_PRIORITY = 100
    End Parameters
"""
USERS = """
    Begin UserGroup
    GROUP_NAME   GROUP_MEMBER   USER_SHARES
    {}
    End UserGroup
"""
NO_GROUPS = USERS.format("nobodys      (daemon)       ()")


def _files(queue: str = "", other: int = 30, groups: str = NO_GROUPS) -> dict[str, str]:
    return {"lsb.queues": QUEUES.format(queue, other), "lsb.users": groups}


@pytest.fixture(scope="module")
def cluster(open_directory: Path, public_commands: Path) -> Iterator[Cluster]:
    """One host of three slots."""
    files = {"lsb.params": PARAMS, **_files()}
    with a_cluster(open_directory / "T", 1, 3, commands=public_commands, lsf_files=files) as made:
        yield made


@pytest.fixture(autouse=True)
def _nothing_left(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.clear()


def _full(cluster: Cluster) -> int:
    """A job that has all slots."""
    gate = cluster.submit("-q", "gate", "-n", "3", "sleep 300")
    cluster.becomes(gate, "RUN")
    return gate


@dataclass(frozen=True)
class Case:
    """Jobs submitted in the order A, B, C with these options; commands typed then, a ``{A}`` standing for A's number;
    and the order in which they start one after the other. Each takes the whole host.
    """

    name: str
    files: dict[str, str]
    jobs: tuple[tuple[str, ...], ...]
    order: str
    typed: tuple[tuple[str, ...], ...] = ()


CASES = (
    Case("submission order", _files(), ((), (), ()), "ABC"),
    Case("queue priority", _files(other=40), ((), ("-q", "other"), ()), "BAC"),
    Case("user priority", _files(), (("-sp", "10"), ("-sp", "90"), ()), "BCA"),
    Case("btop", _files(), ((), (), ()), "CAB", (("btop", "{C}"),)),
    Case("bbot", _files(), ((), (), ()), "BCA", (("bbot", "{A}"),)),
    Case("btop to a place", _files(), ((), (), ()), "ACB", (("btop", "{C}", "2"),)),
    Case("bswitch", _files(other=40), ((), (), ()), "CAB", (("bswitch", "other", "{C}"),)),
    Case(
        "absolute priority",
        _files("APS_PRIORITY = WEIGHT[[JPRIORITY, 1]]"),
        (("-sp", "1"), ("-sp", "90"), ("-sp", "2")),
        "CAB",
        (("bmod", "-aps", "admin=90", "{A}"), ("bmod", "-aps", "system=1", "{C}")),
    ),
    Case("slowdown", _files("LAVA_JOB_ORDER = slowdown"), (("-W", "600"), ("-W", "6000"), ("-W", "1")), "CAB"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_jobs_start_in_this_order(cluster: Cluster, tmp_path: Path, case: Case) -> None:
    """The order in which they write their names."""
    cluster.reconfigure(case.files)
    gate, told = _full(cluster), tmp_path / "told"
    jobs = {
        name: cluster.submit("-n", "3", "-o", "/dev/null", *options, f"echo {name} >> {told}")
        for name, options in zip("ABC", case.jobs, strict=True)
    }
    for words in case.typed:
        done = cluster.run(*(word.format(**jobs) for word in words))
        assert done.returncode == 0, done
    cluster.run("bkill", str(gate))
    for job in jobs.values():
        cluster.becomes(job, "DONE")
    assert "".join(told.read_text().split()) == case.order


def _starts(cluster: Cluster, jobs: dict[str, int], wanted: set[str]) -> None:
    """As many jobs as are wanted run, and it is these."""
    rows = {name: str(job) for name, job in jobs.items()}

    def running() -> set[str]:
        said = cluster.run("bjobs", "-noheader", "-o", "jobid stat", *rows.values()).stdout
        states = dict(line.split() for line in said.splitlines())
        return {name for name, job in rows.items() if states[job] == "RUN"}

    wait_for(lambda: len(running()) == len(wanted), 60, f"{wanted} to run")
    assert running() == wanted


def test_users_take_turns_in_a_round_robin_queue(cluster: Cluster, account: str) -> None:
    """The first user with three jobs gets two of three slots; the other user's only job does not wait for the third."""
    cluster.reconfigure(_files("ROUND_ROBIN_POLICY = Y"))
    gate, other = _full(cluster), cluster.as_seen_by(account)
    jobs = {f"mine{n}": cluster.submit("sleep 300") for n in range(3)}
    jobs["theirs"] = other.submit("sleep 300")
    cluster.run("bkill", str(gate))
    _starts(cluster, jobs, {"mine0", "mine1", "theirs"})


def test_a_host_partition_is_shared_across_queues(cluster: Cluster, account: str) -> None:
    """A user's jobs in one queue count against his in another one that uses the same hosts; bhpart shows both users."""
    shared = "Begin HostPartition\nHPART_NAME = p1\nHOSTS = all\nUSER_SHARES = [default,1]\nEnd HostPartition\n"
    cluster.reconfigure({**_files(), "lsb.hosts": shared})
    try:
        gate, other = _full(cluster), cluster.as_seen_by(account)
        jobs = {f"mine{n}": cluster.submit("-q", "normal", "sleep 300") for n in range(2)}
        jobs["third"] = cluster.submit("-q", "other", "sleep 300")
        jobs["theirs"] = other.submit("-q", "other", "sleep 300")
        cluster.run("bkill", str(gate))
        _starts(cluster, jobs, {"mine0", "mine1", "theirs"})
        told = cluster.run("bhpart", "p1").stdout
        assert told.startswith("HOST_PARTITION_NAME: p1\nHOSTS: all hosts\n\nSHARE_INFO_FOR: p1/\n")
        assert account in told
    finally:
        cluster.reconfigure({**_files(), "lsb.hosts": ""})


def test_shares_count_across_queues(cluster: Cluster, account: str) -> None:
    """A user's usage in one queue counts in the other queue that shares its fairshare tree."""
    cluster.reconfigure(_files("FAIRSHARE = USER_SHARES[[default,1]]\n    FAIRSHARE_QUEUES = other"))
    gate, other = _full(cluster), cluster.as_seen_by(account)
    jobs = {f"mine{n}": cluster.submit("-q", "normal", "sleep 300") for n in range(2)}
    jobs["more"] = cluster.submit("-q", "other", "sleep 300")
    jobs["theirs"] = other.submit("-q", "other", "sleep 300")
    cluster.run("bkill", str(gate))
    _starts(cluster, jobs, {"mine0", "mine1", "theirs"})


def test_a_groups_share_is_divided_among_its_members(cluster: Cluster, account: str) -> None:
    """The group has two thirds, and within it one user has nine times the other's shares: of three slots two are the
    group's, both for that user, and the third is for the user outside the group, though the last to submit.
    """
    groups = USERS.format(f"pair         (root {account})  ([root,1] [{account},9])")
    cluster.reconfigure(_files("FAIRSHARE = USER_SHARES[[pair,2] [daemon,1]]", groups=groups))
    gate = _full(cluster)
    other, alone = cluster.as_seen_by(account), cluster.as_seen_by("daemon")
    jobs = {f"root{n}": cluster.submit("-o", "/dev/null", "sleep 300") for n in range(2)}
    jobs |= {f"second{n}": other.submit("-o", "/dev/null", "sleep 300") for n in range(2)}
    jobs["alone"] = alone.submit("-cwd", "/", "-o", "/dev/null", "sleep 300")
    cluster.run("bkill", str(gate))
    _starts(cluster, jobs, {"second0", "second1", "alone"})
    tree = [line.split()[:2] for line in cluster.run("bqueues", "-r", "normal").stdout.splitlines()]
    assert ["pair", "2"] in tree
    assert [account, "9"] in tree


def test_what_was_used_counts_after_a_restart_of_the_master(cluster: Cluster, account: str) -> None:
    """One user's job has run and ended; the next master counts it, and starts the other user's later job first."""
    cluster.reconfigure(_files("FAIRSHARE = USER_SHARES[[default,1]]\n    ENABLE_HIST_RUN_TIME = Y"))
    cluster.becomes(cluster.submit("sleep 1"), "DONE")
    cluster.kill("lavad")
    wait_for(lambda: not cluster.is_running("lavad"), 60, "the master to die")
    cluster.up()
    gate, other = _full(cluster), cluster.as_seen_by(account)
    jobs = {"mine": cluster.submit("-n", "3", "sleep 300"), "theirs": other.submit("-n", "3", "sleep 300")}
    cluster.run("bkill", str(gate))
    _starts(cluster, jobs, {"theirs"})
