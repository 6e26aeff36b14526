"""Hostile callers of the local socket, and other callers at the same time."""

import contextlib
import os
import resource
import socket
import subprocess
from collections.abc import Iterator

import pytest

from lavactl.wire.connection import CallError, Connection
from protos import frames, jobs_pb2
from tests.acceptance.personal import Cluster, wait_for

# Submits with a given request id and prints the number of the job, or the refusal.
SUBMIT = """\
import os, sys
from lavactl.wire.connection import Connection
from protos import frames, jobs_pb2
spec = jobs_pb2.JobSpec(command="true", hold=True, cwd="/", roles=[{}])
item = jobs_pb2.SubmitItem(request_id=bytes.fromhex(sys.argv[1]), spec=spec, retry=len(sys.argv) > 2)
batch = jobs_pb2.SubmitBatch(items=[item]).SerializeToString()
for answer in Connection(os.environ["LAVA_SOCKET"]).answers("/lava.v1.JobService/Submit", batch, 60.0):
    for result in jobs_pb2.SubmitReplies.FromString(answer).results:
        print(result.job, result.error)
"""
CHURN = """\
import os, socket, time
end = time.monotonic() + 4
while time.monotonic() < end:
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(os.environ["LAVA_SOCKET"])
    except OSError:
        time.sleep(0.001)
"""
WATCH = "/lava.v1.JobService/Watch"
CHURNERS = 4
DESCRIPTORS_MAX = 1500  # the agent's own, one user's connections, and a few in transit


def login_agent() -> str:
    """Daemon that serves the commands of this machine."""
    return "agent-" + socket.gethostname().partition(".")[0]


def descriptors(pid: int) -> int:
    """Number of open files of the process."""
    return len(os.listdir(f"/proc/{pid}/fd"))


@pytest.fixture
def churners(cluster: Cluster, account: str) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Four processes of an ordinary user, each of which connects and closes as fast as it can."""
    attacker = cluster.as_seen_by(account)
    python = str(attacker._commands / "python")
    made = [
        subprocess.Popen([*attacker._become, python, "-S", "-c", CHURN], env=attacker.environment)
        for _ in range(CHURNERS)
    ]
    yield made
    for one in made:
        one.wait(60)


def test_connecting_and_closing_in_a_loop_takes_no_descriptors(
    cluster: Cluster, other_account: str, churners: list["subprocess.Popen[bytes]"]
) -> None:
    """During such loops of four processes the agent's descriptors stay few and another user's commands work."""
    agent = cluster.pid(login_agent())
    bystander = cluster.as_seen_by(other_account)
    logged, most, served = len(cluster.log(login_agent())), 0, 0
    while any(one.poll() is None for one in churners):
        most = max(most, descriptors(agent))
        served += bystander.run("bjobs").returncode == 0
    assert most < DESCRIPTORS_MAX
    assert served
    assert cluster.pid(login_agent()) == agent
    assert cluster.is_running(login_agent())
    assert "Traceback" not in cluster.log(login_agent())[logged:]


def test_an_agent_without_descriptors_goes_on_when_it_has_some_again(cluster: Cluster) -> None:
    """Neither the socket nor a sensor ends it."""
    agent = cluster.pid(login_agent())
    logged = len(cluster.log(login_agent()))
    before = resource.prlimit(agent, resource.RLIMIT_NOFILE)
    resource.prlimit(agent, resource.RLIMIT_NOFILE, (descriptors(agent), before[1]))
    try:
        with contextlib.ExitStack() as waiting:
            for _ in range(20):  # more than the few numbers below the limit that may be free
                waiting.enter_context(socket.socket(socket.AF_UNIX)).connect(cluster.environment["LAVA_SOCKET"])
            wait_for(
                lambda: (
                    "Too many open files" in cluster.log(login_agent())[logged:]
                    and "/proc/stat" in cluster.log(login_agent())[logged:]
                ),
                60,
                "the sensor to fail",
            )
    finally:
        if cluster.is_running(login_agent()):
            resource.prlimit(agent, resource.RLIMIT_NOFILE, before)
    assert cluster.run("bjobs").returncode == 0
    assert cluster.pid(login_agent()) == agent
    said = cluster.log(login_agent())[logged:]
    assert "event=accepting_paused" in said
    assert "must_stop" not in said
    assert "Traceback" not in said


def test_a_request_id_is_its_users_own(cluster: Cluster, account: str, other_account: str) -> None:
    """A user who submits with the id of another's submission gets a job of his own, and a retry gets it again."""
    request = os.urandom(16).hex()
    jobs = []
    for user in (account, other_account):
        seen = cluster.as_seen_by(user)
        first = seen.says("python", "-c", SUBMIT, request).split()
        assert seen.says("python", "-c", SUBMIT, request, "again").split() == first
        assert seen.says("bjobs", "-noheader", "-o", "user", first[0]) == user
        jobs.append(first[0])
    assert jobs[0] != jobs[1]
    cluster.run("bkill", *jobs)


def test_watched_jobs_of_a_user_are_bounded(cluster: Cluster, account: str) -> None:
    """Beyond the bound a call is refused with a sentence; other users' waits are served as before."""
    with contextlib.closing(dialled(cluster)) as connection:
        jobs = submitted(connection, 2100)
        request = jobs_pb2.WatchRequest(refs=[{"job": job} for job in jobs]).SerializeToString()
        calls = [connection.start(WATCH, request) for _ in range(9)]
        told = set()
        while told != set(calls):
            call, kind, _ = connection.receive(60.0)
            assert kind == frames.MESSAGE
            told.add(call)
        with contextlib.closing(dialled(cluster)) as another, pytest.raises(CallError, match="the limit is 20000"):
            next(another.answers(WATCH, request, 60.0))
        assert cluster.run("bsub", "-K", "exit 3").returncode == 3
        assert cluster.as_seen_by(account).run("bsub", "-K", "-o", "/dev/null", "exit 4").returncode == 4
    cluster.run("bkill", *map(str, jobs))


def dialled(cluster: Cluster) -> Connection:
    """A connection of this process."""
    return Connection(cluster.environment["LAVA_SOCKET"])


def submitted(connection: Connection, count: int) -> list[int]:
    """Submit this number of held jobs."""
    spec = jobs_pb2.JobSpec(command="true", hold=True, cwd="/", roles=[{}])
    jobs: list[int] = []
    while len(jobs) < count:
        items = [jobs_pb2.SubmitItem(request_id=os.urandom(16), spec=spec) for _ in range(min(700, count - len(jobs)))]
        batch = jobs_pb2.SubmitBatch(items=items).SerializeToString()
        for answer in connection.answers("/lava.v1.JobService/Submit", batch, 60.0):
            jobs += [result.job for result in jobs_pb2.SubmitReplies.FromString(answer).results]
    return jobs
