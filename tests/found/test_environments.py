"""Rows left by submissions: none of a refused one, and no environment that no job needs."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from lavactl.wire.connection import Connection
from protos import jobs_pb2
from tests.acceptance.personal import Cluster, a_cluster, wait_for

SUBMIT = "/lava.v1.JobService/Submit"
LARGE = 3_600_000
REFUSED = 20


@pytest.fixture(scope="module")
def sweeping(open_directory: Path, public_commands: Path) -> Iterator[Cluster]:
    """One host; ended jobs leave memory soon, and unneeded rows are removed often."""
    settings = {"LAVA_SWEEP_INTERVAL": "0.5", "LAVA_CLEAN_PERIOD": "1"}
    with a_cluster(open_directory / "E", 1, 4, commands=public_commands, **settings) as made:
        yield made


def submit(cluster: Cluster, environment: list[bytes], **spec: object) -> jobs_pb2.SubmitResult:
    """One submission with exactly this environment."""
    wanted = jobs_pb2.JobSpec(cwd="/tmp", roles=[{}], environment=environment, **spec)  # type: ignore[arg-type]
    item = jobs_pb2.SubmitItem(request_id=os.urandom(16), spec=wanted)
    batch = jobs_pb2.SubmitBatch(items=[item]).SerializeToString()
    with contextlib.closing(Connection(cluster.environment["LAVA_SOCKET"])) as connection:
        for answer in connection.answers(SUBMIT, batch, 60.0):
            return jobs_pb2.SubmitReplies.FromString(answer).results[0]
    raise AssertionError("no answer")


def database(cluster: Cluster) -> Path:
    """The master's database file."""
    return next(cluster.directory.rglob("lava.db"))


def environments(cluster: Cluster) -> int:
    """Number of environments in the database."""
    with contextlib.closing(sqlite3.connect(f"file:{database(cluster)}?mode=ro", uri=True)) as connection:
        return int(connection.execute("select count(*) from environments").fetchone()[0])


def on_disk(cluster: Cluster) -> int:
    """Bytes of the database and its log."""
    return sum(path.stat().st_size for path in database(cluster).parent.glob("lava.db*"))


def resident(pid: int) -> int:
    """Bytes of memory that the process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_refused_submissions_leave_nothing(sweeping: Cluster) -> None:
    """Their environments are neither in the database nor in memory."""
    master = sweeping.pid("lavad")
    disk, memory, rows = on_disk(sweeping), resident(master), environments(sweeping)
    for number in range(REFUSED):
        large = [b"A%d=" % number + os.urandom(8).hex().encode() * (LARGE // 16)]
        assert "No such queue" in submit(sweeping, large, command="true", queues=["nowhere"]).error
    assert environments(sweeping) <= rows
    assert on_disk(sweeping) - disk < 2 * LARGE
    assert resident(master) - memory < REFUSED * LARGE


def test_environments_go_when_no_job_needs_them(sweeping: Cluster, tmp_path: Path) -> None:
    """Those of pending jobs stay, also under the next master; the others are removed with their jobs."""
    output = tmp_path / "out"
    kept = submit(
        sweeping, [b"PATH=/bin:/usr/bin", b"KEPT=precious"], command="echo got $KEPT", output=str(output), hold=True
    )
    others = [submit(sweeping, [b"OTHER%d=x" % number], command="true", hold=True).job for number in range(3)]
    assert environments(sweeping) == 4
    sweeping.says("bkill", *map(str, others))
    wait_for(lambda: environments(sweeping) == 1, 60, "the other environments to go")
    sweeping.kill("lavad")
    wait_for(lambda: not sweeping.is_running("lavad"), 60, "the master to end")
    sweeping.up()
    later = submit(sweeping, [b"LATER=x"], command="true", hold=True)
    assert environments(sweeping) == 2
    sweeping.says("bkill", str(later.job))
    wait_for(lambda: environments(sweeping) == 1, 60, "the new environment to go")
    sweeping.says("bresume", str(kept.job))
    wait_for(lambda: output.exists() and "got precious" in output.read_text(), 60, "the job to run")


def test_an_environment_is_stored_again_after_it_has_gone(sweeping: Cluster, tmp_path: Path) -> None:
    """A user who submits with the same environment as long ago has it in the job."""
    for turn in range(2):
        output = tmp_path / f"out{turn}"
        same = [b"PATH=/bin:/usr/bin", b"AGAIN=and again"]
        assert submit(sweeping, same, command="echo got $AGAIN", output=str(output)).job
        wait_for(lambda path=output: path.exists() and "got and again" in path.read_text(), 60, "the job to run")
        wait_for(lambda: environments(sweeping) == 0, 60, "its environment to go")
