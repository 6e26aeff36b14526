"""Changes of running jobs (bmod -c, -o, -e): CPU limits of their processes, files of their output."""

import asyncio
import errno
import os
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from agents.attempts.ledger_entry import limits_for
from agents.shepherd import messages
from agents.shepherd.changes import output_files
from agents.shepherd.process import start
from protos.agents_pb2 import JobControl, JobSpecBlob, Limits, Order, OutputFiles
from protos.jobs_pb2 import Rlimit
from tests.agents.hosts import Host, Key, Place, blob, key_message, lines, stage
from tests.agents.told.starter import setup_of

pytestmark = pytest.mark.slow
READY = "echo before; echo wrong >&2; touch ready; while [ ! -e stop ]; do sleep 0.02; done; echo after"


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


async def change(host: Host, key: Key, version: int = 1, **fields: Any) -> None:
    """Give a running job other limits or files, as the master would."""
    await host.order(Order(key=key_message(key), limits=Limits(version=version, **fields)))


def soft(pid: int) -> str:
    """The CPU limit of a process."""
    limits = Path(f"/proc/{pid}/limits").read_text().splitlines()
    return next(line.split()[3] for line in limits if line.startswith("Max cpu time"))


def test_a_cpu_limit_holds_for_every_process_of_the_job_at_once(place: Place) -> None:
    """Of those that run and those that are started later; 0 lifts it; without one it is as at the start."""
    command = (
        "sleep 1000 & echo $$ $! > pids; touch ready; while [ ! -e stop ]; do sleep 0.02; done; ulimit -t; kill $!"
    )

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, command, rlimits=[Rlimit(name="cpu", soft=5000)]))
            await host.until(place.out("ready").exists)
            pids = list(map(int, place.out("pids").read_text().split()))
            assert [soft(pid) for pid in pids] == ["5000", "5000"]
            for version, fields, expected in (
                (1, {"cpu_limit_s": 4000}, "4000"),
                (2, {"cpu_limit_s": 0}, "unlimited"),
                (3, {}, "5000"),
                (4, {"cpu_limit_s": 6000}, "6000"),
            ):
                await change(host, key, version, **fields)
                await host.until(lambda expected=expected: [soft(pid) for pid in pids] == [expected] * 2)  # type: ignore[misc]
            assert soft(host.shepherd_of(key)) == "unlimited"
            place.out("stop").touch()
            assert (await host.report(key, "finished")).finished.status == 0
        assert lines(place.out())[0] == "6000"

    run(story())


def test_a_lowered_cpu_limit_ends_a_busy_job(place: Place) -> None:
    """With the reason of a job that reached the limit it was submitted with."""

    async def story() -> None:
        async with Host(place) as host:
            key = await host.run(blob(place, 1, "touch ready; exec sh -c 'while :; do :; done'"))
            await host.until(place.out("ready").exists)
            await change(host, key, cpu_limit_s=1)
            assert (await host.report(key, "finished")).finished.reason == "TERM_CPULIMIT"

    run(story())


def test_what_is_not_of_the_job_keeps_its_cpu_limit(place: Place) -> None:
    """A daemon that a command before the job has left, and a command that ends the job."""
    daemon = "setsid sleep 1000 > /dev/null 2>&1 & echo $! > daemon"
    control = JobControl(kind="TERMINATE", command="echo $$ > control; touch ready; exec sleep 1000")

    async def story() -> None:
        async with Host(place) as host:
            limits = [Rlimit(name="cpu", soft=5000)]
            job = blob(place, 1, "echo $$ > job; exec sleep 1000", pre_exec=daemon, rlimits=limits)
            key = await host.run(job, stage(controls=[control]))
            await host.report(key, "started")
            await host.signal(key, 0, "TERM_OWNER")
            await host.until(place.out("ready").exists)
            pids = [int(place.out(name).read_text()) for name in ("job", "control", "daemon")]
            await change(host, key, cpu_limit_s=4000)
            await host.until(lambda: soft(pids[0]) == "4000")
            assert [soft(pid) for pid in pids[1:]] == ["5000", "5000"]

    run(story())


async def ended(
    host: Host, place: Place, job: JobSpecBlob, *files: OutputFiles, index: int = 0, meanwhile: str = ""
) -> None:
    """Run a job that gets these files one after the other, and wait for its end."""
    key = await host.run(job, index=index)
    await host.until(place.out("ready").exists)
    pid = (await host.report(key, "started")).started.pid
    for version, one in enumerate(files, 1):
        await change(host, key, version, files=one, cpu_limit_s=9000 + version)
    last = f"{9000 + len(files)}"
    await host.until(lambda: soft(pid) == last)  # then the shepherd has the files, too
    if meanwhile:
        held = host.local.attempts.find(key[0], key[1])
        assert held is not None
        assert Path(held.output_path).read_text() == meanwhile
    place.out("stop").touch()
    assert (await host.report(key, "finished")).finished.status == 0
    for name in ("ready", "stop"):
        place.out(name).unlink()


