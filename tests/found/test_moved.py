"""Migration of a cluster to PostgreSQL, and a backup taken under load."""

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for
from tests.fakes.postgres import PostgresServer
from tests.found.test_restored import _adopt, _lavactl, _popen_up, _stop

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

JOBS = int(os.environ.get("LAVA_MOVED_JOBS", "200"))  # the full size is 100000, with 50 running
RUNNING = int(os.environ.get("LAVA_MOVED_RUNNING", "4"))
SUBMIT = """
import os, sys
from lavactl.wire import messages
from lavactl.commands import bsub
from lavactl.io import Io
from lavactl.submit.submission import read_submission
io = Io()
spec = read_submission(["-H", "-o", "/dev/null", "true"], io).spec
left = int(sys.argv[1])
while left:
    count, left = min(left, 100), max(left - 100, 0)
    items = [messages.SubmitItem(request_id=os.urandom(16), spec=spec) for _ in range(count)]
    batch = messages.SubmitBatch(items=items).SerializeToString()
    for payload in io.client()._stream("/lava.v1.JobService/Submit", batch):
        for result in messages.SubmitReplies.FromString(payload).results:
            print(result.job or result.error, flush=True)
"""


def _submitting(cluster: Cluster, count: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", SUBMIT, str(count)]
    return subprocess.Popen(command, env=cluster.environment, stdout=subprocess.PIPE, text=True)


def _numbers(process: "subprocess.Popen[str]") -> list[int]:
    out, _ = process.communicate(timeout=1800)
    words = out.split()
    assert all(word.isdigit() for word in words), out[-300:]
    return [int(word) for word in words]


def test_a_backup_could_not_be_taken_while_lavad_ran(tmp_path: Path) -> None:
    """Under load, of one moment, its owner's alone, never over a file; to restore it is refused while lavad runs."""
    backup = tmp_path / "backup.db"
    with a_cluster(tmp_path / "C", 1, 4) as cluster:
        submitting = [_submitting(cluster, 150) for _ in range(2)]
        done = _lavactl(cluster, "backup", str(backup))
        assert done.returncode == 0, done
        assert "next job" in done.stdout
        assert backup.stat().st_mode & 0o777 == 0o600
        assert "exists already" in _lavactl(cluster, "backup", str(backup)).stderr
        assert "Another lavad is using" in _lavactl(cluster, "restore", str(backup)).stderr
        printed = [number for one in submitting for number in _numbers(one)]
        printed.append(cluster.submit("-H", "true"))  # which the backup cannot have
        assert len(set(printed)) == 301
        (tmp_path / "text").write_text("no database")
        _stop(cluster)
        assert "is no backup of lava" in _lavactl(cluster, "restore", str(tmp_path / "text")).stderr
        done = _lavactl(cluster, "restore", str(backup))
        assert done.returncode == 0, done
        assert list((cluster.directory / "state").glob("lava.db.before-restore-*"))
        starting = _popen_up(cluster)
        wait_for(lambda: "problem=adoption" in cluster.log("lavad"), 60, "lavad to notice")
        began = time.monotonic()
        _adopt(cluster)
        new = cluster.submit("-o", "/dev/null", "true")
        print(f"a job was taken {time.monotonic() - began:.1f} s after the command began")
        assert starting.wait(60) == 0
        assert new > max(printed)
        cluster.becomes(new, "DONE")
    assert not list(tmp_path.glob(".backup*"))


@pytest.mark.root
@pytest.mark.postgres
def test_moving_to_postgresql_made_another_cluster(tmp_path: Path) -> None:
    """Nothing to adopt: the same jobs and ids, running jobs continue; and back again."""
    with PostgresServer() as server, a_cluster(tmp_path / "C", 2, max(4, RUNNING // 2)) as cluster:
        submitting = [_submitting(cluster, JOBS // 4) for _ in range(4)]
        submitted = [number for one in submitting for number in _numbers(one)]
        go = tmp_path / "go"
        text = f"until [ -e {go} ]; do sleep 0.2; done; exit 3"
        running = [cluster.submit("-o", "/dev/null", text) for _ in range(RUNNING)]
        for job in running:
            cluster.becomes(job, "RUN", 60)
        source = f"sqlite:///{cluster.directory}/state/lava.db"
        refused = _lavactl(cluster, "migrate-database", source, server.url)
        assert refused.returncode == 255
        assert "Another lavad is using" in refused.stderr
        _stop(cluster)
        began = time.monotonic()
        done = _lavactl(cluster, "migrate-database", source, server.url)
        assert done.returncode == 0, done
        print(f"{JOBS} jobs, {RUNNING} running: {time.monotonic() - began:.1f} s; {done.stdout}")
        assert "not empty" in _lavactl(cluster, "migrate-database", source, server.url).stderr
        cluster.configure(LAVA_DATABASE=server.url)
        began = time.monotonic()
        cluster.up()
        print(f"up again after {time.monotonic() - began:.1f} s")
        assert {cluster.state(job) for job in running} == {"RUN"}
        assert cluster.submit("-H", "true") == max(running) + 1
        listed = cluster.run("bjobs", "-noheader", "-o", "jobid", "-p", timeout_s=300).stdout.split()
        assert set(submitted) <= {int(word) for word in listed}
        backup = tmp_path / "backup.db"
        assert _lavactl(cluster, "backup", str(backup)).returncode == 0
        with sqlite3.connect(backup) as connection:
            assert connection.execute("SELECT count(*) FROM specs").fetchone()[0] == JOBS + RUNNING + 1
        _stop(cluster)
        done = _lavactl(cluster, "restore", str(backup))
        assert done.returncode == 0, done
        go.touch()
        cluster.up()
        for job in running:
            cluster.becomes(job, "EXIT", 60)
            assert cluster.states(job)[0] == ("EXIT", 3)
