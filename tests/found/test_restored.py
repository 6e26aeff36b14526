"""An older database, another one, or one that lost its log: master and hosts are reconciled, and every loss is
reported.
"""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance import markers
from tests.acceptance.personal import Cluster, a_cluster, wait_for
from tests.found.faults import children, kill

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two hosts, with a database that these tests replace."""
    with a_cluster(tmp_path_factory.mktemp("restored") / "C", 2, 8, LAVA_HEARTBEAT="1", LAVA_SILENT_AFTER="5") as made:
        yield made


def _stop(cluster: Cluster, number: int = signal.SIGTERM) -> None:
    cluster.kill("lavad", number)
    wait_for(lambda: not cluster.is_running("lavad"), 60, "lavad to end")
    wait_for(lambda: not _is_locked(cluster), 60, "the writer to end")  # only then its files are all there is


def _restart(cluster: Cluster) -> None:
    _stop(cluster)
    cluster.up()


def _popen_up(cluster: Cluster, said: Path | None = None) -> "subprocess.Popen[bytes]":
    """Start `lavactl up`, which waits for the hosts; these are kept away until the database is adopted."""
    words = [str(Path(sys.executable).parent / "lavactl"), "up", "--dir", str(cluster.directory)]
    with open(said or os.devnull, "wb") as complaints:
        return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=complaints)


def _lavactl(cluster: Cluster, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [str(Path(sys.executable).parent / "lavactl"), words[0], "--conf", str(cluster.directory), *words[1:]]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def _adopt(cluster: Cluster) -> str:
    done = _lavactl(cluster, "adopt")
    assert done.returncode == 0, done
    return done.stdout


def _ok_hosts(cluster: Cluster) -> int:
    return sum(line.split()[1] == "ok" for line in cluster.run("bhosts", "-w").stdout.splitlines()[1:])


def _go(marks: Path) -> Path:
    return marks.with_name("go")


def _text(marks: Path, code: str) -> str:
    """A job that runs until it is released."""
    return markers.script(marks, "0", code).replace("sleep $((0))", f"until [ -e {_go(marks)} ]; do sleep 0.1; done")


def _run(cluster: Cluster, marks: Path, code: str, *options: str) -> int:
    job = cluster.submit("-o", "/dev/null", *options, _text(marks, code))
    wait_for(lambda: marks.exists() and any(one.job == job for one in markers.read(marks)), 60, f"job {job} to start")
    return job


def test_an_older_backup_made_the_cluster_dead_until_lavad_was_restarted_often(two: Cluster, tmp_path: Path) -> None:
    """After one command hosts and jobs are back: none killed, no id given twice, ends as they were."""
    marks, backup = tmp_path / "marks", tmp_path / "backup.db"
    before = _run(two, marks, "3")  # runs on throughout
    ended = two.submit("-H", "-o", "/dev/null", markers.script(marks, "0", "4"))
    done = _lavactl(two, "backup", str(backup))
    assert done.returncode == 0, done
    assert backup.stat().st_mode & 0o777 == 0o600
    two.run("bresume", str(ended))
    two.becomes(ended, "EXIT")
    for _ in range(2):
        _restart(two)
    after = _run(two, marks, "5")
    wide = _run(two, marks, "6", "-n", "2", "-R", "span[ptile=1]")
    array = two.submit("-o", "/dev/null", "-J", "a[1-3]%1", _text(marks, "i"))
    wait_for(lambda: any(one.job == array for one in markers.read(marks)), 60, "the array to start")
    gone = two.submit("-H", "true")  # known to the lost database alone
    _stop(two)
    done = _lavactl(two, "restore", str(backup))
    assert done.returncode == 0, done
    starting = _popen_up(two, tmp_path / "said")
    wait_for(lambda: "problem=adoption" in two.log("lavad"), 60, "lavad to notice")
    wait_for(lambda: "lavactl adopt" in (tmp_path / "said").read_text(), 60, "`lavactl up` to say what is wanted")
    assert "lavactl adopt" in two.says("badmin", "showstatus")
    refused = two.with_environment(LSB_NTRIES="1").run("bsub", "true")
    assert "lavactl adopt" in refused.stderr
    said = _adopt(two)
    assert starting.wait(60) == 0
    assert _ok_hosts(two) == 2
    new = two.submit("-o", "/dev/null", "true")
    assert new > gone
    two.becomes(new, "DONE")
    assert {two.state(job) for job in (before, after, wide)} == {"RUN"}, said
    assert two.states(array)[1][0] == "RUN", said
    assert {two.states(array)[index][0] for index in (2, 3)} == {"PSUSP"}
    _go(marks).touch()
    for job, code in ((before, 3), (after, 5), (wide, 6)):
        two.becomes(job, "EXIT", 60)
        assert two.states(job)[0] == ("EXIT", code), two.history(job)
    assert two.states(ended)[0] == ("EXIT", 4), two.history(ended)
    starts = markers.starts(markers.read(marks))
    assert set(starts.values()) == {1}, (starts, two.history(wide), marks.read_text())
    found = two.log("lavad")  # and in `said`, unless a host was late
    assert str(after) in said or f"adoption=found job={after}.1 host=" in found, said


def _dated(history: str) -> list[float]:
    """Times of the lines of `bhist -l`."""
    found = re.findall(r"^(\w{3} \w{3} +\d+ [\d:]{8}):", history, re.MULTILINE)
    year = time.localtime().tm_year
    return [time.mktime(time.strptime(f"{year} {text}", "%Y %a %b %d %H:%M:%S")) for text in found]


def test_a_job_that_was_requeued_since_the_backup_is_told_once(two: Cluster, tmp_path: Path) -> None:
    """Its host of then told first that it knows nothing: the job was requeued, or lost, and what ran came back later
    with an earlier date.
    """
    marks, backup = tmp_path / "marks", tmp_path / "backup.db"
    job = _run(two, marks, "3", "-m", "lava1+2 lava2")
    assert _lavactl(two, "backup", str(backup)).returncode == 0
    two.run("badmin", "hclose", "lava1")
    two.run("brequeue", str(job))
    wait_for(lambda: markers.starts(markers.read(marks)) == {(job, 0): 2}, 60, "the job to start again")
    assert "lava2" in two.says("bjobs", "-noheader", str(job))
    time.sleep(3)  # what is told wrong is told by as much
    _stop(two)
    assert _lavactl(two, "restore", str(backup)).returncode == 0
    starting = _popen_up(two)
    wait_for(lambda: "lavactl adopt" in two.run("badmin", "showstatus").stdout, 60, "lavad to notice")
    said = _adopt(two)
    assert starting.wait(60) == 0
    assert two.state(job) == "RUN", (said, two.history(job))
    _go(marks).touch()
    two.becomes(job, "EXIT")
    assert two.states(job)[0] == ("EXIT", 3), two.history(job)
    story = two.history(job)
    dates = _dated(story)
    assert dates == sorted(dates), story
    run_s = int(story.splitlines()[-1].split()[2])
    assert run_s <= dates[-1] - dates[0] + 1, story


def _lose_the_log(cluster: Cluster) -> None:
    """Remove SQLite's write-ahead log, as a disk fault may while the master is down."""
    for path in cluster.directory.glob("state/lava.db-*"):
        path.unlink()


