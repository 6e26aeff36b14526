"""Scripts and options as people have them, on a real cluster: shared/reference/outsiders/scripts-of-people.md."""

import os
import pwd
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, wait_for

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="commands as another user"),
]


def test_programs_in_the_background_are_the_jobs(cluster: Cluster, account: str, open_directory: Path) -> None:
    """The job lasts until the last of them has written its part."""
    user = cluster.as_seen_by(account).at(open_directory)
    job = user.submit("-o", "/dev/null", "for i in 1 2 3; do (sleep 1; echo $i >part.$i) & done")
    user.becomes(job, "DONE")
    assert [(open_directory / f"part.{i}").read_text() for i in (1, 2, 3)] == ["1\n", "2\n", "3\n"]


def test_bytes_of_a_script_reach_its_job(cluster: Cluster, account: str, open_directory: Path) -> None:
    """A comment and a word in Latin-1, by bsub, with arguments and by bmod: what the job writes is byte for byte."""
    script, out = open_directory / "latin.sh", open_directory / "said"
    script.write_bytes(b"#!/bin/sh\n# d\xe9but\nprintf '%s\\n' \xe9t\xe9 > " + os.fsencode(out) + b"\n")
    user = cluster.as_seen_by(account).at(open_directory)
    for words in (("-Zs", str(script)), (os.fsdecode(b"printf '%s\\n' \xe9t\xe9 > " + os.fsencode(out)),)):
        out.unlink(missing_ok=True)
        user.becomes(user.submit("-o", "/dev/null", *words), "DONE")
        assert out.read_bytes() == b"\xe9t\xe9\n"


@pytest.fixture
def uid() -> Iterator[int]:
    """A number of users of the test's own, which are gone after it."""
    number = next(one for one in range(59000, 60000) if not any(entry.pw_uid == one for entry in pwd.getpwall()))
    yield number
    for entry in [entry for entry in pwd.getpwall() if entry.pw_uid == number]:
        subprocess.run(["userdel", entry.pw_name], check=True, capture_output=True)


def test_a_freed_uid_is_its_new_users_and_a_deleted_user_starts_nothing(cluster: Cluster, uid: int) -> None:
    """Within a minute: the new user is seen by the new name, and the old one's waiting job is not started."""
    first, second = f"lavaf{secrets.token_hex(3)}", f"lavas{secrets.token_hex(3)}"
    subprocess.run(["useradd", "-u", str(uid), "-M", "-d", "/", "-s", "/bin/sh", first], check=True)
    old = cluster.as_seen_by(first).submit("-H", "-o", "/dev/null", "true")
    subprocess.run(["userdel", first], check=True, capture_output=True)
    subprocess.run(["useradd", "-u", str(uid), "-M", "-d", "/", "-s", "/bin/sh", second], check=True)
    new = cluster.as_seen_by(second).submit("-o", "/dev/null", "true")
    assert cluster.says("bjobs", "-noheader", "-a", "-o", "user", str(new)).strip() == second
    cluster.becomes(new, "DONE")
    cluster.run("bresume", str(old))
    told = f"The user is not known on the host (User: {first}): 2 hosts"
    wait_for(lambda: told in cluster.says("bjobs", "-l", str(old)), 60, "both hosts to refuse it")
    assert cluster.says("bjobs", "-noheader", "-o", "stat", str(old)).split() == ["PEND"]
    cluster.run("bkill", str(old))


def test_the_sites_unit_holds_for_what_is_reserved(cluster: Cluster) -> None:
    """With GB a job that reserves 1 has 1 GB, and one that wants 100,000 GB waits; limits and reservations agree."""
    path = cluster.directory / "lsf.conf"
    before = path.read_text()
    try:
        cluster.reconfigure({"lsf.conf": before.replace("=MB", "=GB")})
        large = cluster.submit("-M", "1", "-R", "rusage[mem=100000]", "-o", "/dev/null", "true")
        small = cluster.submit("-M", "1", "-R", "rusage[mem=0.25] select[maxmem>0.25]", "-o", "/dev/null", "true")
        cluster.becomes(small, "DONE")
        wait_for(lambda: "PEND" in cluster.says("bjobs", "-noheader", "-o", "stat", str(large)), 60, "it to wait")
        told = cluster.says("bjobs", "-l", str(large))
        assert "memory" in told.lower()
        cluster.run("bkill", str(large))
    finally:
        cluster.reconfigure({"lsf.conf": before})
