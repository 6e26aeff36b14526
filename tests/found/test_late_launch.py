"""A launch order that reaches one of several hosts late does not undo the start on the others."""

import pytest

from agents.attempts.actions import Say
from agents.attempts.ledger import Ledger
from lavad.api.agents import _report
from lavad.core import commands as c
from lavad.core.model import JobState, Key
from lavad.core.orders import LaunchOrder, Order
from protos import agents_pb2 as pb
from protos.common_pb2 import AttemptKey
from tests.builders import Story, a_host, each


def a_ledger(key: Key) -> Ledger:
    """Of a host that is ready for the attempt."""
    ledger, wire = Ledger(), AttemptKey(job=key.job, attempt=key.attempt)
    ledger.learn(pb.JobSpecBlob(job=key.job))
    ledger.order(pb.Order(key=wire, allocation_version=1, stage=pb.Stage()))
    ledger.placed(tuple(key))
    ledger.staged(tuple(key))
    return ledger


def passed(orders: list[Order], ledger: Ledger, host: str, too_old: bool) -> list[object]:
    """Reports of the host when launch orders reach it, as the master receives them, and its other actions."""
    found: list[object] = []
    for one in orders:
        if isinstance(one, LaunchOrder) and one.host == host:
            wire = AttemptKey(job=one.key.job, attempt=one.key.attempt)
            order = pb.Order(key=wire, allocation_version=one.version, launch=pb.LaunchOrder())
            actions = ledger.order(order, too_old)
            found += [_report(host, act.report) if isinstance(act, Say) else type(act).__name__ for act in actions]
    return found


@pytest.mark.parametrize("late", ["n1", "n2"])
def test_a_host_that_was_cut_off_is_launched_when_it_can_be(late: str) -> None:
    """The job ran on one host and was ended, and did not run again, because the order was too old on the other."""
    story = Story(a_host("n1", 1), a_host("n2", 1))
    job = story.submit(each(2))
    story.plan()
    key = story.key(job)
    early = "n2" if late == "n1" else "n1"
    ledger = a_ledger(key)
    assert not passed(story.staged(late, key).orders, ledger, late, False)
    launched = story.staged(early, key).orders
    story.started(early, key)
    (word,) = passed(launched, ledger, late, True)
    assert isinstance(word, c.ReportStaged)
    again = story.do(word).orders
    assert passed(again, ledger, late, False) == ["Note", "Launch"]
    story.started(late, key)
    assert story.do(c.ReportStaged(late, key)).orders == []
    assert story.state(job) is JobState.RUN
    assert not story.job(job).attempt.doomed  # type: ignore[union-attr]


def test_a_host_is_not_launched_for_a_job_that_ends() -> None:
    """It was killed meanwhile."""
    story = Story(a_host("n1", 1), a_host("n2", 1))
    job = story.submit(each(2))
    story.plan()
    key = story.key(job)
    story.staged("n1", key)
    story.staged("n2", key)
    story.started(story.where(job)[0], key)
    story.kill(job)
    assert [
        order for order in story.do(c.ReportStaged("n2", key, 1, True)).orders if isinstance(order, LaunchOrder)
    ] == []
