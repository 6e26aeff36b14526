"""Settings that must be the same on every host: the unit of limits, and the file that tools look for."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, wait_for

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="commands as another user"),
]


def as_on_a_host(cluster: Cluster, host: str, user: str) -> Cluster:
    """The same cluster for commands that know the agent's socket and none of the master's files."""
    seen = cluster.with_environment()
    socket = Path(cluster.environment["LAVA_SOCKET"]).with_name(f"{host}.sock")
    kept = {name: cluster.environment[name] for name in ("PATH", "HOME") if name in cluster.environment}
    seen.environment = {**kept, "LAVA_SOCKET": str(socket)}
    return seen.as_seen_by(user)


def test_a_memory_limit_without_a_unit_means_the_same_on_every_host(cluster: Cluster, account: str) -> None:
    """``lsf.conf`` with its MB is on the master only: -M 500 was 500 KB elsewhere, and the job was killed."""
    host = as_on_a_host(cluster, "lava1", account)
    job = host.submit("-M", "500", "-o", "/dev/null", "sleep", "100")
    assert host.says("bjobs", "-noheader", "-o", "memlimit", str(job)).split() == ["500", "Mbytes"]
    cluster.run("bkill", str(job))


def test_a_new_unit_reaches_every_host_by_reconfig(cluster: Cluster, account: str) -> None:
    """Without a restart of the agents; a file of the host's own does not count."""
    host, path = as_on_a_host(cluster, "lava2", account), cluster.directory / "lsf.conf"
    before = path.read_text()
    try:
        cluster.reconfigure({"lsf.conf": before.replace("=MB", "=GB")})
        copy = Path(host.environment["LAVA_SOCKET"]).with_suffix(".lsf")
        wait_for(lambda: "LSF_UNIT_FOR_LIMITS=GB" in (copy / "lsf.conf").read_text(), 60, "the agent to be told")
        own = host.with_environment(LSF_ENVDIR=str(copy.parent))
        job = own.submit("-H", "-M", "2", "-o", "/dev/null", "true")
        assert own.says("bjobs", "-noheader", "-o", "memlimit", str(job)).split() == ["2", "Gbytes"]
        cluster.run("bkill", str(job))
    finally:
        cluster.reconfigure({"lsf.conf": before})


def test_the_file_that_tools_read_is_readable_by_every_user_of_every_host(cluster: Cluster, account: str) -> None:
    """``badmin showconf mbd`` named a directory that was on the master only, and closed to users there."""
    written = cluster.directory / "lsf"
    assert stat.S_IMODE(written.stat().st_mode) == 0o755
    written.chmod(0o700)
    try:
        user = as_on_a_host(cluster, "lava1", account)
        said = dict(line.strip().split(" = ") for line in user.says("badmin", "showconf", "mbd").splitlines()[1:])
        script = 'cat "$1"/lsbatch/*/configdir/lsb.params'
        words = ["runuser", "-u", account, "--", "sh", "-c", script, "sh", said["LSF_CONFDIR"]]
        found = subprocess.run(words, capture_output=True, text=True, check=False)
        assert "DEFAULT_QUEUE = normal" in found.stdout, found
    finally:
        written.chmod(0o755)