def test_output_and_report_are_in_the_new_file(place: Place) -> None:
    """The newest name counts, with its patterns; until the end the output is read where it is."""

    async def story() -> None:
        async with Host(place) as host:
            job = blob(place, 7, READY, output="old.%J")
            newest = OutputFiles(output="new.%J")
            await ended(host, place, job, OutputFiles(output="other"), newest, meanwhile="before\nwrong\n")
        assert lines(place.out("new.7")) == ["before", "wrong", "after"]
        assert "Subject: Job 7: <job>" in place.out("new.7").read_text()
        assert place.out("new.7").stat().st_uid == place.user.pw_uid
        assert [file.name for file in place.work.iterdir()] == ["new.7"]

    run(story())


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_that_exists_is_appended_to_or_overwritten(place: Place, overwrite: bool) -> None:
    """Only what this attempt wrote is moved: the old file keeps what was in it before, and then is left as it is."""
    for name in ("old", "new"):
        place.out(name).write_text(f"from before in {name}\n")
        place.give(place.out(name))

    async def story() -> None:
        async with Host(place) as host:
            files = OutputFiles(output="new", output_overwrite=overwrite)
            await ended(host, place, blob(place, 1, READY, output="old"), files)
        assert lines(place.out("new")) == ["from before in new", "before", "wrong", "after"][overwrite:]
        assert lines(place.out("old")) == ["from before in old", "before", "wrong", "after"]

    run(story())


@pytest.mark.parametrize(
    ("error", "new", "output", "errors"),
    [
        ("e", "f", "before\nafter\n", {"f": "wrong\n"}),
        ("e", "", "before\nafter\nwrong\n", {}),
        ("e", "out", "before\nafter\nwrong\n", {}),
        ("", "f", "before\nwrong\nafter\n", {"f": ""}),
        ("e", "old", "before\nafter\n", {"old": "wrong\n"}),
    ],
)
def test_errors_move_apart_join_and_are_named(
    place: Place, error: str, new: str, output: str, errors: dict[str, str]
) -> None:
    """Those written together stay together: the new file is empty from then on, and the report names it."""

    async def story() -> None:
        async with Host(place) as host:
            job = blob(place, 1, READY, output="old", error=error)
            await ended(host, place, job, OutputFiles(output="out", error=new))
        text = place.out().read_text()
        assert text.partition("\n" + "-" * 60)[0] == output
        assert {file.name: file.read_text() for file in place.work.iterdir() if file.name != "out"} == errors
        assert ("Read file <" in text) == (new not in ("", "out"))
        assert f"Read file <{place.out(new)}> for stderr" in text or new in ("", "out")

    run(story())


def test_files_that_change_places_lose_nothing(place: Place) -> None:
    """Each is then both an old and a new one: none is emptied or removed."""

    async def story() -> None:
        async with Host(place) as host:
            job = blob(place, 1, READY, output="o", error="e")
            files = OutputFiles(output="e", error="o", output_overwrite=True, error_overwrite=True)
            await ended(host, place, job, files)
        assert lines(place.out("e")) == ["wrong", "before", "after"]
        assert lines(place.out("o")) == ["before", "after", "wrong"]

    run(story())


@pytest.mark.parametrize("name", ["out", "./out", "link"])
def test_the_same_file_stays_as_it_is(place: Place, name: str) -> None:
    """By its own name, another spelling or a link, even if it is to be overwritten."""
    place.out("link").symlink_to("out")

    async def story() -> None:
        async with Host(place) as host:
            files = OutputFiles(output=name, output_overwrite=True)
            await ended(host, place, blob(place, 1, READY, output="out"), files)
        assert lines(place.out()) == ["before", "wrong", "after"]
        assert place.out().read_text().count("Subject: ") == 1

    run(story())


@pytest.mark.parametrize(("name", "why"), [("no/such/out", "No such file or directory"), ("/dev/full/x", "Not a dir")])
def test_output_that_can_not_be_moved_stays_and_says_so(place: Place, name: str, why: str) -> None:
    """The old file has all of it, the report, and a sentence with the reason."""

    async def story() -> None:
        async with Host(place) as host:
            await ended(host, place, blob(place, 1, READY), OutputFiles(output=name, error=name))
        text = place.out().read_text()
        assert lines(place.out()) == ["before", "wrong", "after"]
        assert "Successfully completed." in text
        assert f"/{name.strip('/')} cannot be opened: {why}" in text
        assert f"What the job wrote stays in {place.out()}." in text
        assert "event=output_not_moved" in (place.state / "shepherds.log").read_text()

    run(story())


