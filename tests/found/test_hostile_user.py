"""One user with every bounded call at once: everything stays answered for another user."""

import json
import socket
import subprocess
from collections.abc import Iterator

import pytest

from benchmarks.hostile import calls, end
from tests.acceptance.personal import Cluster
from tests.found.test_hostile_texts import JOB, submitted


@pytest.fixture
def siege(cluster: Cluster, account: str) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Processes of one user, each of which makes one kind of call again and again."""
    attacker = cluster.as_seen_by(account)
    running = [
        subprocess.Popen(
            [*attacker._become, "sh", "-c", text],
            env=attacker.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for text in calls(str(attacker._commands))
    ]
    yield running
    for one in running:
        end(one)


@pytest.mark.root
def test_another_user_is_answered(cluster: Cluster, other_account: str, siege: list["subprocess.Popen[bytes]"]) -> None:
    """Submissions, lists and jobs work, and no process that serves users has ended or logged a traceback."""
    login = "agent-" + socket.gethostname().partition(".")[0]
    daemons = {name: cluster.pid(name) for name in ("lavad", login)}
    logged = {name: len(cluster.log(name)) for name in daemons}
    user = cluster.as_seen_by(other_account)
    jobs = [user.submit("-o", "/dev/null", "true") for _ in range(5)]
    assert str(jobs[0]) in user.says("bjobs", "-a", "-noheader", "-o", "jobid")
    for job in jobs:
        user.becomes(job, "DONE", limit_s=120)
    ((raw, error),) = submitted(user, [{**JOB}])
    assert (error, raw > jobs[-1]) == ("", True)
    assert json.loads(user.says("bjobs", "-a", "-json", "-o", "jobid stat"))["JOBS"] >= 5
    assert {name: cluster.pid(name) for name in daemons} == daemons
    for name, begin in logged.items():
        assert "Traceback" not in cluster.log(name)[begin:]
