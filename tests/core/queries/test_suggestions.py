"""Commands that let a pending job start: one, and only if it was tried."""

import pytest

from lavad.core import commands as c
from lavad.core.events import NewJob
from lavad.core.model.policy import Policy
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.queues import JobDefaults, Queue
from lavad.core.model.rules.resources import Resource, ResourceInstance, ResourceKind
from lavad.core.queries.suggestions import Suggestions, remedies
from tests.builders import ROOT, Story, a_cluster, a_host, a_job, in_one_go


def ask(story: Story, job: NewJob, index: int = 0) -> Suggestions:
    """Submit the job, run a pass, and ask."""
    number = story.submit(job)
    story.plan()
    return in_one_go(remedies(story.cluster, story.cluster.jobs[number], index, story.now))


@pytest.fixture
def story() -> Story:
    """Two hosts of four slots, and queues that start nothing, short jobs only, or anything."""
    queues = (Queue("shut", 50, active=False), Queue("short", 40, run_limit_s=60), Queue("normal", 30))
    return a_cluster(a_host("n1", 4), a_host("n2", 4), policy=Policy(queues=queues))


def test_a_held_job_is_resumed(story: Story) -> None:
    """It is suggested if the job fits."""
    assert ask(story, a_job(hold=True)).commands == ("bresume {}",)


def test_a_held_job_on_full_hosts_has_two_things_in_its_way(story: Story) -> None:
    """No single command would start it."""
    story.run(a_job(8))
    assert ask(story, a_job(hold=True)) == Suggestions()


@pytest.mark.parametrize(("run_limit_s", "queue"), [(0, "normal"), (60, "short"), (61, "normal")])
def test_a_job_in_a_queue_that_starts_nothing_is_switched(story: Story, run_limit_s: int, queue: str) -> None:
    """The suggestion is the most urgent queue whose limits it keeps."""
    assert ask(story, a_job(queue="shut", run_limit_s=run_limit_s)).commands == (f"bswitch {queue} {{}}",)


def test_an_array_at_its_limit_gets_a_higher_one(story: Story) -> None:
    """One element more is suggested."""
    story.submit(a_job(array="1-3", limit=2))
    story.plan()
    assert in_one_go(remedies(story.cluster, story.cluster.jobs[1], 3, story.now)).commands == ('bmod -J "%3" 1',)


def test_the_fewest_closed_hosts_are_opened(story: Story) -> None:
    """One suffices for this job; for the other both are needed."""
    for name in ("n1", "n2"):
        story.do(c.CloseHost(name, ROOT))
    assert "badmin hopen n1" in ask(story, a_job(3)).commands
    assert "badmin hopen n1 n2" in ask(story, a_job(7)).commands


def test_a_request_is_made_smaller(story: Story) -> None:
    """As arguments of bmod; if hosts are full, what suffices once they are free."""
    smaller, costs = ("bmod -Rn {}", "bmod -n 4 {}"), ("span[hosts=1]", "")
    assert ask(story, a_job(5, one_host=True)) == Suggestions(smaller, is_hopeless=True, costs=costs)
    story.run(a_job(8))
    assert ask(story, a_job(6, one_host=True)) == Suggestions(smaller, is_hopeless=True, is_for_later=True, costs=costs)


def test_what_the_queue_requires_stays() -> None:
    """A job's own condition can be dropped, and that is suggested; its queue's can't, so no command includes it."""
    big = Queue("big", defaults=JobDefaults(requirement="select[maxmem>9000]"))
    story = a_cluster(a_host("n1", 4, 8000), policy=Policy(queues=(Queue("normal"), big)))
    own = ask(story, a_job(1, queue="normal", select="maxmem > 9000", memory_mib=10))
    assert (own.commands, own.costs) == (('bmod -R "rusage[mem=10]" {}',), ("select[maxmem > 9000]",))
    assert ask(story, a_job(1, queue="big", select="maxmem > 9000")) == Suggestions(is_hopeless=True)


def test_no_command_leaves_a_licence_out() -> None:
    """The job needs it and waits for it. Other causes are changed beside it."""
    lic = Resource("lic", ResourceKind.NUMERIC)
    held = ResourceInstance("lic", "1", is_shared=True)
    story = a_cluster(a_host("n1", 4), policy=Policy(resources={"lic": lic}, resource_map=(held,)))
    assert ask(story, a_job(1, rusage="lic=2")) == Suggestions(is_hopeless=True, is_for_later=True)
    assert ask(story, a_job(1, rusage="lic=1", select="maxslots > 9")).commands == ('bmod -R "rusage[lic=1]" {}',)


def test_full_hosts_have_no_remedy_but_time(story: Story) -> None:
    """No command is suggested."""
    story.run(a_job(8))
    assert ask(story, a_job(2)) == Suggestions()


def test_what_a_limit_of_the_host_forbids_is_no_advice() -> None:
    """One slot a host for a user: no smaller size lets her second job start, and the reason names no span."""
    story = a_cluster(a_host("n1", 4), policy=Policy(host_rules={"n1": HostRule(user_slots=1)}))
    story.run(a_job(1))
    found = ask(story, a_job(2))
    assert not [one for one in found.commands if "-n" in one]