@pytest.mark.parametrize("why", ["copying took longer than", "No space left on device"])
def test_a_copy_that_fails_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    """A shepherd may not be silent for as long as a slow file system likes, and a disk may be full in the middle."""
    setup = setup_of(os.getuid(), os.getgid(), "")._replace(cwd=str(tmp_path), output="old")
    old, new = tmp_path / "old", tmp_path / "new"
    new.write_text("from before\n")
    streams = start.open_streams(setup, (1, 0, 1), -1, -1)
    os.write(streams.output, b"half of it and the rest")
    if why.startswith("copying"):
        monkeypatch.setattr(output_files, "COPY_S", -1.0)
    else:
        monkeypatch.setattr(output_files, "write_all", _write_half)
    after, told = output_files.move(setup, messages.OutputFiles("new", ""), (1, 0, 1), streams)
    after.close()
    assert why in told[0]
    assert told[0].endswith(f"What the job wrote stays in {old}.")
    assert (after.output, after.output_path) == (streams.output, str(old))
    assert (old.read_text(), new.read_text()) == ("half of it and the rest", "from before\n")


@pytest.mark.parametrize("is_wide", [False, True])
def test_a_copied_file_is_removed_unless_other_hosts_may_write_to_it(tmp_path: Path, is_wide: bool) -> None:
    """The new file exists, so that the old one can't have its name."""
    setup = setup_of(os.getuid(), os.getgid(), "")._replace(cwd=str(tmp_path), output="old", is_wide=is_wide)
    (tmp_path / "new").write_text("from before\n")
    streams = start.open_streams(setup, (1, 0, 1), -1, -1)
    os.write(streams.output, b"all")
    after, told = output_files.move(setup, messages.OutputFiles("new", ""), (1, 0, 1), streams)
    after.close()
    assert ((tmp_path / "new").read_text(), told) == ("from before\nall", [])
    assert (tmp_path / "old").exists() == is_wide


def _write_half(descriptor: int, data: bytes) -> None:
    os.write(descriptor, data[: len(data) // 2])
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_new_file_in_a_directory_or_in_one_of_the_job(place: Place) -> None:
    """As at the start: a directory gets a file with the job's number, relative names are below -outdir."""
    place.out("many").mkdir()
    place.give(place.out("many"))

    async def story() -> None:
        async with Host(place) as host:
            await ended(host, place, blob(place, 3, READY), OutputFiles(output="many"))
            job = blob(place, 4, READY, output="old", output_dir=str(place.out("%J")))
            await ended(host, place, job, OutputFiles(output="new"))
        assert lines(place.out("many") / "3.out") == lines(place.out("4") / "new") == ["before", "wrong", "after"]
        assert not place.out().exists()
        assert not (place.out("4") / "old").exists()

    run(story())


def test_a_device_takes_no_copy(place: Place) -> None:
    """Neither does one give any; the report is in the new file where that is one."""

    async def story() -> None:
        async with Host(place) as host:
            await ended(host, place, blob(place, 1, READY, output="/dev/null"), OutputFiles(output="new"))
            await ended(host, place, blob(place, 2, READY, output="old"), OutputFiles(output="/dev/null"))
        assert place.out("new").read_text().startswith("\n" + "-" * 60)
        assert place.out("old").read_text() == "before\nwrong\nafter\n"

    run(story())


def test_a_file_of_several_elements_is_copied_and_stays(place: Place) -> None:
    """Another element may write to it still."""

    async def story() -> None:
        async with Host(place) as host:
            await ended(host, place, blob(place, 1, READY, output="all"), OutputFiles(output="one"), index=1)
        assert lines(place.out("one")) == lines(place.out("all")) == ["before", "wrong", "after"]
        assert "Subject: Job 1[1]" in place.out("one").read_text()
        assert "Subject: " not in place.out("all").read_text()

    run(story())


def test_shepherds_get_the_fields_that_they_know() -> None:
    """Those of earlier versions keep their CPU limit and files, or the period of checkpoints as well."""
    limits = Limits(version=3, run_limit_s=60, deadline=5, memory_limit_mib=7, checkpoint_period_s=9, cpu_limit_s=0)
    limits.files.CopyFrom(OutputFiles(output="o", error="e", error_overwrite=True))
    known = (3, 60.0, 5.0, 7)
    assert limits_for(limits, messages.CHANGES_PERIODS - 1) == known
    assert limits_for(limits, messages.CHANGES_PERIODS) == (*known, 9.0)
    assert limits_for(limits, messages.PROTOCOL) == (*known, 9.0, 0, ("o", "e", False, True))
    assert limits_for(Limits(version=3), messages.PROTOCOL) == (3, 0.0, 0.0, 0, None, None, None)
