"""Every kind of limit with real processes: no more jobs run than allowed, with slots free; the reason names it."""

import os
import resource
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

QUEUE = """
    Begin Queue
    QUEUE_NAME = normal
    PRIORITY   = 30
    {}
    End Queue

    Begin Queue
    QUEUE_NAME = other
    PRIORITY   = 30
    End Queue
"""
HOSTS = """
    Begin Host
    HOST_NAME   MXJ   JL/U
    default     4     {}
    End Host
"""
USERS = """
    Begin UserGroup
    GROUP_NAME   GROUP_MEMBER
    staff        (root)
    End UserGroup

    Begin User
    USER_NAME   MAX_JOBS   JL/P   MAX_PEND_JOBS   MAX_PEND_SLOTS
    {}
    End User
"""
LIMIT = """
    Begin Limit
    NAME = purse
    {}
    End Limit
"""
PARAMS = """
    Begin Parameters
    DEFAULT_QUEUE    = normal
    SUB_TRY_INTERVAL = 1
    {}
    End Parameters
"""
NO_LIMITS = {
    "lsb.queues": QUEUE.format(""),
    "lsb.hosts": HOSTS.format("()"),
    "lsb.users": USERS.format("default - - - -"),
    "lsb.resources": "",
    "lsb.params": PARAMS.format(""),
}
USER_FULL = "The user has reached his/her job slot limit"
ONE_A_HOST = f"{1.01 / len(os.sched_getaffinity(0)):.3f}"  # slots for each processor, so that it is one for a host


@dataclass(frozen=True)
class Case:
    """``most`` jobs submitted with these options run together; one more is pending with ``reason``; it starts when the
    first has ended. Jobs submitted with ``free`` are not under the limit.
    """

    name: str
    files: Mapping[str, str]
    most: int
    reason: str
    options: tuple[str, ...] = ()
    free: tuple[str, ...] = field(default=("-q", "other"))


def _queue(text: str) -> dict[str, str]:
    return {"lsb.queues": QUEUE.format(text)}


def _users(text: str) -> dict[str, str]:
    return {"lsb.users": USERS.format(text)}


def _limit(*lines: str) -> dict[str, str]:
    return {"lsb.resources": LIMIT.format("\n    ".join(lines))}


def _named(resource: str, value: int) -> str:
    return f"(Resource: {resource}, Limit Name: purse, Limit Value: {value})"


