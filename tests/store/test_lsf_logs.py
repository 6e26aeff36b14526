"""lsb.acct and lsb.events: told from the database and read by a parser of its own; kills, switches, strange files."""

import asyncio
import errno
import json
import os
import socket
import stat
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from lavad.core import commands as c
from lavad.core.model import HostShare, JobState, Key
from lavad.core.model.policy import Policy
from lavad.core.model.ranges import Ranges
from lavad.core.model.rules.queues import Queue
from lavad.core.model.usage import HostUsage
from lavad.core.plan import Start, Starts
from lavad.store import schema
from lavad.store.database import database, url
from lavad.store.lsf_logs import fields, keeper, recorder
from lavad.store.lsf_logs.keeper import LsfLogs, rules_of
from lavad.store.lsf_logs.log_files import ACCT, EVENTS, CannotWrite, LogFiles, Position, Rules
from lavad.store.lsf_logs.recorder import Recorder
from lavad.store.lsf_logs_process import Service
from lavad.store.reading.accounts import AccountFilter, Ended, ended
from lavad.store.writer.protocol import frame
from protos import jobs_pb2 as pb
from tests import lsf_log_parser
from tests.fakes import world
from tests.fakes.world import ROOT, new_job
from tests.store.saved import saving
from tests.store.test_history import ALICE, Told

SPEC = pb.JobSpec(
    name='a "b"', command="./md\nnpt.in", requirement_text="span[ptile=2]", dependency="done(1)", pre_exec="pre",
    hosts=["n000", "n001"], requeue_exit_values="99", job_group="/g", output="out.%J", warning_time_s=30.0,
)  # fmt: skip
CLUSTER = "c1"


class Logs:
    """A world, and the logs of its database in a directory."""

    def __init__(self, told: Told, where: str, directory: Path) -> None:
        self.told = told
        self.where = where
        self.directory = directory
        self.rules = Rules()
        self._engine = database.reading_engine(url.parse(where))

    def begin(self) -> tuple[LogFiles, Recorder]:
        """Files and recorder of a new process."""
        files = LogFiles(self.directory, self.rules)
        try:
            files.open(Position(CLUSTER))
        except BaseException:
            files.close()  # as the kernel does at the end of a process
            raise
        return files, Recorder(self._engine, files, is_short=False, factors={}, clock=lambda: self.told.world.now)

    def tell(self) -> None:
        """A whole life of the process: all is told that is in the database."""
        self.told.saved.commit()
        files, teller = self.begin()
        try:
            while teller.turn():
                pass
        finally:
            files.close()

    @property
    def acct(self) -> list[dict[str, Any]]:
        return lsf_log_parser.acct(self.directory / ACCT)

    def events(self, kind: str = "") -> list[list[str]]:
        """Records of lsb.events of one kind, or all."""
        return [one for one in lsf_log_parser.records(self.directory / EVENTS) if kind in ("", one[0])]

    def close(self) -> None:
        self._engine.dispose()


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[Logs]:
    """The logs of a new database."""
    where = f"sqlite:///{tmp_path}/lava.db"
    with saving(where) as saved:
        told = Told(saved)
        told.do(c.Reconfigure(Policy(queues=(Queue("normal"), Queue("idle")), clean_period_s=600.0)))
        made = Logs(told, where, tmp_path / "share" / "logdir")
        yield made
        made.close()


def submit(logs: Logs, **parts: Any) -> None:
    """A job is submitted with every option."""
    logs.told.do(c.SubmitJob(new_job(spec=SPEC.SerializeToString(), **parts), ALICE))


