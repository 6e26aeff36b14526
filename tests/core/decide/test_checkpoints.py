"""Checkpoints: requests and what hosts report of them."""

from dataclasses import replace

import pytest

from lavad.core import activity_events as a
from lavad.core import commands as c
from lavad.core.model import JobState, Key, SpecialOptions
from lavad.core.model.reasons import TERM_CHKPNT, Refused
from lavad.core.order_kinds import CheckpointOrder
from lavad.core.orders import Order
from lavad.core.step import Outcome
from tests.builders import ANN, BOB, Story, a_host, a_job

S = JobState


def running(story: Story, is_checkpointable: bool = True, array: str = "") -> Key:
    """A job that runs on the first free host; of an array its first element."""
    job = a_job(array=array)
    number = story.submit(
        job._replace(shared=replace(job.shared, special=SpecialOptions(checkpointable=is_checkpointable)))
    )
    story.plan()
    key = story.key(number, 1 if array else 0)
    story.started(story.where(number, key.index)[0], key)
    return key


def ask(story: Story, key: Key, force: bool = False, ends: bool = False, caller: c.Caller = ANN) -> Outcome:
    return story.do(c.CheckpointJob(story.target(key.job), caller, force, ends))


def migrate(story: Story, key: Key) -> Outcome:
    return story.do(c.RequeueJob(story.target(key.job), ANN, frozenset({S.RUN, S.USUSP}), migrates=True))


def told(story: Story, key: Key, number: int, began: float, error: str = "", ends: bool = False) -> list[str]:
    """The events that follow from a host's report."""
    host = story.cluster.attempts[key].lead
    return [type(one).__name__ for one in story.do(c.ReportCheckpoint(host, key, number, began, error, ends)).events]


def ended(story: Story, key: Key, reason: str, status: int = 9) -> None:
    host = story.cluster.attempts[key].lead
    story.do(c.ReportFinished(host, key, status, story.now, reason, also_released=True))


def requests(orders: list[Order]) -> list[tuple[str, int, bool, bool]]:
    return [
        (one.host, one.request.number, one.request.force, one.request.ends)
        for one in orders
        if isinstance(one, CheckpointOrder)
    ]


def test_a_request_is_open_until_its_host_has_answered() -> None:
    """The order is said again in each session of the host; the same answer twice is one."""
    story = Story(a_host("h1"))
    key = running(story)
    assert requests(ask(story, key, force=True).orders) == [("h1", 1, True, False)]
    with pytest.raises(Refused, match="A checkpoint of the job is being made"):
        ask(story, key)
    assert requests(story.back("h1", story.runs_there("h1", key))) == [("h1", 1, True, False)]
    assert told(story, key, 1, 100.0) == ["CheckpointEnded"]
    assert told(story, key, 1, 100.0) == []
    assert requests(story.back("h1", story.runs_there("h1", key))) == []
    assert requests(ask(story, key).orders) == [("h1", 2, False, False)]
    assert told(story, key, 2, 200.0, "there is no room") == ["CheckpointEnded"]
    assert told(story, key, 0, 300.0) == ["CheckpointEnded"]  # by the job's own period
    assert told(story, key, 9, 400.0) == []  # of no request
    assert story.state(key.job) is S.RUN


def test_an_answer_counts_although_its_hosts_clock_was_set_back() -> None:
    """Its request would stay open as long as the job runs, and refuse all others."""
    story = Story(a_host("h1"))
    key = running(story)
    ask(story, key)
    assert told(story, key, 1, 100.0) == ["CheckpointEnded"]
    ask(story, key, ends=True)
    assert told(story, key, 2, 40.0, ends=True) == ["CheckpointEnded"]
    assert told(story, key, 2, 40.0, ends=True) == []


def test_who_has_no_checkpoints() -> None:
    """Jobs without -k, those that wait or have ended, those of others; a silent host takes no request."""
    story = Story(a_host("h1", 2))
    plain, key = running(story, is_checkpointable=False), running(story)
    with pytest.raises(Refused, match="Job is not checkpointable"):
        ask(story, plain)
    with pytest.raises(Refused, match="User permission denied"):
        ask(story, key, caller=BOB)
    job = a_job()
    waiting = story.submit(job._replace(shared=replace(job.shared, special=SpecialOptions(checkpointable=True))))
    with pytest.raises(Refused, match="Job has not started yet"):
        ask(story, Key(waiting, 0, 1))
    story.finished("h1", key)
    with pytest.raises(Refused, match="already finished"):
        ask(story, key)


def test_a_job_ends_by_its_checkpoint() -> None:
    """-k: its end says so; if the checkpoint fails, the job goes on."""
    story = Story(a_host("h1"))
    key = running(story)
    ask(story, key, ends=True)
    told(story, key, 1, 100.0, "there is no room", ends=True)
    assert story.state(key.job) is S.RUN
    ask(story, key, ends=True)
    ended(story, key, TERM_CHKPNT)
    assert story.state(key.job) is S.EXIT
    end = story.job(key.job).end
    assert end is not None
    assert end.reason == TERM_CHKPNT