CASES = (
    Case("QJOB_LIMIT", _queue("QJOB_LIMIT = 2"), 2, "The queue has reached its job slot limit"),
    Case("UJOB_LIMIT", _queue("UJOB_LIMIT = 1"), 1, "User has reached the per-user job slot limit of the queue"),
    Case("HJOB_LIMIT", _queue("HJOB_LIMIT = 1"), 2, "Queue's per-host job slot limit reached: 2 hosts"),
    Case("PJOB_LIMIT", _queue(f"PJOB_LIMIT = {ONE_A_HOST}"), 2, "Queue's per-CPU job slot limit reached: 2 hosts"),
    Case("MXJ", {}, 4, "Not enough job slot(s): 1 host", ("-m", "lava1"), ("-m", "lava2")),
    Case(
        "JL/U", {"lsb.hosts": HOSTS.format("1")}, 1, "Host's per-user job slot limit reached: 1 host",
        ("-m", "lava1"), ("-m", "lava2"),
    ),
    Case("MAX_JOBS of a user", _users("root 2 - - -"), 2, USER_FULL, free=()),
    Case("MAX_JOBS of a group", _users("staff 2 - - -"), 2, "One of the user's groups has reached its job slot limit",
         free=()),
    Case("MAX_JOBS of each member", _users("staff@ 1 - - -"), 1, USER_FULL, free=()),
    Case("MAX_JOBS by default", _users("default 1 - - -"), 1, USER_FULL, free=()),
    Case("JL/P", _users(f"root - {ONE_A_HOST} - -"), 2, "User's per-CPU job slot limit reached: 2 hosts", free=()),
    Case("Limit of projects", _limit("PROJECTS = costly", "JOBS = 1"), 1, _named("jobs", 1), ("-P", "costly"), ()),
    Case("Limit of each project", _limit("PER_PROJECT = all", "SLOTS = 2"), 2, _named("slots", 2), ("-P", "p"), ()),
    Case("Limit of hosts", _limit("HOSTS = lava1", "SLOTS = 2"), 2, _named("slots", 2), ("-m", "lava1"),
         ("-m", "lava2")),
    Case("Limit of each host", _limit("PER_HOST = all", "SLOTS = 1"), 2, _named("slots", 1), free=()),
    Case("Limit of each processor", _limit("PER_HOST = all", f"SLOTS_PER_PROCESSOR = {ONE_A_HOST}"), 2,
         "Limit Name: purse", free=()),
    Case("Limit of a user in a queue", _limit("PER_USER = all", "QUEUES = normal", "JOBS = 2"), 2, _named("jobs", 2)),
    Case("Limit of memory", _limit("QUEUES = normal", "MEM = 30 MB"), 3, _named("mem", 30), ("-R", "rusage[mem=10]")),
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster(open_directory: Path, public_commands: Path) -> Iterator[Cluster]:
    """Two hosts of four slots."""
    with a_cluster(open_directory / "L", 2, 4, commands=public_commands, lsf_files=NO_LIMITS) as made:
        yield made


@pytest.fixture(autouse=True)
def _nothing_left(cluster: Cluster) -> Iterator[None]:
    yield
    cluster.clear()
    cluster.write_lsf_files(NO_LIMITS)


def _running(cluster: Cluster, jobs: list[int]) -> int:
    said = cluster.run("bjobs", "-noheader", "-o", "stat", *map(str, jobs)).stdout
    return said.split().count("RUN")


def _waits_for(cluster: Cluster, job: int, reason: str) -> None:
    wait_for(lambda: reason in cluster.run("bjobs", "-p", str(job)).stdout, 60, reason)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_limit_holds_and_says_so(cluster: Cluster, case: Case) -> None:
    """No more jobs run than it allows, with slots free; when one ends the next one starts."""
    cluster.reconfigure({**NO_LIMITS, **case.files})
    jobs = [cluster.submit(*case.options, "sleep 300") for _ in range(case.most + 1)]
    last = jobs[-1]
    wait_for(lambda: _running(cluster, jobs) == case.most, 60, f"{case.most} jobs to run")
    _waits_for(cluster, last, case.reason)
    assert cluster.state(last) == "PEND"
    if case.free:
        cluster.becomes(cluster.submit(*case.free, "sleep 300"), "RUN")
    cluster.run("bkill", str(jobs[0]))
    cluster.becomes(last, "RUN")


def test_limits_of_all_processes_of_a_job(cluster: Cluster) -> None:
    """PROCESSLIMIT bounds -p and holds by default; -ul passes the shell's; bjobs -l shows all, and TERM_."""
    cluster.reconfigure({**NO_LIMITS, **_queue("PROCESSLIMIT = 3 50")})
    refused = cluster.run("bsub", "-p", "51", "true")
    assert (refused.returncode, "PROCESSLIMIT: Cannot exceed queue's hard limit(s)" in refused.stderr) == (255, True)
    many = "for one in 1 2 3; do sleep 300 & done; wait"
    by_default, own = cluster.submit(many), cluster.submit("-p", "20", "-v", "1G", "-T", "40", many)
    cluster.becomes(by_default, "EXIT")
    wait_for(lambda: "TERM_PROCESSLIMIT" in cluster.says("bjobs", "-l", str(by_default)), 60, "the reason")
    cluster.becomes(own, "RUN")
    shown = cluster.says("bjobs", "-l", str(own))
    assert " SWAPLIMIT\n 1048576 K\n\n PROCESSLIMIT\n 20\n\n THREADLIMIT\n 40\n" in shown
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 40, before[1]))  # of this process, as of a shell
    try:
        shell = cluster.submit("-H", "-ul", "-p", "2", "true")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    shown = cluster.says("bjobs", "-l", str(shell))
    assert f" FILELIMIT\n {1 << 30} K\n" in shown
    assert " PROCESSLIMIT\n 2\n" in shown


def test_a_limit_counts_each_user_for_himself(cluster: Cluster, account: str) -> None:
    """PER_USER: one user's usage does not count against another's limit; blimits shows both."""
    cluster.reconfigure({**NO_LIMITS, **_limit("PER_USER = all", "SLOTS = 2")})
    other = cluster.as_seen_by(account)
    mine = [cluster.submit("sleep 300") for _ in range(3)]
    theirs = [other.submit("-n", "2", "sleep 300"), other.submit("sleep 300")]
    wait_for(lambda: _running(cluster, mine) == 2 and _running(cluster, theirs) == 1, 60, "two slots each")
    for job in (mine[-1], theirs[-1]):
        _waits_for(cluster, job, _named("slots", 2))
    used = [line.split() for line in cluster.run("blimits").stdout.splitlines() if line.startswith("purse")]
    assert sorted((row[1], "2/2" in row) for row in used) == sorted([("root", True), (account, True)])