def test_every_end_is_told_with_the_fields_of_the_database(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a world that lived at random: one record for each end that bacct counts, equal to its row."""
    monkeypatch.setattr(world, "new_job", partial(new_job, spec=SPEC.SerializeToString()))
    logs.told.world.live(900)
    logs.told.world.now += recorder.HELD_S + 1.0  # hosts that never release an attempt are not waited for
    logs.tell()
    rows = [one for one in ended(logs.told.saved.read, AccountFilter()) if one is not None]
    assert len(rows) > 20
    assert sorted(map(_of_row, rows)) == sorted(map(_of_record, logs.acct))


def _of_row(one: Ended) -> tuple[Any, ...]:
    times = (int(one.ended_at), int(one.submitted_at), int(one.dispatched_at))
    hosts = [share[0] for share in json.loads(one.hosts or "[]") for _ in range(share[1])]
    used = (round(one.cpu_s, 5), one.memory_mib_max * 1024, one.status)
    return (one.job, one.index, *times, hosts, 64 if one.state == JobState.DONE else 32, *used)


def _of_record(one: dict[str, Any]) -> tuple[Any, ...]:
    times = (one["eventTime"], one["submitTime"], one["startTime"])
    used = (round(one["ru_utime"] + one["ru_stime"], 5), one["maxRMem"], one["exitStatus"])
    return (one["jobId"], one["idx"], *times, one["execHosts"], one["jStatus"], *used)


def test_a_job_with_every_option(logs: Logs) -> None:
    """lsf.md 7.2: strings with their quotes doubled, a script's lines on one line, the bits of the options."""
    submit(logs, slots=2)
    logs.told.end(logs.told.start(1, slots=2), 3 << 8, after_s=7.0)
    logs.tell()
    (one,) = logs.acct
    assert (one["jobName"], one["command"], one["userId"], one["projectName"]) == ("job", "sleep 1", 1000, "default")
    assert one["options"] == 0x1 | 0x4 | 0x10 | 0x20000 | 0x40000
    assert (one["resReq"], one["dependCond"], one["preExecCmd"]) == ("span[ptile=2]", "done(1)", "pre")
    assert (one["askedHosts"], one["execHosts"]) == (["n000", "n001"], ["n000", "n000"])
    assert (one["requeueEvalues"], one["jobGroupName"], one["warningTimePeriod"]) == ("99", "/g", 30)
    assert (one["exitStatus"], one["jStatus"], one["runTime"], one["allocSlots"]) == (768, 32, 7, ["n000", "n000"])
    (new,) = logs.events("JOB_NEW")
    assert (new[3], new[4], new[41 + len(SPEC.hosts)]) == ("1", "1000", "job")  # 4, 5, and 42 without -m
    assert [one[4] for one in logs.events("JOB_STATUS")] == ["32"]
    assert [one[0] for one in logs.events()] == [
        "JOB_NEW",
        "JOB_START",
        "JOB_START_ACCEPT",
        "JOB_EXECUTE",
        "JOB_STATUS",
    ]


def test_texts_stay_on_one_line() -> None:
    """lsf.md 7.1: an inner quote is doubled; a line break cannot begin a record."""
    line = fields.line("X", "22", 5.9, [fields.quoted('say "hi"\nls\n'), "7"])
    assert line == b'"X" "22" 5 "say ""hi"";ls" 7\n'
    assert lsf_log_parser.fields_of(line.decode().rstrip()) == ["X", "22", "5", 'say "hi";ls', "7"]


@pytest.mark.parametrize(
    ("cpu_s", "system_s", "parts"), [(3.0, 1.0, (2.0, 1.0)), (1.0, 1.5, (0.0, 1.0)), (0.0, 0.0, (0.0, 0.0))]
)
def test_user_and_system_time_come_to_the_cpu_time(cpu_s: float, system_s: float, parts: tuple[float, float]) -> None:
    """Of a job whose parts were measured as more than their sum, too: reports add them up."""
    assert fields.cpu_parts(cpu_s, system_s) == parts


def test_the_usage_of_a_parallel_job_is_the_sum_over_its_hosts(logs: Logs) -> None:
    """Its end waits for the hosts that have not told what was used there."""
    submit(logs, slots=2)
    logs.told.do(c.ApplyPlan(Starts((Start(1, 0, (HostShare("n000", 1), HostShare("n001", 1)), "free"),))))
    key = Key(1, 0, 1)
    for host in ("n000", "n001"):
        logs.told.do(c.ReportStaged(host, key))
    logs.told.do(c.ReportStarted("n000", key, 4101, logs.told.world.now, "/home/alice", "/home/alice"))
    logs.told.do(c.ReportFinished("n000", key, 0, logs.told.world.now, "", 1.5, 77, also_released=True), 5.0)
    logs.tell()
    assert [one[4] for one in logs.events("JOB_STATUS")] == ["64"]
    assert logs.acct == []
    usage = HostUsage(2.5, memory_mib_max=100, user_s=2.0, system_s=0.5, seconds=5.0)
    logs.told.do(c.ReportReleased("n001", key, 1, usage), 1.0)
    logs.tell()
    (one,) = logs.acct
    assert one["ru_utime"] + one["ru_stime"] == pytest.approx(4.0)
    assert one["execHosts"] == ["n000", "n001"]


def test_requeued_and_killed_jobs(logs: Logs) -> None:
    """lsf.md 2.5: the number of the reason; of a killed array each element that waited, in parts."""
    submit(logs)
    key = logs.told.start(1)
    logs.told.do(c.RequeueJob(c.Target(1), ROOT, frozenset({JobState.RUN})), 1.0)
    logs.told.end(key, 9, after_s=1.0)
    submit(logs, indices=(range(1, 8),))
    logs.told.do(c.KillJob(c.Target(2, Ranges([range(2, 8)])), ALICE), 1.0)
    logs.tell()
    assert sorted((one["jobId"], one["idx"], one["exitInfo"], one["startTime"] > 0) for one in logs.acct) == [
        (1, 0, 11, True), *((2, index, 14, False) for index in range(2, 8)),
    ]  # fmt: skip
    assert {one["jobId"]: one["indexRange"] for one in logs.acct} == {1: [], 2: [("1", "7", "1")]}
    assert [one[0] for one in logs.events("JOB_REQUEUE")] == ["JOB_REQUEUE"]


def test_elements_that_were_switched_by_themselves(logs: Logs) -> None:
    """lsf.md 7.2: a record for each of them with its index; each end has the queue of its own."""
    submit(logs, indices=(range(1, 4),))
    target = c.Target(1, Ranges([range(2, 4)]))
    night = new_job(spec=SPEC.SerializeToString(), queue="idle")
    logs.told.do(c.ModifyJob(target, night, ALICE, "", frozenset({"queues"}), is_switch=True), 1.0)
    for index in (1, 2):
        logs.told.end(logs.told.start(1, index), after_s=1.0)
    logs.told.do(c.KillJob(c.Target(1), ALICE), 1.0)
    logs.tell()
    assert {(one["idx"], one["queue"]) for one in logs.acct} == {(1, "normal"), (2, "idle"), (3, "idle")}
    assert [one[-2] for one in logs.events("JOB_SWITCH")] == ["2", "3"]


def a_lively_world(logs: Logs) -> None:
    """A few jobs of each kind, elements in parts, ends of both kinds."""
    submit(logs)
    logs.told.end(logs.told.start(1, after_s=1.0), after_s=2.0)
    submit(logs, indices=(range(1, 12),))
    logs.told.end(logs.told.start(2, 1, after_s=1.0), 5 << 8, after_s=2.0)
    logs.told.do(c.KillJob(c.Target(2), ALICE), 1.0)
    submit(logs)
    logs.told.start(3)


class _Killed(BaseException):
    """The end of the process, as by kill -9."""


@pytest.mark.parametrize("kind", ["write", "sync", "replace"])
def test_a_killed_process_neither_loses_nor_doubles_a_record(
    logs: Logs, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Killed before each write, each sync and each new position, again and again: the files are the same."""
    monkeypatch.setattr(recorder, "ELEMENTS", 4)
    monkeypatch.setattr(recorder, "PAGE", 3)
    a_lively_world(logs)
    logs.tell()
    whole = [sorted((logs.directory / name).read_text().splitlines()) for name in (ACCT, EVENTS)]
    assert [len(lines) for lines in whole] == [12, 35]
    calls = {"write": "pwrite", "sync": "fsync", "replace": "replace"}
    real = getattr(os, calls[kind])
    lives = left = 0

    def dying(*parts: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise _Killed
        return real(*parts)

    logs.directory = logs.directory.with_name("killed")
    monkeypatch.setattr(os, calls[kind], dying)
    for lives in range(1, 200):
        left = lives % 7
        try:
            logs.tell()
        except _Killed:
            continue
        break
    monkeypatch.undo()
    assert lives > 3
    logs.tell()
    assert [sorted((logs.directory / name).read_text().splitlines()) for name in (ACCT, EVENTS)] == whole


def test_files_are_switched(logs: Logs) -> None:
    """lsf.md 7.1: old files have the time of their newest record in their first line, N=1 is the newest."""
    logs.rules = Rules(jobs_max=1, switch_s=0.0, acct_bytes=1, acct_files=2, kept_s=1e9)
    for job in range(1, 5):
        submit(logs)
        logs.told.end(logs.told.start(job), after_s=1.0)
        logs.tell()
    names = sorted(path.name for path in logs.directory.iterdir() if not path.name.startswith("."))
    assert names == [
        "lsb.acct", "lsb.acct.1", "lsb.acct.2", "lsb.events", *(f"lsb.events.{number}" for number in range(1, 5)),
    ]  # fmt: skip
    assert (logs.directory / "lsb.events").read_text().splitlines()[0].split() == ["#17"]
    assert int((logs.directory / "lsb.events.1").read_text().split()[0][1:]) > 1e9
    jobs = [
        one[3] for number in (1, 2, 3, 4) for one in lsf_log_parser.records(logs.directory / f"lsb.events.{number}")
        if one[0] == "JOB_NEW"
    ]  # fmt: skip
    assert jobs == ["4", "3", "2", "1"]
    assert [one["jobId"] for one in lsf_log_parser.acct(logs.directory / "lsb.acct.1")] == [4]


def test_a_file_that_was_moved_away_begins_anew(logs: Logs) -> None:
    """As logrotate does it; what it had stays there, and nothing is told twice."""
    submit(logs)
    logs.tell()
    (logs.directory / EVENTS).rename(logs.directory / "kept")
    logs.told.start(1)
    logs.tell()
    assert Counter(one[0] for one in lsf_log_parser.records(logs.directory / "kept")) == {"JOB_NEW": 1}
    assert [one[0] for one in logs.events()] == ["JOB_START", "JOB_START_ACCEPT", "JOB_EXECUTE"]


@pytest.mark.parametrize("name", [ACCT, EVENTS])
def test_another_programs_file_is_never_touched(logs: Logs, name: str) -> None:
    """LSF may still run on the same directory, and reads its own events when it starts."""
    logs.directory.mkdir(parents=True)
    (logs.directory / name).write_text("of another program\n")
    with pytest.raises(CannotWrite, match=f"{name} was not written by this cluster, and stays as it is"):
        logs.tell()
    assert (logs.directory / name).read_text() == "of another program\n"


def test_two_masters_do_not_write_the_same_files(logs: Logs) -> None:
    """The second one says so."""
    files, _ = logs.begin()
    try:
        with pytest.raises(CannotWrite, match="Another lavad writes the logs"):
            logs.begin()
    finally:
        files.close()


def test_deeds_of_administrators(logs: Logs) -> None:
    """lsf.md 7.3: QUEUE_CTRL and HOST_CTRL with their codes; only what was changed."""
    logs.told.do(c.RuleQueue("normal", c.QueueAction.CLOSE, ROOT, "full"))
    logs.told.do(c.CloseHost("n001", ROOT, "dust"))
    logs.told.do(c.RevokeHost("n000", ROOT, 300.0, "spot"))  # a host is closed by that, too
    logs.tell()
    assert [one[3:5] + one[6:] for one in logs.events("QUEUE_CTRL")] == [["2", "normal", "root", "full"]]
    said = [["2", "n001", "root", "dust"], ["2", "n000", "root", "spot"]]
    assert [one[3:5] + one[6:] for one in logs.events("HOST_CTRL")] == said
    found = logs.told.saved.read(lambda connection: connection.execute(select(schema.job_events.c.job)).scalars().all())
    assert set(found) == {0}


def test_users_can_pass_through_the_directories_that_are_made(logs: Logs) -> None:
    """Whatever lavad's umask is; a directory that was there stays as it is."""
    parent = logs.directory.parent.parent
    before = stat.S_IMODE(parent.stat().st_mode)
    umask = os.umask(0o077)
    try:
        logs.tell()
    finally:
        os.umask(umask)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (logs.directory, logs.directory.parent)] == [0o755, 0o755]
    assert stat.S_IMODE(parent.stat().st_mode) == before


# -- the process ----------------------------------------------------------------------------------------------------


class Process:
    """The process in this one; each entry of ``later`` is what it hears after another page was told."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._ours, self._theirs = socket.socketpair()
        self.later: list[bytes] = []

    def hears_more(self) -> None:
        """A page was told."""
        if self.later:
            self._ours.sendall(self.later.pop(0))

    def rules(self, directory: Path, **changed: Any) -> bytes:
        """The message of new rules."""
        names = {"database": self._logs.where, "cluster": "c", "cluster_id": CLUSTER, "master": "m", "begin": 0}
        counts = {"directory": str(directory), "hosts": 2, "queues": 2}
        rules = {**names, **counts, **rules_of(Policy(), {}, 0.0), **changed}
        return frame(json.dumps([keeper.RULES, rules]).encode())

    def run(self, message: bytes) -> None:
        """Its life, from the first message to the end that it is told."""
        self._logs.told.saved.commit()
        self._ours.sendall(message)
        Service(self._theirs).run()

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


@pytest.fixture
def process(logs: Logs, monkeypatch: pytest.MonkeyPatch) -> Iterator[Process]:
    """The process that writes the logs."""
    made, turn = Process(logs), Recorder.turn

    def heard(teller: Recorder) -> bool:
        more = turn(teller)
        made.hears_more()
        return more

    monkeypatch.setattr(Recorder, "turn", heard)
    yield made
    made.close()


STOPPED = frame(json.dumps([keeper.STOP, None]).encode())


def test_another_directory_goes_on_where_the_one_before_ends(
    logs: Logs, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of a batch, too: no record is lost, and none is told in both."""
    monkeypatch.setattr(recorder, "PAGE", 3)
    monkeypatch.setattr(recorder, "ELEMENTS", 4)
    a_lively_world(logs)
    logs.tell()
    whole = [sorted(_records(logs.directory / name)) for name in (ACCT, EVENTS)]
    first, second = logs.directory.with_name("first"), logs.directory.with_name("second")
    process.later = [b"", process.rules(second), STOPPED]
    process.run(process.rules(first))
    parts = [[path / name for path in (first, second)] for name in (ACCT, EVENTS)]
    assert all("JOB_" in path.read_text() for path in parts[1])
    for paths, lines in zip(parts, whole, strict=True):
        assert sorted(line for path in paths for line in _records(path)) == lines


def _records(path: Path) -> list[str]:
    """The lines about jobs."""
    return [line for line in path.read_text().splitlines() if not line.startswith(("#", '"MBD_', '"LOAD_INDEX'))]


def test_a_new_mode_holds_for_what_was_written_before(logs: Logs, process: Process) -> None:
    """The open files and the old ones: with SECURE_INFODIR_USER_ACCESS they are lavad's alone at once."""
    logs.rules = Rules(jobs_max=1, switch_s=0.0, acct_bytes=1)
    submit(logs)
    logs.told.end(logs.told.start(1), after_s=1.0)
    logs.tell()
    submit(logs)
    process.later = [process.rules(logs.directory, mode=0o600) + STOPPED]
    process.run(process.rules(logs.directory))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in logs.directory.glob("lsb.*")}
    assert modes == dict.fromkeys(("lsb.acct", "lsb.acct.1", "lsb.events", "lsb.events.1"), 0o600)


