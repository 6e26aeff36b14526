"""LAVA_FENCE_AFTER: a host without contact ends its jobs after the lease, and only then they are rerun elsewhere."""

import asyncio
import os
import signal
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from agents.shepherd.lease import Lease, own_clock
from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.state.leases import DRIFT, MARGIN_S
from lavad.settings import read_settings
from lavad.store.rows.values import allocation_row, decode_attempt
from protos import conffile, endings
from tests.agents.conftest import place, somebody
from tests.agents.hosts import Host, Place, alive, blob, stage
from tests.builders import ANN, Story, a_host, a_job, each

__all__ = ["place", "somebody"]

S = JobState
LEASE_S = 60.0
KEY = (1, 0, 1)


def _site(**facts: bool) -> Story:
    """Three hosts of four slots whose agents keep leases."""
    facts = {"keeps_leases": True, **facts}
    hosts = (a_host(name, 4, **facts) for name in ("n1", "n2", "n3"))
    return Story(*hosts, policy=Policy(fence_after_s=LEASE_S))


def _cut_off(story: Story, *names: str, seconds: float) -> None:
    """Let these hosts be silent for a while; the master checks every second."""
    for _ in range(int(seconds)):
        story.now += 1
        story.hear(*(name for name in story.cluster.hosts if name not in names))
        story.do(c.Tick())
        story.do(c.EndLeases())


def _past_the_lease() -> float:
    return LEASE_S * (1 + DRIFT) + MARGIN_S + 2


@pytest.fixture
def story() -> Story:
    """The site."""
    return _site()


@pytest.mark.parametrize("rerunnable", [True, False])
def test_a_job_is_ended_when_the_lease_of_its_host_has_ended(rerunnable: bool) -> None:
    """Not before; then a rerunnable job runs elsewhere without the host's return, and any other one is EXIT."""
    story = _site()
    key = story.run(a_job(rerunnable=rerunnable))
    _cut_off(story, "n1", seconds=LEASE_S)
    assert story.state(key.job) is S.UNKWN
    _cut_off(story, "n1", seconds=_past_the_lease() - LEASE_S)
    if rerunnable:
        story.plan()
        assert story.where(key.job) == ["n2"]
    else:
        assert story.state(key.job) is S.EXIT
    assert not story.cluster.hosts["n1"].attempts


@pytest.mark.parametrize("silent", ["n1", "n2"])
def test_a_parallel_job_runs_again_when_its_other_hosts_have_ended_it(story: Story, silent: str) -> None:
    """One host of it is past its lease: the other one is ordered to end its part, and the rerun waits for that."""
    key = story.run(each(2, rerunnable=True))
    there = "n2" if silent == "n1" else "n1"
    _cut_off(story, silent, seconds=_past_the_lease())
    assert story.state(key.job) is not S.PEND
    story.finished(there, key, 9)
    assert story.state(key.job) is S.PEND


def test_a_job_that_fails_while_a_host_of_it_is_silent_runs_again(story: Story) -> None:
    """Its mpirun has noticed before the master that the other host's ranks are gone; they are waited for."""
    key = story.run(each(2, rerunnable=True))
    _cut_off(story, "n2", seconds=20)
    story.finished("n1", key, 1)
    assert story.state(key.job) is S.UNKWN
    story.plan()
    assert story.where(key.job) == ["n1", "n2"]
    _cut_off(story, "n2", seconds=_past_the_lease())
    assert story.state(key.job) is S.PEND


@pytest.mark.parametrize(("rerunnable", "status"), [(False, 1), (True, 0)])
def test_a_job_that_ends_well_or_may_not_run_again_is_over(story: Story, rerunnable: bool, status: int) -> None:
    """Regardless of its silent host."""
    key = story.run(each(2, rerunnable=rerunnable))
    _cut_off(story, "n2", seconds=20)
    story.finished("n1", key, status)
    assert story.state(key.job) is (S.EXIT if status else S.DONE)


def test_both_hosts_of_a_parallel_job_are_past_their_leases() -> None:
    """In the same moment."""
    story = _site()
    key = story.run(each(2, rerunnable=True))
    _cut_off(story, "n1", "n2", seconds=_past_the_lease() + 2)
    assert story.state(key.job) is S.PEND


def test_a_host_whose_agent_keeps_no_leases_is_waited_for() -> None:
    """An older agent's jobs may still run, so none of them is rerun."""
    story = _site(keeps_leases=False)
    key = story.run(a_job(rerunnable=True))
    _cut_off(story, "n1", seconds=3 * _past_the_lease())
    assert story.state(key.job) is S.UNKWN


def test_jobs_keep_the_lease_that_they_were_begun_with() -> None:
    """Fencing is configured while a job runs: its host knows no lease for it."""
    story = _site()
    story.do(c.Reconfigure(Policy()))
    key = story.run(a_job(rerunnable=True))
    story.do(c.Reconfigure(Policy(fence_after_s=LEASE_S)))
    _cut_off(story, "n1", seconds=2 * _past_the_lease())
    assert story.state(key.job) is S.UNKWN


def test_a_restart_of_the_master_begins_the_wait_anew() -> None:
    """The next master knows the lease, but not how long the host had been silent."""
    story = _site()
    key = story.run(a_job(rerunnable=True))
    row = type("Row", (), dict(zip(_columns(), allocation_row(story.cluster.attempts[key]), strict=True)))
    assert decode_attempt(row).lease_s == LEASE_S  # type: ignore[arg-type]
    _cut_off(story, "n1", seconds=LEASE_S)
    story.cluster.begin(story.now)
    _cut_off(story, "n1", seconds=LEASE_S)
    assert story.state(key.job) is S.UNKWN
    _cut_off(story, "n1", seconds=_past_the_lease() - LEASE_S)
    assert story.state(key.job) is S.PEND