def test_a_limit_holds_in_its_window_only(cluster: Cluster) -> None:
    """A limit with LAVA_WINDOW applies inside it only; the window is moved instead of the clock."""
    hour = time.localtime().tm_hour
    now, later = (f"LAVA_WINDOW = {(hour + add) % 24}:00-{(hour + add + 3) % 24}:00" for add in (-1 % 24, 6))
    cluster.reconfigure({**NO_LIMITS, **_limit("QUEUES = normal", "JOBS = 1", now)})
    jobs = [cluster.submit("sleep 300") for _ in range(2)]
    cluster.becomes(jobs[0], "RUN")
    _waits_for(cluster, jobs[1], _named("jobs", 1))
    assert _running(cluster, jobs) == 1
    cluster.reconfigure(_limit("QUEUES = normal", "JOBS = 1", later))
    cluster.becomes(jobs[1], "RUN")
    assert _running(cluster, jobs) == 2


BUDGET = """
    Begin Budget
    NAME       = purse
    SLOT_HOURS = {}
    PER_USER   = all
    End Budget
"""


def test_a_budget_holds_and_says_so(cluster: Cluster) -> None:
    """One job of two hours runs and is warned, the next one waits, also after a restart of the master.

    It starts when the budget is larger.
    """
    cluster.reconfigure({**NO_LIMITS, "lsb.resources": BUDGET.format("2.4")})
    first = cluster.submit("-W", "2:00", "sleep 300")
    cluster.becomes(first, "RUN")
    second = cluster.submit("-W", "1:00", "sleep 300")
    reason = "What is left of the budget is not enough for the job (Budget: purse root, slot hours: 2.4)"
    _waits_for(cluster, second, reason)
    line = cluster.run("bbudgets", "-c", "root").stdout.splitlines()[1].split()
    assert (line[:2], line[4], line[7]) == (["purse", "root"], "slot", "2.40")
    assert float(line[5]) + float(line[6]) == pytest.approx(2.0, abs=0.05)
    told = "of 2.4 slot hours are used or reserved"
    wait_for(lambda: told in " ".join(cluster.run("bjobs", "-l", str(first)).stdout.split()), 60, told)
    cluster.kill("lavad")
    cluster.up()
    _waits_for(cluster, second, reason)
    cluster.reconfigure({"lsb.resources": BUDGET.format("4")})
    cluster.becomes(second, "RUN")


PENDING = {
    "MAX_PEND_JOBS of the cluster": ({"lsb.params": PARAMS.format("MAX_PEND_JOBS = 2")}, "job"),
    "MAX_PEND_SLOTS of the cluster": ({"lsb.params": PARAMS.format("MAX_PEND_SLOTS = 2")}, "job slots"),
    "MAX_PEND_JOBS of a user": (_users("root - - 2 -"), "job"),
    "MAX_PEND_SLOTS of a group": (_users("staff - - - 2"), "job slots"),
}


@pytest.mark.parametrize("name", PENDING)
def test_too_much_to_wait_is_tried_again(cluster: Cluster, name: str) -> None:
    """Running jobs do not count; bsub reports the threshold, and submits as soon as fewer jobs are pending."""
    files, word = PENDING[name]
    cluster.reconfigure({**NO_LIMITS, **files})
    cluster.becomes(cluster.submit("sleep 300"), "RUN")
    held = [cluster.submit("-H", "sleep 300") for _ in range(2)]
    refused = cluster.with_environment(LSB_NTRIES="2").run("bsub", "-H", "true")
    assert f"Pending {word} threshold reached. Retrying in 1 seconds..." in refused.stderr
    assert "Job not submitted" in refused.stderr
    too_many = cluster.run("bsub", "-H", "-J", "sweep[1-3]", "true")
    assert (too_many.returncode, too_many.stdout) == (255, "")
    assert f"Pending {word} threshold is 2; the submission has 3. Job not submitted." in too_many.stderr
    cluster.run("bkill", str(held[0]))
    cluster.submit("-H", "true")
