"""Orders of a queue's jobs: what each one needs in order to be a choice."""

import pytest

from lavad.config.queues import QUEUE
from lavad.core.apply.reconfigure import take_policy
from lavad.core.model.policy import Policy
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.rules.queues import Queue
from lavad.core.scheduling.capacity.allowance import NO_CONSTRAINTS
from lavad.core.scheduling.fast import easy
from lavad.core.scheduling.queueing.ordering import SCORES
from tests.builders import a_cluster


def test_an_order_by_score_has_one() -> None:
    """And no score stands for an order that would not ask it."""
    assert set(SCORES) == {order for order in JobOrder if order.is_scored}
    assert [order for order in JobOrder if not order.is_scored] == [JobOrder.SUBMISSION, JobOrder.ROUND_ROBIN]


@pytest.mark.parametrize("order", JobOrder)
def test_an_order_by_score_needs_run_limits_and_the_plain_path(order: JobOrder) -> None:
    """Its places change with time, which the short way for one reservation does not see."""
    queue, story = Queue("normal", order=order), a_cluster()
    take_policy(story.cluster, Policy(queues=(queue,)))
    assert queue.is_timed is order.is_scored
    assert bool(easy.ranks_of(story.cluster, NO_CONSTRAINTS)) is (order is JobOrder.SUBMISSION)


def test_the_manual_names_each_order() -> None:
    """As lsb.queues takes it."""
    assert QUEUE["LAVA_JOB_ORDER"].about == "lava's own: `submission`, `slowdown` or `round_robin`"