def _columns() -> list[str]:
    from lavad.store.schema import allocations

    return [column.name for column in allocations.columns]


def test_a_master_that_did_not_listen_takes_no_host_for_silent() -> None:
    """After a stop of the master or a clock change the time in between is no host's silence."""
    story = _site()
    key = story.run(a_job(rerunnable=True))
    story.now += 3600
    story.cluster.excuse_silence(3599, story.now)
    story.do(c.Tick())
    story.do(c.EndLeases())
    assert story.state(key.job) is S.RUN


@pytest.mark.parametrize("again", [True, False])
def test_who_asks_is_told_when_the_lease_ends(again: bool) -> None:
    """brequeue and bkill show it: the hosts end their parts by themselves, so nothing need ever run twice."""
    story = _site()
    key = story.run(a_job())
    _cut_off(story, "n1", seconds=20)
    target = story.target(key.job)
    command = c.RequeueJob(target, ANN, frozenset({S.UNKWN}), False) if again else c.KillJob(target, ANN)
    reply = story.do(command).reply
    assert reply.startswith(
        f"n1 is silent: {'it runs again' if again else 'the job ends'} when the host is back, or in 4"
    )
    assert story.state(key.job) is (S.UNKWN if again else S.ZOMBI)
    _cut_off(story, "n1", seconds=_past_the_lease() - 20)
    assert story.state(key.job) is (S.PEND if again else S.EXIT)


def test_a_lease_shorter_than_the_silence_is_refused(tmp_path: Path) -> None:
    """A host must be known to be silent well before it ends its jobs."""
    lines = ["LAVA_LISTEN=127.0.0.1:1", "LAVA_ENROL_LISTEN=127.0.0.1:2", f"LAVA_STATE_DIR={tmp_path}"]
    path = tmp_path / conffile.FILE_NAME
    path.write_text("\n".join([*lines, "LAVA_FENCE_AFTER=20"]) + "\n")
    with pytest.raises(conffile.ConfError, match=r"LAVA_FENCE_AFTER must be at least twice LAVA_SILENT_AFTER \(15 s\)"):
        read_settings(tmp_path).policy()
    path.write_text("\n".join([*lines, "LAVA_FENCE_AFTER=120"]) + "\n")
    assert read_settings(tmp_path).policy().fence_after_s == 120
    path.write_text("\n".join(lines) + "\n")
    assert read_settings(tmp_path).policy().fence_after_s == 0


# -- the host's side, with real processes ------------------------------------------------------------------------------


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run one test in an event loop of its own."""
    asyncio.run(coroutine)


LONG_LEASE_S = (
    4.0  # enough to see a job start, or to renew it, also where a test is kept from the processor for seconds
)
ENDLESS = "trap '' INT TERM; (trap '' INT TERM; while :; do sleep 0.1; done) & while :; do sleep 0.1; done"


def test_a_shepherd_ends_its_job_though_there_is_no_agent(place: Place) -> None:
    """The agent has been killed, the job ignores signals; the next agent reports its end."""

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, ENDLESS, post_exec="touch after"), stage(lease_s=LONG_LEASE_S))
            started = (await host.report(KEY, "started")).started
            await host.leave()
            await _until_gone(started.pid)
            await host.start()
            last = host.last(KEY)
            assert last is not None
            assert last.finished.lost
            assert last.finished.reason == endings.FENCED[0]
            assert not place.out("after").exists()

    run(story())


def test_a_shepherd_ends_its_job_though_the_agent_hangs(place: Place) -> None:
    """The agent runs and does nothing."""

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, ENDLESS), stage(lease_s=2.0))
            finished = (await host.report(KEY, "finished")).finished
            assert finished.lost

    run(story())


def test_a_word_of_the_master_renews_the_lease(place: Place) -> None:
    """As long as messages arrive the job runs; a message that is old on arrival renews nothing."""

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, ENDLESS), stage(lease_s=LONG_LEASE_S))
            started = (await host.report(KEY, "started")).started
            begun = time.monotonic()
            while time.monotonic() < begun + LONG_LEASE_S + 1:
                await asyncio.sleep(0.2)
                await host.order()
            assert alive(started.pid)
            end = time.monotonic() + 60
            while not host.said(KEY, "finished") and time.monotonic() < end:
                await host.order(age_s=30.0)
                await asyncio.sleep(0.1)
            assert host.said(KEY, "finished")

    run(story())


def test_an_attempt_without_a_lease_runs_on(place: Place) -> None:
    """Even beside one whose lease has ended."""

    async def story() -> None:
        async with Host(place) as host:
            await host.run(blob(place, 1, ENDLESS), stage(lease_s=1.0))
            other = await host.run(blob(place, 2, ENDLESS), stage())
            started = (await host.report(other, "started")).started
            await host.report(KEY, "finished")
            assert alive(started.pid)
            os.kill(started.pid, signal.SIGKILL)

    run(story())


def test_a_word_of_an_earlier_life_of_the_machine_counts_for_nothing(tmp_path: Path) -> None:
    """The clock restarts with the machine: a time in the future would be a lease without an end."""
    before = Lease(str(tmp_path))
    before.renew(own_clock() + 1e6)
    now = Lease(str(tmp_path))
    now.begin()
    assert now.heard_at() == 0.0
    now.renew(own_clock())
    assert now.heard_at() == pytest.approx(own_clock(), abs=60)


async def _until_gone(pid: int) -> None:
    for _ in range(1200):
        if not alive(pid):
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"process {pid} lives")
