"""Deletion of an agent's state directory while jobs run, with the agent killed: running jobs continue."""

import asyncio
import shutil
from pathlib import Path

import pytest

from agents.shepherd.lease import Lease, own_clock
from agents.shepherd.spool import ExitLog, frames
from tests.agents.hosts import Host, Place, alive, blob, stage

pytestmark = pytest.mark.slow

KEY = (1, 0, 1)
WAITS = "echo $$ >> starts; while [ ! -e stop ]; do sleep 0.02; done; exit 7"


def test_jobs_outlive_the_directory_of_their_agent(place: Place) -> None:
    """They used to be killed, and reported as 127, so that a host of the job was lost."""

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, WAITS), stage(lease_s=600.0))
            started = (await host.report(KEY, "started")).started
            shutil.rmtree(place.state)
            await host.leave()
            await host.until(lambda: (place.state / "shepherds").exists() and any(place.state.glob("shepherds/*.sock")))
            host.reports.clear()
            await host.start()
            assert alive(started.pid)
            shepherd = host.shepherd_of(KEY)
            await host.leave()  # and again, with the files remade by the shepherd
            place.out("stop").touch()
            await host.until(lambda: not alive(shepherd))  # which has written down the end
            assert not alive(started.pid)
            host.reports.clear()
            await host.start()
            last = host.last(KEY)
            assert last is not None
            assert last.finished.status == 7 << 8

    asyncio.run(story())


def test_a_log_that_was_deleted_is_written_anew(tmp_path: Path) -> None:
    """Without the record of its start, a job would be started again."""
    path = tmp_path / "1.exits"
    log = ExitLog(str(path))
    log.starting(KEY)
    log.append(b"first")
    before = path.read_bytes()
    log.restore()
    path.unlink()
    log.restore()
    assert path.read_bytes() == before
    log.append(b"second")
    assert list(frames(path.read_bytes()))[1:] == [b"first", b"second"]


def test_a_lease_goes_on_in_a_new_file(tmp_path: Path) -> None:
    """An empty one would mean no contact with the master ever, which would end the job."""
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    lease = Lease(str(old))
    heard_at = own_clock() - 1.0
    lease.renew(heard_at)
    lease.restore(str(new))
    assert lease.heard_at() == Lease(str(new)).heard_at() == heard_at
    other = Lease(str(new))
    other.renew(heard_at + 0.5)
    assert lease.heard_at() == heard_at + 0.5