def test_told_to_stop_at_once_it_ends(logs: Logs, process: Process) -> None:
    """As when the logs are turned off again before the process is connected."""
    process.run(STOPPED)
    assert not logs.directory.exists()


def test_logs_that_are_turned_off_and_on_again_are_written(logs: Logs) -> None:
    """However soon that comes after it: before the process has heard of it, or before it has ended."""
    submit(logs)
    logs.told.saved.commit()
    rules = {"directory": str(logs.directory), "hosts": 2, "queues": 2, **rules_of(Policy(), {}, 0.0)}

    def until_told(jobs: int) -> None:
        deadline = time.monotonic() + 60
        while not (logs.directory / EVENTS).exists() or len(logs.events("JOB_NEW")) < jobs:
            assert time.monotonic() < deadline, f"{jobs} jobs are not told"
            time.sleep(0.02)

    async def story() -> None:
        kept = LsfLogs(logs.where, "c", CLUSTER, "m", 0)
        try:
            for change in (rules, None, rules, None, rules):
                kept.take(change)
            await asyncio.to_thread(until_told, 1)
            kept.take(None)
            kept.take(rules)
            submit(logs)
            logs.told.saved.commit()
            await asyncio.to_thread(until_told, 2)
        finally:
            await kept.close()

    asyncio.run(story())
    assert [one[3] for one in logs.events("JOB_NEW")] == ["1", "2"]


def test_a_path_that_the_unit_keeps_read_only_is_told_with_what_allows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """systemd shows the system read-only to lavad: the setting of the unit is named, and elsewhere not."""

    def refuse(reason: int) -> str:
        def fail(self: Path, *words: object, **more: object) -> None:
            raise OSError(reason, os.strerror(reason))

        monkeypatch.setattr(Path, "mkdir", fail)
        with pytest.raises(CannotWrite) as caught:
            LogFiles(tmp_path / "logdir", Rules()).open(Position("c", 0))
        return str(caught.value)

    assert f"systemctl edit lavad, with ReadWritePaths={tmp_path}/logdir in [Service]" in refuse(errno.EROFS)
    assert "systemctl" not in refuse(errno.EACCES)
