"""Rights of users over each other's jobs: administrators of queues and groups, and what is hidden from others."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster

QUEUES = """
    Begin Queue
    QUEUE_NAME = normal
    PRIORITY = 30
    End Queue
    Begin Queue
    QUEUE_NAME = night
    PRIORITY = 20
    ADMINISTRATORS = {}
    End Queue
"""
USERS = """
    Begin UserGroup
    GROUP_NAME GROUP_MEMBER GROUP_ADMIN
    chem       ({})         ({})
    End UserGroup
"""
PARAMS = """
    Begin Parameters
    DEFAULT_QUEUE = normal
    SECURE_JOB_INFO_LEVEL = {}
    End Parameters
"""


@pytest.fixture(scope="module")
def house(open_directory: Path, public_commands: Path, account: str, other_account: str) -> Iterator[Cluster]:
    """A cluster whose second user administers the queue night, and the group of the first user."""
    files = {
        "lsb.queues": QUEUES.format(other_account),
        "lsb.users": USERS.format(account, other_account),
        "lsb.params": PARAMS.format(0),
    }
    with a_cluster(open_directory / "U", 1, 4, commands=public_commands, lsf_files=files) as cluster:
        yield cluster


@pytest.mark.root
def test_queue_administrators_control_jobs_of_their_queue(house: Cluster, other_account: str) -> None:
    """A job of another user in the queue is stopped, resumed and ended, by its id and by the queue; others are not."""
    administrator = house.as_seen_by(other_account)
    own, foreign = (house.submit("-q", queue, "-o", "/dev/null", "sleep 600") for queue in ("night", "normal"))
    for job in (own, foreign):
        house.becomes(job, "RUN")
    assert administrator.run("bstop", str(own)).returncode == 0
    house.becomes(own, "USUSP")
    assert administrator.run("bresume", str(own)).returncode == 0
    house.becomes(own, "RUN")
    refused = administrator.run("bkill", str(foreign))
    assert refused.returncode != 0
    assert "User permission denied" in refused.stdout + refused.stderr
    assert administrator.run("bmod", "-Zs", "id", str(own)).returncode != 0
    assert administrator.run("bkill", "-q", "night", "-u", "all", "0").returncode == 0
    house.becomes(own, "EXIT")
    assert house.state(foreign) == "RUN"
    house.run("bkill", str(foreign))


@pytest.mark.root
def test_group_administrators_control_jobs_of_their_members(house: Cluster, account: str, other_account: str) -> None:
    """In any queue; a member does not control those of the administrator."""
    member, administrator = house.as_seen_by(account), house.as_seen_by(other_account)
    job = member.submit("-o", "/dev/null", "sleep 600")
    others = administrator.submit("-o", "/dev/null", "sleep 600")
    house.becomes(job, "RUN")
    assert administrator.run("bstop", str(job)).returncode == 0
    house.becomes(job, "USUSP")
    assert member.run("bresume", str(job)).returncode != 0
    assert administrator.run("bkill", str(job)).returncode == 0
    house.becomes(job, "EXIT")
    assert member.run("bkill", str(others)).returncode != 0
    administrator.run("bkill", str(others))


@pytest.mark.root
def test_hidden_jobs_are_hidden_by_every_list(house: Cluster, account: str, other_account: str) -> None:
    """SECURE_JOB_INFO_LEVEL = 4: neither name nor group of another user's job, nor how many there are."""
    user, other = house.as_seen_by(account), house.as_seen_by(other_account)
    group = f"/secret-{account}"
    job = user.submit("-H", "-J", "hiddenname", "-g", group, "-P", "hiddenproject", "-o", "/dev/null", "true")
    house.reconfigure({"lsb.params": PARAMS.format(4)})
    try:
        for words in LISTS:
            done = other.run(*words)
            shown = done.stdout + done.stderr
            assert not [word for word in ("hiddenname", group, "hiddenproject") if word in shown], (words, shown)
            assert account not in shown, (words, shown)
        named = other.run("bjgroup", "-s", group)
        assert account not in named.stdout
        counts = other.run("busers", account).stdout
        assert counts.splitlines()[-1].split()[3:5] in ([], ["0", "0"])
        assert group in user.says("bjgroup")
        assert user.state(job) == "PSUSP"
    finally:
        house.reconfigure({"lsb.params": PARAMS.format(0)})
        house.run("bkill", str(job))


LISTS = (
    ("bjgroup",), ("bjgroup", "-N"), ("busers", "all"), ("bjobs", "-u", "all"), ("bjobs", "-u", "all", "-a", "-l"),
    ("bjobs", "-sum", "-u", "all"), ("bhist", "-u", "all"), ("bacct", "-u", "all"), ("blimits",), ("bqueues", "-l"),
    ("bhosts", "-l"), ("bapp",), ("bresources",), ("squeue",), ("sacct", "-a"),
)  # fmt: skip
