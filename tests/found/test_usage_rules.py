"""Resource usage of a job under any failures of its hosts, in the core alone."""

from types import SimpleNamespace

import pytest

from lavad.core import commands as c
from lavad.core.apply.charge import observe
from lavad.core.model import JobState, Key
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import ALL
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.users import Fairshare, Share
from lavad.core.model.usage import NO_ONE, HostUsage, depart, of_attempt
from lavad.core.state.attempts import JobEnd
from lavad.core.state.fairshare import Account
from lavad.store.rows import values
from lavad.store.rows.rows import RowMaker
from tests.builders import ANN, Story, a_cluster, a_host, a_job, each

SHARED = Policy((Queue("normal", 30, fairshare=Fairshare((Share("default", 1, ALL, True),))),))
HOSTS = ("n1", "n2", "n3")


def wide(policy: Policy | None = None) -> Story:
    """Three hosts of two slots."""
    return a_cluster(*[a_host(name, 2) for name in HOSTS], policy=policy)


def sample(story: Story, key: Key, host: str, cpu_s: float, memory_mib: int = 0, **more: float) -> None:
    """Report of a host on the attempt's usage there so far."""
    usage = HostUsage(cpu_s, memory_mib_max=memory_mib, **more)  # type: ignore[arg-type]
    observe(story.cluster, host, ((key, usage),))


def end_of(story: Story, job: int) -> JobEnd:
    """The record of an ended job."""
    end = story.job(job).end
    assert end is not None
    return end


def account(story: Story) -> Account:
    """The only account's."""
    found = story.cluster.shares.trees["normal"].account_of("ann")
    assert found is not None
    return found


def test_the_record_has_what_every_host_said_last_and_then_what_it_says_at_its_release() -> None:
    """It had the first host's alone."""
    story = wide(SHARED)
    key = story.run(a_job(6))
    lead, *others = story.where(key.job)
    for number, host in enumerate((lead, *others), 1):
        sample(story, key, host, 10.0 * number, 100 * number, memory_mib_mean=50.0, seconds=20.0)
    assert account(story).running.cpu_s == 60.0
    told = ((others[0], HostUsage(25.0, memory_mib_max=210)),)
    story.do(c.ReportFinished(lead, key, 0, story.now, "", 11.0, 110, user_s=9.0, seconds=20.0, others=told))
    assert (end_of(story, key.job).cpu_s, end_of(story, key.job).memory_mib_max) == (11 + 25 + 30, 110 + 210 + 300)
    assert (account(story).running.cpu_s, account(story).used.cpu_s) == (0.0, 66.0)
    for host, cpu_s in zip(others, (26.0, 33.0), strict=True):
        story.do(c.ReportReleased(host, key, usage=HostUsage(cpu_s, memory_mib_max=5)))
    story.released(lead, key)
    assert (end_of(story, key.job).cpu_s, end_of(story, key.job).memory_mib_max) == (11 + 26 + 33, 620)
    assert account(story).used.cpu_s == 70.0
    assert key not in story.cluster.attempts


def test_a_short_parallel_job_is_the_sum_of_its_hosts_although_none_was_heard_before_its_end() -> None:
    """Its other hosts could not be queried at the end; their usage in released is added to the first host's."""
    story = wide(SHARED)
    key = story.run(a_job(6))
    lead, *others = story.where(key.job)
    story.do(c.ReportFinished(lead, key, 0, story.now, "", 10.0, 100, also_released=True))
    for host in others:
        story.do(c.ReportReleased(host, key, usage=HostUsage(5.0, memory_mib_max=50)))
    assert (end_of(story, key.job).cpu_s, end_of(story, key.job).memory_mib_max) == (20.0, 200)
    assert account(story).used.cpu_s == 20.0


def test_an_elastic_job_keeps_what_hosts_used_that_it_gave_up() -> None:
    """Also if the host comes back and counts from zero; its memory is not counted twice."""
    story = wide(SHARED)
    key = story.run(a_job(tasks_min=2, tasks_max=6, resizable=True))
    attempt, lead = story.cluster.attempts[key], story.where(key.job)[0]
    last = story.where(key.job)[-1]
    for host in story.where(key.job):
        sample(story, key, host, 10.0, 100)
    story.do(c.ShrinkJob(c.Target(key.job), f"2*{last}", ANN))
    story.do(c.ReportResized(lead, key, attempt.resizing.version))
    story.do(c.ReportReleased(last, key, attempt.version, HostUsage(12.0, memory_mib_max=120)))
    assert last not in attempt.usage
    assert account(story).running.cpu_s == pytest.approx(32.0)
    story.now += 120
    story.do(c.WishSize(c.Target(key.job), 6, ANN))
    story.plan()
    story.do(c.ReportStaged(last, key, attempt.joined_with(last)))
    assert last in story.where(key.job)
    story.do(c.ReportResized(lead, key, attempt.resizing.version))
    sample(story, key, last, 1.0, 50)
    assert account(story).running.cpu_s == pytest.approx(33.0)
    story.do(c.ReportFinished(lead, key, 0, story.now, "", 10.0, 100))
    assert (end_of(story, key.job).cpu_s, end_of(story, key.job).memory_mib_max) == (33.0, 320)


