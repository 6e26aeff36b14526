"""Hosts are closed by bad health checks and reopened by good ones; what others have closed stays closed."""

import pytest

from lavad.core import commands as c
from lavad.core.model import JobState
from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue, QueueChecks
from tests.builders import ROOT, Story, a_host, a_job

BAD, GOOD, WARN = (False, True), (True, False), (False, False)


@pytest.fixture
def story() -> Story:
    """Four hosts of one slot."""
    return Story(*(a_host(f"n{number}", 1) for number in range(1, 5)))


def checked(story: Story, host: str, result: tuple[bool, bool], text: str = "GPU 3 fell off the bus") -> str:
    """A check has ended; who has the host closed now."""
    story.do(c.HostChecked(host, *result, text))
    return story.cluster.hosts[host].closed_by


def test_a_bad_check_closes_and_only_a_good_one_opens(story: Story) -> None:
    """No job is started there meanwhile, whatever other checks warn of."""
    assert checked(story, "n1", WARN) == ""
    assert checked(story, "n1", BAD) == "health check"
    assert story.cluster.hosts["n1"].comment == "health check: GPU 3 fell off the bus"
    job = story.submit(a_job(hosts=("n1",)))
    story.plan()
    assert story.state(job) is JobState.PEND
    assert checked(story, "n1", WARN) == "health check"
    assert checked(story, "n1", GOOD) == ""
    story.plan()
    assert story.where(job) == ["n1"]


def test_a_good_check_does_not_open_what_an_administrator_closed(story: Story) -> None:
    """Nor does a bad one put its name in place of the administrator's; hopen opens what a check has closed."""
    story.do(c.CloseHost("n1", ROOT, "new memory"))
    assert checked(story, "n1", GOOD) == "root"
    assert checked(story, "n1", BAD) == "root"
    checked(story, "n2", BAD)
    story.do(c.OpenHost("n2", ROOT))
    assert not story.cluster.hosts["n2"].closed_by


def test_checks_that_find_fault_with_all_hosts_close_no_more_than_half(story: Story) -> None:
    """The program itself is at fault then; a host that has been removed has no check."""
    assert [checked(story, f"n{number}", BAD) for number in range(1, 5)] == ["health check"] * 2 + [""] * 2
    checked(story, "n1", GOOD)
    assert checked(story, "n3", BAD) == "health check"
    assert not story.do(c.HostChecked("gone", *BAD)).events


CHECKED = Policy(queues=(Queue("normal", checks=QueueChecks(before="/opt/check", limit_s=60)),))


def test_a_host_that_refuses_a_job_for_its_check_is_closed_and_the_job_starts_elsewhere() -> None:
    """Nothing is charged for it, and no host is given up while its check may run."""
    story = Story(*(a_host(f"n{number}", 1) for number in range(1, 4)), policy=CHECKED)
    job = story.submit(a_job(2, ptile=1, hosts=("n1", "n2", "n3")))
    story.plan()
    key, hosts = story.key(job), story.where(job)
    story.staged(hosts[0], key)
    story.now += 65  # beyond the staging timeout
    story.hear("n1", "n2", "n3")
    story.do(c.Tick())
    assert story.state(job) is JobState.STAGING
    assert checked(story, hosts[1], BAD) == "health check"
    story.refused(hosts[1], key, host_fault=True)
    story.released(hosts[0], key)
    assert story.state(job) is JobState.PEND
    assert not story.cluster.shares.used()
    story.plan()
    assert hosts[1] not in story.where(job)
    assert len(story.where(job)) == 2


@pytest.mark.parametrize("opening", [c.HostChecked("n2", *GOOD), c.OpenHost("n2", ROOT)])
def test_a_host_that_is_opened_is_no_longer_avoided_for_what_it_refused(opening: c.Command) -> None:
    """The job starts there at once, not when the time for which a host is avoided after a refusal has passed."""
    story = Story(a_host("n1", 1), a_host("n2", 1), policy=CHECKED)
    job = story.submit(a_job(2, ptile=1, hosts=("n1", "n2")))
    story.plan()
    key = story.key(job)
    story.refused("n2", key, host_fault=True)
    story.released("n1", key)
    checked(story, "n2", BAD)
    story.plan()
    assert story.state(job) is JobState.PEND
    story.do(opening)
    story.plan()
    assert sorted(story.where(job)) == ["n1", "n2"]
