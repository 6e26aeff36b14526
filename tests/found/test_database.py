"""A database that cannot commit, the log, and pid files of daemons, from an administrator's view."""

import asyncio
import contextlib
import logging
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lavad.audit import AuditTrail, ranges
from protos.logs import LineFormatter, is_journal
from protos.pidfile import PidFileInUse, pid_file
from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """One host, with a database that these tests block at times."""
    with a_cluster(tmp_path_factory.mktemp("database") / "C", 1, 4, LAVA_HEARTBEAT="1") as cluster:
        yield cluster


@contextlib.contextmanager
def _held(cluster: Cluster) -> Iterator[None]:
    """The database, locked by an administrator's program."""
    connection = sqlite3.connect(cluster.directory / "state" / "lava.db", isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        yield
        connection.execute("ROLLBACK")
    finally:
        connection.close()


def _bsub(cluster: Cluster, *words: str) -> "subprocess.Popen[str]":
    command = [str(Path(sys.executable).parent / "bsub"), "-o", "/dev/null", *words]
    return subprocess.Popen(command, env=cluster.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_database_that_cannot_commit_left_no_line_anywhere(small: Cluster) -> None:
    """An error in the log and in badmin showstatus while it lasts; its end is logged; bsub waits only briefly."""
    with _held(small):
        first = _bsub(small, "true")
        wait_for(lambda: "problem=database" in small.log("lavad"), 60, "the log to tell of the database")
        (line,) = [line for line in small.log("lavad").splitlines() if "problem=database" in line]
        assert "level=ERROR" in line
        assert "database is locked" in line
        assert "Problem: The database can't commit now: database is locked." in small.says("badmin", "showstatus")
        second = _bsub(small, "true")
        assert second.stderr is not None
        said = second.stderr.readline()
        assert "The database can't commit now" in said
        assert int(re.findall(r"Retrying in (\d+) seconds", said)[0]) < 20  # not in 60
    wait_for(lambda: "recovered=database" in small.log("lavad"), 60, "the log to tell of the end")
    for one in (first, second):
        out, err = one.communicate(timeout=60)
        assert "is submitted" in out, err
    assert "Problem" not in small.says("badmin", "showstatus")


def _copy_state(source: Path, target: Path) -> None:
    for path in target.glob("lava.db*"):
        path.unlink()
    for path in (*source.glob("lava.db*"), source / "commit-mark"):
        shutil.copy(path, target / path.name)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 MiB."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m,mode=700", "tmpfs", tmp_path], check=True, timeout=60)
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True, timeout=60)