def test_a_job_that_runs_again_is_counted_anew() -> None:
    """The first attempt's usage is in its own accounting row and charged; the next begins at zero."""
    story, maker = wide(SHARED), RowMaker()
    key = story.run(a_job(6, rerunnable=True))
    maker.rows_for(story.events, story.cluster)
    told = len(story.events)
    lead, *others = story.where(key.job)
    for host in (lead, *others):
        sample(story, key, host, 10.0, 100)
    story.do(c.ReportFinished(lead, key, 9, story.now, "supervisor lost", lost=True, also_released=True))
    for host in others:
        story.do(c.ReportReleased(host, key, usage=HostUsage(15.0, memory_mib_max=100)))
    assert story.state(key.job) is JobState.PEND
    batch = maker.rows_for(story.events[told:], story.cluster)
    assert batch.accounting[key][13:15] == (40.0, 300)
    assert account(story).used.cpu_s == 40.0
    again = story.plan() and story.key(key.job)
    assert isinstance(again, Key)
    assert again.attempt == 2
    assert not story.cluster.attempts[again].usage


def test_a_host_that_is_lost_keeps_its_last_sample() -> None:
    """The job has failed as a whole; the last known usage of the lost host stays in the record."""
    story = wide()
    key = story.run(a_job(6))
    lead, *others = story.where(key.job)
    for host in (lead, *others):
        sample(story, key, host, 10.0, 100)
    story.do(c.ReportFinished(lead, key, 9, story.now, "", 12.0, 100, also_released=True))
    story.do(c.ReportReleased(others[0], key))
    assert (end_of(story, key.job).cpu_s, end_of(story, key.job).memory_mib_max) == (32.0, 300)


def test_figures_outlive_a_master() -> None:
    """They are in the attempt's row: of its present hosts, and of released ones."""
    story = wide()
    key = story.run(a_job(tasks_min=2, tasks_max=6, resizable=True))
    attempt, lead = story.cluster.attempts[key], story.where(key.job)[0]
    last = story.where(key.job)[-1]
    for host in story.where(key.job):
        sample(story, key, host, 10.0, 100, user_s=8.0, seconds=5.0)
    story.do(c.ShrinkJob(c.Target(key.job), f"2*{last}", ANN))
    story.do(c.ReportResized(lead, key, attempt.resizing.version))
    story.released(last, key)
    names = ("job", "idx", "attempt", "version", "dispatched_at", "launched", "launch_due", "started_at", "pid",
             "hosts", "staged", "unreleased", "detail")  # fmt: skip
    row = SimpleNamespace(**dict(zip(names, values.allocation_row(attempt), strict=True)))
    restored = values.decode_attempt(row)  # type: ignore[arg-type]
    assert restored.usage == attempt.usage
    assert restored.departed == attempt.departed
    assert restored.departed.cpu_s == 10.0


def test_a_limit_reached_on_any_host_ends_the_job_with_its_reason() -> None:
    """Reported by a host with tasks alone, by one in its hello, or as the end of its part."""
    reason = "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit."
    for how in ("report", "hello", "part"):
        story = wide()
        job = each(3, rerunnable=True) if how == "part" else a_job(6, rerunnable=True)
        key = story.run(job)
        lead, other, _ = story.where(key.job)
        word = c.ReportLimit(other, key, reason)
        if how == "report":
            orders = story.do(word).orders
        elif how == "hello":
            orders = story.back(other, c.HeldAttempt(key, launched=True, limit_reached=word))
        else:
            orders = story.do(c.ReportFinished(other, key, 9, story.now, reason)).orders
        told = {order.host for order in orders if getattr(order, "reason", "") == reason}
        assert lead in told, how
        story.finished(lead, key, 9)
        assert story.state(key.job) is JobState.EXIT
        assert end_of(story, key.job).reason == reason


def test_the_mean_of_hosts_that_have_all_left() -> None:
    """It was 0 if the last host had left before the job's end was recorded."""
    attempt = SimpleNamespace(usage={"n1": HostUsage(1.0, memory_mib_mean=50.0, seconds=20.0)}, departed=NO_ONE)
    attempt.usage["n2"] = HostUsage(1.0, memory_mib_mean=30.0, seconds=10.0)
    depart(attempt, "n2")
    before = of_attempt(attempt)
    depart(attempt, "n1")
    assert before.memory_mib_mean == of_attempt(attempt).memory_mib_mean == 65.0
    read = SimpleNamespace(usage={}, departed=NO_ONE)
    values._take_usage(read, {"hosts": {}, "departed": [1.0, 0.0, 0.0, 50, 1000.0]})  # type: ignore[arg-type]
    assert read.departed.memory_mib_s == 1000.0  # a row of a master that kept no time