def test_a_lost_log_gave_numbers_out_again_and_killed_what_ran(two: Cluster, tmp_path: Path) -> None:
    """Detected at the start, by the mark file and by agents; known ends are unchanged."""
    marks = tmp_path / "marks"
    _restart(two)  # an orderly end empties the log: later commits are in the log alone
    running = _run(two, marks, "3")
    ended = two.submit("-o", "/dev/null", markers.script(marks, "0", "4"))
    two.becomes(ended, "EXIT")
    _stop(two, signal.SIGKILL)
    _lose_the_log(two)
    starting = _popen_up(two)
    said = _adopt(two)
    assert starting.wait(60) == 0
    assert two.state(running) == "RUN", said
    assert two.states(ended)[0] == ("EXIT", 4), said
    assert two.submit("-H", "true") > ended
    _go(marks).touch()
    two.becomes(running, "EXIT", 60)
    assert two.states(running)[0] == ("EXIT", 3)
    assert set(markers.starts(markers.read(marks)).values()) == {1}


@pytest.mark.parametrize("is_first", [True, False], ids=["at its beginning", "in its middle"])
def test_a_hole_in_the_log_is_noticed_and_what_ran_goes_on(two: Cluster, tmp_path: Path, is_first: bool) -> None:
    """64 bytes of the write-ahead log are zeroed while both processes are dead: SQLite recovers up to them."""
    marks = tmp_path / "marks"
    log = two.directory / "state" / "lava.db-wal"
    _stop(two)
    assert not log.exists()  # an orderly end empties the log: later commits are in the log alone
    two.up()
    early = _run(two, marks, "6")
    begin = 32 if is_first else log.stat().st_size
    running = _run(two, marks, "3")
    ended = two.submit("-o", "/dev/null", markers.script(marks, "0", "4"))
    two.becomes(ended, "EXIT")
    # All at once, so that no reader is left to put the log into the database when it closes that last.
    kill(*children(two.pid("lavad")), two.pid("lavad"))
    wait_for(lambda: not two.is_running("lavad") and not _is_locked(two), 60, "lavad and its writer to end")
    with open(log, "r+b") as file:
        assert os.fstat(file.fileno()).st_size > begin + 4096
        file.seek(at := begin + 24 + 4096 - 64)  # the end of a page, which has rows
        assert file.read(64).strip(b"\0")
        file.seek(at)
        file.write(bytes(64))
    before = len(two.log("lavad"))
    starting = _popen_up(two)
    wait_for(lambda: "problem=adoption" in two.log("lavad")[before:], 60, "lavad to notice")
    assert "commits were lost" in two.log("lavad")[before:]
    said = _adopt(two)
    assert starting.wait(60) == 0
    assert {two.state(job) for job in (early, running)} == {"RUN"}, said
    assert f"adoption=found job={running}.1 host=" in two.log("lavad")[before:]  # and in `said`, unless it was late
    assert two.states(ended)[0] == ("EXIT", 4), said
    assert two.submit("-H", "true") > ended
    _go(marks).touch()
    for job, code in ((early, 6), (running, 3)):
        two.becomes(job, "EXIT", 60)
        assert two.states(job)[0] == ("EXIT", code), two.history(job)
    assert set(markers.starts(markers.read(marks)).values()) == {1}