@pytest.mark.root
def test_lavad_did_not_start_on_a_full_disk(small: Cluster, small_disk: Path) -> None:
    """It keeps spare space for that, and reports the cause."""
    before = small.directory / "lava.conf"
    kept = before.read_text()
    small.end("lavad")
    _copy_state(small.directory / "state", small_disk)
    small.configure(LAVA_STATE_DIR=str(small_disk), LAVA_DATABASE="")
    small.up()
    job = small.submit("-H", "true")
    small.end("lavad", signal.SIGKILL)
    ballast = small_disk / "ballast"
    with open(ballast, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    small.up()
    assert small.state(job) == "PSUSP"
    wait_for(lambda: "problem=disk" in small.log("lavad"), 60, "lavad to see that the disk is full")
    assert "Problem: The disk of" in small.says("badmin", "showstatus")
    ballast.unlink()
    wait_for(lambda: "recovered=disk" in small.log("lavad"), 60, "lavad to see that there is room")
    small.end("lavad")
    before.write_text(kept)
    _copy_state(small_disk, small.directory / "state")
    small.up()


def test_who_did_what_was_nowhere(small: Cluster) -> None:
    """Submissions, kills, refusals and host changes, one line each."""
    job = small.submit("-H", "-J", "many[1-100000]", "true")
    refused = small.run("bsub", "-q", "nowhere\nresult=ok", "true")
    assert refused.returncode == 255
    small.says("bkill", str(job))
    small.run("bkill", "999999")
    small.run("badmin", "hclose", "-C", "disk\nfull", "lava1")
    small.run("badmin", "hopen", "lava1")
    small.run("badmin", "qclose", "normal")
    small.run("badmin", "qopen", "normal")
    small.run("badmin", "reconfig")

    def found(*words: str) -> int:
        return sum(all(word in line for word in words) for line in lines())

    def lines() -> list[str]:
        return [line for line in small.log("lavad").splitlines() if "part=audit" in line]

    wait_for(lambda: found("action=reconfigure"), 60, "the last line, written after the answer")

    user = f"user={subprocess.check_output(['id', '-un'], text=True).strip()}"
    assert found(user, "action=submit", f"jobs={job} ", "result=ok") == 1
    assert found(user, "action=submit", "jobs=-", "nowhere", "result=refused", "reason=") == 1
    assert found(user, "action=terminate", f"jobs={job} ", "result=ok") == 1
    assert found(user, "action=terminate", "jobs=999999 ", "result=refused") == 1
    assert found(user, "action=close_host", "name='lava1'", r"comment='disk\nfull'", "result=ok") == 1
    assert found("action=open_host") == found("action=close_queue") == found("action=open_queue") == 1
    assert found("action=reconfigure", "result=ok") == 1
    assert found("action=enrol", "name='lava1'", "result=ok") == 1
    assert all(re.match(r"time=\S+ level=INFO part=audit user=", line) for line in lines())


def test_a_second_daemon_removed_the_pid_file_of_the_first(small: Cluster) -> None:
    """It fails, and the first one keeps its file, which still names it."""
    pid = small.pid("agent-lava1")
    command = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")[:-1]
    environment = {**os.environ, "LAVA_ENVDIR": str(small.directory)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done
    assert small.pid("agent-lava1") == pid
    assert small.is_running("agent-lava1")


def test_a_pid_file_is_its_process_alone(tmp_path: Path) -> None:
    """Locked while the process runs; a killed process's file is taken over."""
    path = tmp_path / "pid"
    path.write_text("12345\n")  # of a process that was killed
    with pid_file(path):
        assert path.read_text() == f"{os.getpid()}\n"
        with pytest.raises(PidFileInUse, match=f"is in use by the running process {os.getpid()}"), pid_file(path, 0.0):
            pass
        assert path.read_text() == f"{os.getpid()}\n"
    assert not path.exists()


def test_the_journal_knew_no_priorities(tmp_path: Path) -> None:
    """Under journald each line has its priority, and no time of its own; a file has both daemons in one format."""
    record = logging.LogRecord("lava.agent", logging.WARNING, "x.py", 1, "event=%s", ("session_ended",), None)
    assert LineFormatter(True).format(record) == "<4>level=WARNING part=lava.agent event=session_ended"
    assert re.fullmatch(
        r"time=\d{4}-\d\d-\d\dT[\d:,]+ level=WARNING part=lava.agent event=session_ended",
        LineFormatter(False).format(record),
    )
    try:
        raise ValueError("no")
    except ValueError:
        record.exc_info = sys.exc_info()
    assert all(line.startswith("<4>") for line in LineFormatter(True).format(record).splitlines())
    with open(tmp_path / "journal", "w") as stream:
        found = os.fstat(stream.fileno())
        assert is_journal({"JOURNAL_STREAM": f"{found.st_dev}:{found.st_ino}"}, stream.fileno())
        assert not is_journal({"JOURNAL_STREAM": "1:2"}, stream.fileno())
        assert not is_journal({}, stream.fileno())


def test_lines_of_the_audit_trail_are_whole(caplog: pytest.LogCaptureFixture) -> None:
    """Many records of one turn are written together, and no text of a user's forges a line."""
    trail = AuditTrail()

    async def acts() -> None:
        trail.note("eve\nuser=root", "lava1", "submit", "jobs=1", "")
        trail.note("eve", "lava1", "submit", "jobs=-", "No such queue\nuser=root")

    with caplog.at_level(logging.INFO, "audit"):
        asyncio.run(acts())
        trail.flush()
    (record,) = caplog.records
    lines = LineFormatter(True).format(record).splitlines()
    assert len(lines) == 2
    assert all(line.startswith("<6>level=INFO part=audit user=") for line in lines)
    assert ranges([1, 2, 3, 7, 9, 10]) == "1-3,7,9-10"
    assert ranges([]) == ""
    assert len(ranges(range(1, 100_000, 2))) < 1100
