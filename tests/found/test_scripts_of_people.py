"""Scripts and options as people have them, on a real cluster: shared/reference/outsiders/scripts-of-people.md."""

import os
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
