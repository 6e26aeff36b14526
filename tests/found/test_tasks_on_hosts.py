"""Tasks of blaunch on other hosts: inheritance from their caller, and a network cut during their run."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

CALLER = """#!/bin/bash
umask 027
module() { echo "module $*"; }
export -f module
for host in $(echo $LSB_HOSTS); do blaunch $host 'umask; module load gcc'; lavarun -n 1 sh -c umask; done
"""
# Longer than the agents take to notice (8 s) and than the master takes to call a host lost (6 s here).
CUT_S = 10.0


def run(cluster: Cluster, directory: Path, script: str) -> str:
    """The output of a job over both hosts, run to its end."""
    path = directory / "job.sh"
    path.write_text(script)
    path.chmod(0o755)
    job = cluster.submit("-n", "2", "-R", "span[ptile=1]", "-o", "/dev/null", f"{path} >{directory}/out 2>&1")
    cluster.becomes(job, "DONE", 60)
    return (directory / "out").read_text()


def test_blaunch_keeps_the_callers_umask_and_exported_functions(cluster: Cluster, tmp_path: Path) -> None:
    """027 became 022 on the other hosts, and `module` was not there."""
    assert run(cluster, tmp_path, CALLER).split("\n") == ["0027", "module load gcc", "0027"] * 2 + [""]


def test_blaunch_goes_on_when_the_network_is_back(cluster: Cluster, tmp_path: Path) -> None:
    """The host was cut off for longer than it takes to be called lost: the job is UNKWN, then runs on, line by line."""
    if shutil.which("ip") is None or shutil.which("nsenter") is None:
        pytest.skip("no programs ip and nsenter to cut a host's network with")
    first, second = cluster.hosts()
    out = tmp_path / "out"
    lines = f"i=0; while [ ! -e {tmp_path}/stop ]; do i=$((i + 1)); echo $i; sleep 0.1; done; exit 7"
    options = ("-n", "2", "-m", f"{first} {second}", "-R", "span[ptile=1]", "-o", "/dev/null")
    job = cluster.submit(*options, f"for h in $LSB_HOSTS; do :; done; blaunch $h '{lines}' >{out} 2>&1")
    wait_for(lambda: out.exists() and out.read_text().count("\n") > 3, 60, "the task to get going")
    other = cluster.run("bjobs", "-noheader", "-o", "exec_host", str(job)).stdout.split(":")[-1].strip()
    link = ["nsenter", "-t", str(cluster.pid(f"agent-{other}")), "-n", "ip", "link", "set", "eth0"]
    subprocess.run([*link, "down"], check=True)
    time.sleep(CUT_S)
    subprocess.run([*link, "up"], check=True)
    before = out.read_text().count("\n")
    wait_for(lambda: out.read_text().count("\n") > before + 100, 60, "its output to come again")
    (tmp_path / "stop").touch()
    wait_for(lambda: cluster.state(job) == "EXIT", 60, "the job to end")
    assert cluster.states(job)[0][1] == 7
    found = out.read_text().split()
    assert found == [str(number) for number in range(1, len(found) + 1)]