def test_an_empty_database_and_no_mark_file_is_noticed_by_the_agents(two: Cluster, tmp_path: Path) -> None:
    """Another machine, another database: the hosts' marks suffice; their newest job id counts."""
    marks = tmp_path / "marks"
    running = _run(two, marks, "3")
    _stop(two)
    shutil.rmtree(two.directory / "state")
    (two.directory / "state").mkdir()
    starting = _popen_up(two)
    wait_for(lambda: "not the cluster's own" in two.log("lavad"), 60, "agents to tell of the other database")
    wait_for(lambda: "lavactl adopt" in two.log("agent-lava1"), 60, "the agent's log to name the command")
    said = _adopt(two)
    assert starting.wait(60) == 0
    assert two.state(running) == "RUN", said
    assert two.submit("-H", "true") > running
    _go(marks).touch()
    two.becomes(running, "EXIT", 60)
    assert two.states(running)[0] == ("EXIT", 3)
    assert markers.starts(markers.read(marks)) == {(running, 0): 1}
    assert "Nothing to adopt" in _adopt(two)
    _restart(two)  # and the adoption lasts
    assert _ok_hosts(two) == 2


def _is_locked(cluster: Cluster) -> bool:
    with open(cluster.directory / "state" / "lava.db.lock") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def _journal(cluster: Cluster, host: str) -> Path:
    (found,) = cluster.directory.glob(f"hosts/{host}/**/journal")
    return found


def _delete(path: Path) -> None:
    path.unlink()


def _flip(path: Path) -> None:
    """Flip one byte in the first quarter: the records after it are intact."""
    text = bytearray(path.read_bytes())
    text[len(text) // 4] ^= 0xFF
    path.write_bytes(bytes(text))


def _tear(path: Path) -> None:
    text = path.read_bytes()
    path.write_bytes(text[: len(text) * 3 // 4])


@pytest.mark.parametrize(
    ("damage", "word"), [(_delete, "journal_missing"), (_flip, "journal_damaged"), (_tear, "journal_damaged")]
)
def test_a_damaged_journal_killed_what_ran(
    two: Cluster, tmp_path: Path, damage: Callable[[Path], None], word: str
) -> None:
    """Shepherds know their attempts: running ones continue, ended ones are reported; the log reports the damage."""
    go = tmp_path / "go"
    wait = f"until [ -e {go} ]; do sleep 0.1; done"
    begun = tmp_path / "begun"
    text = f"echo >> {begun}; {wait}; blaunch lava1 true || exit 9; exit 5"
    jobs = [two.submit("-m", "lava1", "-o", "/dev/null", text) for _ in range(3)]
    text = f"echo >> {begun}; until [ -e {go}.brief ]; do sleep 0.1; done; exit 4"
    brief = two.submit("-m", "lava1", "-o", "/dev/null", text)
    wait_for(lambda: begun.exists() and begun.read_text() == 4 * "\n", 60, "all jobs to have begun")
    two.kill("agent-lava1")
    wait_for(lambda: not two.is_running("agent-lava1"), 60, "the agent to end")
    Path(f"{go}.brief").touch()
    damage(_journal(two, "lava1"))
    before = len(two.log("agent-lava1"))
    two.up()
    assert f"event={word}" in two.log("agent-lava1")[before:]
    two.becomes(brief, "EXIT")
    assert two.states(brief)[0] == ("EXIT", 4), two.history(brief)
    assert {two.state(job) for job in jobs} == {"RUN"}
    go.touch()
    for job in jobs:
        two.becomes(job, "EXIT")
        assert two.states(job)[0] == ("EXIT", 5), two.history(job)


def test_the_deleted_directory_of_an_agent_killed_what_ran(two: Cluster, tmp_path: Path) -> None:
    """Reported as 127, or a host of the job lost: its shepherds could not be found. They make their files again."""
    go, begun = tmp_path / "go", tmp_path / "begun"
    text = f"echo >> {begun}; until [ -e {go} ]; do sleep 0.1; done; exit 5"
    jobs = [two.submit("-m", "lava1", "-o", "/dev/null", text) for _ in range(2)]
    wait_for(lambda: begun.exists() and begun.read_text() == 2 * "\n", 60, "both jobs to have begun")
    before = len(two.log("agent-lava1"))
    two.kill("agent-lava1", signal.SIGSTOP)  # it would make some of them again
    for path in _journal(two, "lava1").parent.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    two.kill("agent-lava1")
    wait_for(lambda: not two.is_running("agent-lava1"), 60, "the agent to end")
    two.up()
    assert "event=journal_missing attempts=2" in two.log("agent-lava1")[before:]
    assert {two.state(job) for job in jobs} == {"RUN"}
    go.touch()
    for job in jobs:
        two.becomes(job, "EXIT")
        assert two.states(job)[0] == ("EXIT", 5), two.history(job)
