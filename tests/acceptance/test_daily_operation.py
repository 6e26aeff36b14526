"""docs/howto/daily-operation.md: every block of commands, in order, on one cluster with a job that runs through all.

A stand-in for systemctl stops and starts the personal cluster's master; the paths of a real site are those of the test.
"""

import re
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.personal import BIN, Cluster, a_cluster

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "daily-operation.md"
SYSTEMCTL = """#!/bin/sh
# stop, start, restart or disable lavad
case $1 in
disable) exit 0 ;;
stop | restart)
    pid=$(cat {directory}/lavad.pid) && kill "$pid" && while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done ;;
esac
case $1 in
start | restart) lavactl up --dir {directory} >/dev/null ;;
esac
exit 0
"""


def blocks() -> list[tuple[str, str]]:
    """Heading and commands of each block."""
    found, heading, inside, lines = [], "", False, list[str]()
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        if inside and line == "```":
            found.append((heading, "\n".join(lines)))
            inside = False
        elif inside:
            lines.append(line)
        elif line == "```sh":
            inside, lines = True, []
    return found


def of_the_test(commands: str, cluster: Cluster, place: Path, host: str) -> str:
    """The commands with this cluster's directory, host and place for backups."""
    paths = {"/var/backups": str(place), "etc/lava": str(cluster.directory).lstrip("/"), "n001": host}
    for name, own in paths.items():
        commands = commands.replace(name, own)
    return f"set -e\nexport PATH={place}/bin:{BIN}:$PATH LAVA_ENVDIR={cluster.directory}\n{commands}\n"


def test_every_block_of_the_page_works(tmp_path: Path) -> None:
    """No command fails, and the job that ran before the first block runs after the last."""
    place = tmp_path / "backups"
    (place / "bin").mkdir(parents=True)
    files = {"lsb.resources": "", "lsb.queues": "Begin Queue\nQUEUE_NAME = normal\nEnd Queue\n"}
    with a_cluster(tmp_path / "cluster", 2, 2, lsf_files=files) as cluster:
        (place / "bin" / "systemctl").write_text(SYSTEMCTL.format(directory=cluster.directory))
        (place / "bin" / "systemctl").chmod(0o755)
        job = cluster.submit("sleep 3000")
        cluster.becomes(job, "RUN")
        host = cluster.run("bjobs", "-noheader", "-o", "exec_host", str(job)).stdout.strip()
        done = set()
        for heading, commands in blocks():
            script = of_the_test(commands, cluster, place, host)
            done.add(heading)
            ended = subprocess.run(
                ["sh", "-c", script], env=cluster.environment, capture_output=True, text=True, timeout=300, check=False
            )
            assert ended.returncode == 0, f"{heading}: {script}\n{ended.stdout}\n{ended.stderr}"
        assert {"Drain a host", "Move the master", "The master's machine is lost", "Purge and compact"} <= done
        cluster.becomes(job, "RUN")
        assert re.search(r"sleep 3000", cluster.run("bhist", "-l", str(job)).stdout)