@pytest.mark.parametrize("is_told_first", [True, False])
def test_a_job_migrates_by_its_checkpoint(is_told_first: bool) -> None:
    """bmig: it is pending again, and avoids its host, whether its end or the checkpoint is reported first."""
    story = Story(a_host("h1"), a_host("h2"))
    key = running(story)
    first = story.cluster.attempts[key].lead
    assert requests(migrate(story, key).orders) == [(first, 1, False, True)]
    if is_told_first:
        assert told(story, key, 1, 100.0, ends=True) == ["CheckpointEnded", "JobDoomed"]
    ended(story, key, TERM_CHKPNT)
    story.plan()
    assert story.state(key.job) is S.STAGING
    assert story.where(key.job) != [first]


def test_a_job_that_ends_by_itself_meanwhile_does_not_migrate() -> None:
    """Its end is its own."""
    story = Story(a_host("h1"), a_host("h2"))
    key = running(story)
    migrate(story, key)
    ended(story, key, "", status=0)
    assert story.state(key.job) is S.DONE


@pytest.mark.parametrize("is_checkpointable", [True, False])
@pytest.mark.parametrize("named", [(), ("h1", "h2")])
def test_a_job_that_has_left_all_its_hosts_stays(is_checkpointable: bool, named: tuple[str, ...]) -> None:
    """bmig: it would wait for ever, since it keeps away from them; -m takes one of them all the same."""
    story = Story(a_host("h1"), a_host("h2"), *([a_host("h3", 0)] if named else []))
    job = a_job(hosts=named)
    special = SpecialOptions(checkpointable=is_checkpointable)
    key = story.run(job._replace(shared=replace(job.shared, rerunnable=True, special=special)))
    migrate(story, key)
    ended(story, key, TERM_CHKPNT)
    story.plan()
    key = story.key(key.job)
    story.started(story.where(key.job)[0], key)
    with pytest.raises(Refused, match="has left all other hosts that it may use; name one of them with bmig -m"):
        migrate(story, key)
    assert story.state(key.job) is S.RUN


@pytest.mark.parametrize("is_checkpointable", [True, False])
def test_a_job_goes_to_the_hosts_that_are_named(is_checkpointable: bool) -> None:
    """bmig -m: they are the job's from then on, and it avoids none of them; all is refused where there is none."""
    story = Story(a_host("h1"), a_host("h2"))
    job = a_job(rerunnable=not is_checkpointable)
    special = SpecialOptions(checkpointable=is_checkpointable)
    job = job._replace(shared=replace(job.shared, special=special))
    number = story.submit(job)
    story.plan()
    key = story.key(number)
    first = story.where(number)[0]
    story.started(first, key)
    with pytest.raises(Refused, match="nowhere: Bad host name"):
        story.do(migration(story, number, "nowhere"))
    assert story.job(number).shared.request.hosts == ()
    story.do(migration(story, number, first))
    ended(story, key, TERM_CHKPNT if is_checkpointable else "")
    story.plan()
    assert (story.state(number), story.where(number)) == (S.STAGING, [first])
    assert story.job(number).shared.request.hosts == (first,)


def migration(story: Story, number: int, host: str) -> c.MigrateJob:
    states = frozenset({S.STAGING, S.RUN, S.USUSP, S.SSUSP})
    moved = c.RequeueJob(story.target(number), ANN, states, migrates=True, may_stay=True)
    shared = story.job(number).shared
    new = a_job()._replace(shared=replace(shared, request=replace(shared.request, hosts=(host,))))
    return c.MigrateJob(c.ModifyJob(moved.target, new, ANN, "hosts", frozenset({"hosts"}), migrates=True), moved)


def test_bmod_lets_a_job_go_where_it_has_been() -> None:
    """A host that it avoids since it migrated is allowed again when its user names it; other changes leave that."""
    story = Story(a_host("h1"), a_host("h2"))
    key = running(story)
    first = story.cluster.attempts[key].lead
    migrate(story, key)
    ended(story, key, TERM_CHKPNT)
    for hosts, field in (((), "name"), ((first,), "hosts")):
        shared = story.job(key.job).shared
        assert f"~{first}" in shared.request.hosts
        new = a_job()._replace(shared=replace(shared, request=replace(shared.request, hosts=hosts)))
        story.do(c.ModifyJob(story.target(key.job), new, ANN, field, frozenset({field})))
    assert story.job(key.job).shared.request.hosts == (first,)


def test_elements_of_an_array_have_their_own() -> None:
    """Those that run; one with an open request is left out."""
    story = Story(a_host("h1", 2))
    key = running(story, array="1-3")
    story.started("h1", story.key(key.job, 2))
    events = ask(story, key).events
    assert [one.key.index for one in events if isinstance(one, a.CheckpointAsked)] == [1, 2]
    told(story, key, 1, 100.0)
    events = ask(story, key).events
    assert [one.key.index for one in events if isinstance(one, a.CheckpointAsked)] == [1]
