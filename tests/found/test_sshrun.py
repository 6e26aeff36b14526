"""Launchers that start processes by ssh, in a job: Horovod's command line of the page on elastic jobs.

Horovod itself takes a quarter of an hour to build: a fake launcher does the same with the environment and with ssh, in
the same words.
"""

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "elastic-jobs.md"
HOROVODRUN = """\
#!/usr/bin/env python3
import os, socket, subprocess, sys
if "LSB_JOBID" in os.environ:
    sys.exit("TypeError: 'NoneType' object is not iterable")  # it takes the cluster for one of IBM's
script = sys.argv[sys.argv.index("--host-discovery-script") + 1]
command = sys.argv[sys.argv.index("--host-discovery-script") + 2:]
hosts = [line.split(":")[0] for line in subprocess.check_output([script], text=True).split()]
workers = []
for rank, host in enumerate(hosts):
    text = f"cd {os.getcwd()} > /dev/null 2>&1 ; env HOROVOD_HOSTNAME={host} HOROVOD_RANK={rank} {' '.join(command)}"
    words = ["ssh", "-o", "PasswordAuthentication=no", "-o", "StrictHostKeyChecking=no", host, text]
    workers.append(subprocess.Popen(["sh", "-c", text] if host == socket.gethostname() else words))
sys.exit(max(worker.wait() for worker in workers))
"""
TRAIN = 'import os, socket\nprint("rank", os.environ["HOROVOD_RANK"], "on", socket.gethostname())\n'


@pytest.mark.acceptance
@pytest.mark.slow
def test_the_line_for_horovod_works_as_printed(cluster: Cluster, open_directory: Path) -> None:
    """It failed in every job: LSB_JOBID misled it, and there was no ssh to the other hosts."""
    (line,) = re.findall(r"^lavactl sshrun horovodrun .*$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    place = open_directory / "horovod"
    place.mkdir()
    (place / "horovodrun").write_text(HOROVODRUN)
    (place / "horovodrun").chmod(0o755)
    (place / "python").symlink_to(sys.executable)
    (place / "train.py").write_text(TRAIN)
    job_line = f"cd {shlex.quote(str(place))}; PATH=$PWD:$PATH; {line}; echo code $?"
    words = ("-K", "-n", "2", "-ar", "-R", "span[ptile=1]", "-o", str(place / "out"), job_line)
    done = cluster.run("bsub", *words, timeout_s=90)
    said = (place / "out").read_text()
    assert done.returncode == 0, (done, said)
    ranks = sorted(re.findall(r"^rank (\d) on (lava\d)", said, re.MULTILINE))
    assert [host for _, host in ranks] == ["lava1", "lava2"], said
    assert "code 0" in said


@pytest.mark.acceptance
@pytest.mark.slow
def test_its_exit_code_is_the_commands(cluster: Cluster) -> None:
    """Also of one ended by a signal; outside a job it refuses."""
    assert cluster.run("bsub", "-K", "-o", "/dev/null", "lavactl sshrun sh -c 'exit 7'").returncode == 7
    assert cluster.run("bsub", "-K", "-o", "/dev/null", "lavactl sshrun sh -c 'kill $$'").returncode == 143
    outside = cluster.run("lavactl", "sshrun", "true")
    assert outside.returncode == 255
    assert "LSB_JOBID is not set" in outside.stderr
