"""Absolute priorities that administrators set (bmod -aps), what is shown of them, and how often jobs are ranked."""

from dataclasses import replace

import pytest

from lavad.config.priorities.absolute import absolute_priority
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.priorities.absolute import NOTHING_GIVEN, read_given
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.users import Fairshare, Share
from lavad.core.queries.absolute_priority import absolute_value
from lavad.core.state.jobs import absolute_priorities
from lavad.store.rows import waits
from tests.builders import ANN, ROOT, Story, a_cluster, a_host, a_job


def _story(text: str, slots: int = 1, **queue: object) -> Story:
    normal = replace(Queue("normal", 30, absolute=absolute_priority(text)), **queue)
    return a_cluster(a_host("n1", slots), policy=Policy(queues=(normal, Queue("other", 30)), user_priority_max=100))


def _set(story: Story, job: int, text: str, caller: c.Caller = ROOT) -> None:
    new = a_job(priority=story.cluster.jobs[job].priority)._replace(absolute=read_given(text))
    story.do(c.ModifyJob(story.target(job), new, caller, "", frozenset({"absolute_priority"})))


def _order(story: Story) -> list[int]:
    """Jobs in the order in which they start on the only slot."""
    found = []
    while waiting := [job for job in story.cluster.jobs if story.state(job) is JobState.PEND]:
        story.plan()
        job = next(one for one in waiting if story.state(one) is not JobState.PEND)
        story.finished("n1", story.key(job))
        found.append(job)
    return found


def test_an_administrators_values_go_first() -> None:
    """System values before all others, the larger first; an admin value is added; what is reset is as calculated."""
    story = _story("WEIGHT[[JPRIORITY,1]]")
    jobs = [story.submit(a_job(priority=priority)) for priority in (90, 50, 50, 1, 1)]
    _set(story, jobs[2], "admin=60")
    _set(story, jobs[3], "system=5")
    _set(story, jobs[4], "system=5.5")
    _set(story, jobs[0], "system=9")
    _set(story, jobs[0], "")
    shown = [absolute_value(story.cluster, story.cluster.jobs[job], story.now) for job in jobs]
    assert [(one.value, one.is_system) for one in shown if one is not None] == [
        (90, False), (50, False), (110, False), (5, True), (5.5, True)
    ]  # fmt: skip
    assert shown[2] is not None
    assert shown[2].factors == (("WORK", 50), ("JPRIORITY", 50), ("ADMIN", 60))
    assert _order(story) == [jobs[4], jobs[3], jobs[2], jobs[0], jobs[1]]


def test_the_queues_of_a_group_are_ordered_together() -> None:
    """QUEUE_GROUP: by one value, at the priority of the queue that names the others; jobs of a queue between them by
    their priorities come after. QPRIORITY is that of each job's own queue."""
    rule = absolute_priority("WEIGHT[[JPRIORITY,1] [QPRIORITY,1]]")
    queues = (
        Queue("normal", 30, absolute=rule),
        Queue("low", 10, absolute=rule, group_priority=30),
        Queue("between", 20, absolute=rule),
    )
    story = a_cluster(a_host("n1", 1), policy=Policy(queues=queues, user_priority_max=100))
    asked = [("between", 100), ("low", 50), ("normal", 40), ("low", 90), ("normal", 20), ("low", 45)]
    jobs = [story.submit(a_job(queue=queue, priority=priority)) for queue, priority in asked]
    assert _order(story) == [jobs[3], jobs[2], jobs[1], jobs[5], jobs[4], jobs[0]]


def test_what_is_filled_in_behind_a_group_counts_with_its_run_limit() -> None:
    """Jobs below a queue that reserves are told apart by their run limits: it is the group's place that is below."""
    queues = (Queue("group", 70), Queue("member", 10, group_priority=70, backfill_depth=4), Queue("between", 40))
    index = Cluster(Policy(queues=queues)).new_pending_index()
    one = replace(a_job(queue="between").shared, run_limit_s=60)
    assert index.kind_of(one) != index.kind_of(replace(one, run_limit_s=3600))


def test_who_may_set_them_and_where() -> None:
    """Administrators; of pending jobs, in queues with APS_PRIORITY; and not at the submission."""
    story = _story("WEIGHT[[JPRIORITY,1]]")
    job, elsewhere = story.submit(a_job()), story.submit(a_job(queue="other"))
    with pytest.raises(Refused, match=r"^User permission denied$"):
        _set(story, job, "system=5", ANN)
    new = a_job(queue="other")._replace(absolute=read_given("admin=1"))
    with pytest.raises(Refused, match=r"^Queue <other> does not have APS_PRIORITY$"):
        story.do(c.ModifyJob(story.target(elsewhere), new, ROOT, "", frozenset({"absolute_priority"})))
    with pytest.raises(Refused, match=r"bmod -aps"):
        story.submit(new)
    story.plan()
    with pytest.raises(Refused, match=r"^Job has already started"):
        _set(story, job, "system=5")
    for text in ("system=0", "admin=1e3", "system=1000001"):
        with pytest.raises(Refused, match=r"^-aps: expected system=value or admin=value"):
            read_given(text)


def test_they_outlast_the_master() -> None:
    """They are stored with the start conditions of a pending job."""
    story = _story("WEIGHT[[JPRIORITY,1]]")
    job = story.submit(a_job())
    _set(story, job, "admin=-2.5")
    conditions = story.cluster.jobs[job].start_conditions
    assert conditions is not None
    assert waits.decode_start_conditions(waits.start_conditions_text(conditions))[0] == conditions
    _set(story, job, "")
    after = story.cluster.jobs[job].start_conditions
    assert after is None or after.absolute == NOTHING_GIVEN


def test_the_share_of_a_user_is_a_factor() -> None:
    """FS is the weighted dynamic priority, at most its limit."""
    shares = Fairshare((Share("default", 6, each=True, users=Share("x", 1).users),), run_job_factor=2.0)
    shares = replace(shares, shares=(replace(shares.shares[0], users=Policy().queues[0].users),))
    story = _story("WEIGHT[[FS,10]]LIMIT[[FS,25]]", fairshare=shares)
    job = story.submit(a_job())
    found = absolute_value(story.cluster, story.cluster.jobs[job], story.now)
    assert found is not None
    assert found.factors == (("FS", 25.0),)


def test_a_pass_ranks_no_job_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value is computed when a job is submitted and when its grace period ends, of a bounded number in one tick."""
    monkeypatch.setattr(absolute_priorities, "AT_ONCE", 5)
    story = _story("WEIGHT[[PROC,1]]GRACE_PERIOD[[PROC,1h]]")
    story.run(a_job())
    jobs = [story.submit(a_job()) for _ in range(8)]
    absolute = story.cluster.absolute
    ranks = [absolute.entry(story.cluster.jobs[job]).rank for job in jobs]
    assert ranks == [0.0] * 8
    value = absolute.value
    calls = []
    monkeypatch.setattr(absolute, "value", lambda record, at: calls.append(record.id) or value(record, at))
    for _ in range(3):
        story.plan()
        story.wait(60)
    assert not calls
    story.wait(3600)
    assert absolute.due_at <= story.now  # the running job is among the first five, and of no use there
    story.wait(0)
    assert absolute.due_at > story.now
    assert [absolute.entry(story.cluster.jobs[job]).rank for job in jobs] == [-1.0] * 8
