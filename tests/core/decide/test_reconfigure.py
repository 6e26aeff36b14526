"""Reconfiguration while jobs run, and queues that administrators close and inactivate."""

from dataclasses import replace
from typing import Any

import pytest

from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.queues import Queue
from lavad.core.queries.pending_reasons import explain
from lavad.core.scheduling.cycle import Worklist
from lavad.simulator.cluster.restart import reborn
from tests.builders import ANN, ROOT, Story, a_host, a_job

PLAIN = Policy(queues=(Queue("normal"), Queue("other", 5)))


def a_story(*hosts: Any, policy: Policy = PLAIN) -> Story:
    """One host of four slots unless others are given."""
    return Story(*(hosts or (a_host("n1", 4),)), policy=policy)


def reconfigure(story: Story, **changes: Any) -> None:
    """Apply the plain policy with these changes."""
    story.do(c.Reconfigure(replace(PLAIN, **changes)))


def rule(story: Story, queue: str, action: c.QueueAction, caller: c.Caller = ROOT) -> None:
    """Issue badmin's command on a queue."""
    story.do(c.RuleQueue(queue, action, caller, "because"))


def test_slots_of_hosts_follow_the_files() -> None:
    """MXJ below the running slots: jobs go on, none starts there, others start elsewhere; above: pending jobs start."""
    story = a_story(a_host("n1", 4), a_host("n2", 1))
    first = [story.run(a_job()) for _ in range(4)]
    reconfigure(story, host_rules={"n1": HostRule(slots=2)})
    on_other, waiting = story.submit(a_job()), story.submit(a_job())
    story.plan()
    assert story.where(on_other) == ["n2"]
    assert story.where(waiting) == []
    for key in first[:3]:
        story.finished("n1", key)
    story.plan()
    assert story.where(waiting) == ["n1"]
    more = [story.submit(a_job()) for _ in range(3)]
    story.plan()
    assert [story.where(job) for job in more] == [[], [], []]
    reconfigure(story)
    story.plan()
    assert [story.where(job) for job in more] == [["n1"], ["n1"], []]


def test_a_host_that_joins_later_gets_its_row() -> None:
    """By name, by model, by default; the offered facts are kept for later reconfigurations."""
    rules = {
        "n2": HostRule(slots=3, resources=frozenset({"ib"})),
        "big": HostRule(slots=7),
        "default": HostRule(slots=1),
    }
    story = a_story(a_host("n1", 4), policy=replace(PLAIN, host_rules=rules, cpu_factors={"big": 2.5}))
    story.join(a_host("n2", 4, resources=frozenset({"gpu"})))
    story.join(a_host("n3", 4, model="big"))
    hosts = story.cluster.hosts
    assert [hosts[name].facts.slots for name in ("n1", "n2", "n3")] == [1, 3, 7]
    assert hosts["n2"].facts.resources == {"gpu", "ib"}
    assert hosts["n3"].facts.cpu_factor == 2.5
    reconfigure(story)
    assert [host.facts.slots for host in hosts.values()] == [4, 4, 4]


def test_a_host_that_the_files_take_out_of_service() -> None:
    """server 0: running jobs go on, none starts there."""
    story = a_story()
    key = story.run(a_job())
    reconfigure(story, host_rules={"n1": HostRule(is_server=False)})
    waiting = story.submit(a_job())
    story.plan()
    assert story.where(waiting) == []
    story.finished("n1", key)
    story.plan()
    assert story.where(waiting) == []


def test_a_host_that_runs_no_jobs_is_not_closed() -> None:
    """A login host takes none anyway: badmin says so instead of done. One that was closed before can be opened."""
    story = a_story(a_host("n1"), a_host("n2"))
    story.do(c.CloseHost("n1", ROOT))
    reconfigure(story, host_rules={name: HostRule(is_server=False) for name in ("n1", "n2")})
    with pytest.raises(Refused, match=r"^n2: Host does not run jobs$"):
        story.do(c.CloseHost("n2", ROOT))
    assert not story.cluster.hosts["n2"].closed_by
    story.do(c.OpenHost("n1", ROOT))
    assert not story.cluster.hosts["n1"].closed_by


