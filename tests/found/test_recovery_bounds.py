"""Attempts that hosts bring to a replaced database: under which lease they count, and whose word is taken."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from agents.ledger import Ledger
from agents.session import details
from lavad.adoption import Adoption
from lavad.api.agents import key_of
from lavad.api.recovering import Recovering
from lavad.commitmark import Mark
from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.model import HostFacts, HostShare, JobState, Key
from lavad.core.policy import Policy
from protos import agents_pb2 as pb
from protos import common_pb2
from tests.builders import Story, a_job

if TYPE_CHECKING:
    from lavad.specs import SpecShelf
    from lavad.store.store import Store


def found(lease_s: float) -> tuple[Story, Key]:
    """A site that has set leases; an attempt that was begun under another rule is found on its host."""
    story = Story(HostFacts("n1", 2, keeps_leases=True), policy=Policy(fence_after_s=60.0))
    key = Key(story.submit(a_job(rerunnable=True)), 0, 7)
    started = c.ReportStarted("n1", key, 4321, story.now, "", "")
    story.do(c.RecoverAttempt(key, None, (HostShare("n1", 1),), started_at=story.now, lease_s=lease_s))
    story.back("n1", c.HeldAttempt(key, started, launched=True))
    return story, key


def after_long_silence(story: Story) -> None:
    """The host is not heard for much longer than any lease."""
    for _ in range(3):
        story.now += 1000
        story.do(c.Tick())
        story.do(c.EndLeases())


def test_an_attempt_without_a_lease_is_not_taken_for_ended_when_it_was_found_anew() -> None:
    """Its shepherd never ends it, so a second start elsewhere would run beside it."""
    story, key = found(0.0)
    after_long_silence(story)
    assert story.state(key.job) is JobState.UNKWN


def test_an_attempt_with_a_lease_keeps_it_when_it_is_found_anew() -> None:
    """Its host has ended it, and it runs again."""
    story, key = found(60.0)
    after_long_silence(story)
    assert story.state(key.job) is JobState.PEND


def test_what_a_host_tells_unasked_is_not_heeded(tmp_path: Path) -> None:
    """It is asked when it has seen what was lost, and after an adoption once."""
    store = cast("Store", SimpleNamespace(mark=Mark("d", 21, 1_000_100)))
    adoption = Adoption(Cluster(Policy()), store, tmp_path, lambda: 0.0)
    lost, mine = Mark("d", 10, 90, 50), Mark("d", 21, 1_000_100, 2000)
    assert not adoption.asks("n1", lost, True)  # nothing was ever adopted
    assert not adoption.was_asked("n1")
    adoption.recall([(20, json.dumps({"databases": [], "before": ["d", 8, 40, 20]}))])
    assert not adoption.asks("n1", mine._replace(term=8, batch=40), False)
    assert adoption.asks("n1", lost, True)  # told without being asked: it is asked first
    assert not adoption.asks("n1", lost, True)
    assert adoption.was_asked("n1")
    adoption.back("n1", [])
    assert not adoption.was_asked("n1")
    assert not adoption.asks("n1", lost, False)


def test_a_host_puts_no_attempts_of_other_hosts_into_the_books() -> None:
    """One host of a cluster must not start jobs on all others."""
    key = common_pb2.AttemptKey(job=5, attempt=1)
    own, other = (
        pb.Held(key=key, order=pb.Order(stage=pb.Stage(allocation=[common_pb2.HostShare(host=name, slots=1)])))
        for name in ("n1", "n2")
    )
    hello = pb.Hello(held=[other, own])
    hello.facts.name = "n1"
    told = list(Recovering(Cluster(Policy()), cast("SpecShelf", None), hello, key_of).held())
    assert [share.host for one in told for share in one.allocation] == ["n1"]


def test_a_host_tells_in_one_message_what_it_holds_and_as_many_ends_as_fit() -> None:
    """A thousand ended jobs with the environments of users were more than a master takes, and the host stayed out."""
    ledger = Ledger()
    for job in range(1, 11):
        ledger.learn(pb.JobSpecBlob(job=job, user="a" * 1000))
        ledger.remember(pb.Held(key=common_pb2.AttemptKey(job=job, attempt=1)))
    specs, ended = details(ledger, 3500)
    assert [one.key.job for one in ended] == [8, 9, 10]
    assert {blob.job for blob in specs} == {8, 9, 10}
    specs, ended = details(ledger, 1 << 20)
    assert [one.key.job for one in ended] == list(range(1, 11))