def test_jobs_of_a_removed_queue_are_kept() -> None:
    """Running ones go on; pending ones neither start nor get lost, and no others are accepted."""
    story = a_story()
    running = story.run(a_job(queue="other"))
    waiting = story.submit(a_job(queue="other"))
    reconfigure(story, queues=(Queue("normal"),))
    story.plan()
    assert story.state(running.job) is JobState.RUN
    assert story.state(waiting) is JobState.PEND
    with pytest.raises(Refused):
        story.submit(a_job(queue="other"))
    story.finished("n1", running)
    reconfigure(story)
    story.plan()
    assert story.where(waiting) == ["n1"]


def test_a_removed_queue_is_shut_whatever_was_done_to_it() -> None:
    """After a badmin qopen it still accepts no jobs, and can't be opened until a file defines it again."""
    story = a_story()
    story.do(c.RuleQueue("other", c.QueueAction.OPEN, ROOT))
    waiting = story.submit(a_job(queue="other"))
    reconfigure(story, queues=(Queue("normal"),))
    story.plan()
    assert story.state(waiting) is JobState.PEND
    queue = story.cluster.policy.by_name["other"]
    assert (queue.open, queue.active) == (False, False)
    with pytest.raises(Refused, match=r"other: Not in lsb\.queues any more"):
        story.do(c.RuleQueue("other", c.QueueAction.OPEN, ROOT))
    reconfigure(story)
    story.plan()
    assert story.where(waiting) == ["n1"]


def test_a_master_that_starts_without_a_queue_keeps_its_jobs() -> None:
    """The files were changed while no master ran: the jobs are pending in a queue of which only the name is known."""
    story = a_story()
    waiting = story.submit(a_job(queue="other"))
    old = story.cluster
    old.configured = replace(PLAIN, queues=(Queue("normal"),))
    story.cluster = reborn(old)
    story.do(c.Reconfigure(old.configured))
    story.worklist = Worklist()
    story.join(a_host("n1", 4))
    story.plan()
    assert story.state(waiting) is JobState.PEND
    queue = story.cluster.policy.by_name["other"]
    assert (queue.open, queue.active) == (False, False)
    reconfigure(story)
    story.plan()
    assert story.where(waiting) == ["n1"]


def test_jobs_that_wait_are_sorted_anew() -> None:
    """An order by run limits needs other buckets than an order by submission."""
    story = a_story()
    whole = story.run(a_job(4))
    jobs = [story.submit(a_job(4, run_limit_s=limit)) for limit in (9000, 60)]
    story.plan()
    story.now += 30
    reconfigure(story, queues=(Queue("normal", order=JobOrder.SLOWDOWN),))
    story.finished("n1", whole)
    story.plan()
    assert [story.where(job) for job in jobs] == [[], ["n1"]]


def test_closed_and_inactive_queues() -> None:
    """A closed queue accepts nothing, an inactive one starts nothing, also after the files were read again."""
    story = a_story()
    waiting = story.submit(a_job())
    rule(story, "normal", c.QueueAction.CLOSE)
    rule(story, "normal", c.QueueAction.INACTIVATE)
    reconfigure(story)
    with pytest.raises(Refused, match="normal: Queue has been closed"):
        story.submit(a_job())
    story.plan()
    assert story.where(waiting) == []
    reasons = explain(story.cluster, story.cluster.jobs[waiting], 0, story.now)
    assert reasons[0].text == "The queue is inactivated by the administrator"
    rule(story, "normal", c.QueueAction.ACTIVATE)
    story.plan()
    assert story.where(waiting) == ["n1"]
    state = story.cluster.queue_states["normal"]
    assert (state.is_open, state.is_active, state.by, state.comment) == (False, True, "root", "because")


def test_who_may_rule_a_queue() -> None:
    """Administrators of the cluster, and the queue's own."""
    queues = (Queue("normal", administrators=frozenset({"kim"})), Queue("other"))
    story = a_story(policy=Policy(queues=queues))
    kim = c.Caller("kim", 1002)
    rule(story, "normal", c.QueueAction.CLOSE, kim)
    for queue, caller, sentence in (
        ("other", kim, "User permission denied"), ("normal", ANN, "User permission denied"),
        ("nowhere", ROOT, "nowhere: No such queue"),
    ):  # fmt: skip
        with pytest.raises(Refused, match=sentence):
            rule(story, queue, c.QueueAction.OPEN, caller)
