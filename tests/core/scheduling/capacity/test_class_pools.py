"""Capacity pools of service classes: a percentage of slots, loans to some queues only, application profiles."""

from dataclasses import replace
from typing import Any

from lavad.core import commands as c
from lavad.core.model.policy import Application, Names, Policy, Pool, Queue
from lavad.core.queries.pending_reasons import explain
from lavad.core.queries.pool_usage import pool_usage
from lavad.simulator.cluster.restart import reborn
from tests.builders import BOB, ROOT, Story, a_cluster, a_host, a_job

ANN = Names(False, frozenset({"ann"}))
SHORT = Names(False, frozenset({"short"}))
PLAIN = Policy(queues=(Queue("normal"), Queue("short")), default_queue="normal")


def a_site(**pool: Any) -> Story:
    """Two hosts of four slots; of them half are those of ann's class."""
    gold = Pool("night/gold", **{"users": ANN, "slots_share": 0.5, "lends": False, **pool})
    return a_cluster(policy=replace(PLAIN, pools=(gold,), applications={"md": Application("md")}))


def started(story: Story, jobs: list[int]) -> int:
    """Plan; return how many of the jobs have hosts."""
    story.plan()
    return sum(bool(story.where(job)) for job in jobs)


def owned(story: Story) -> float | None:
    """Return the guaranteed slots of the only pool."""
    return next(iter(pool_usage(story.cluster))).guaranteed


def test_a_part_of_the_slots_stays_free_for_the_class() -> None:
    """Four of eight slots; its own jobs have them at once."""
    story = a_site()
    others = [story.submit(a_job(caller=BOB)) for _ in range(8)]
    assert started(story, others) == 4
    assert started(story, [story.submit(a_job()) for _ in range(4)]) == 4


def test_the_part_follows_hosts_and_files() -> None:
    """Hosts that join, leave or get other slots, a closed host, a restarted master, and other files."""
    story = a_site(slots_share=0.29, hosts=Names(True, frozenset({"n9"})))
    assert owned(story) == 2
    story.join(a_host("n3", 92))
    assert owned(story) == 29
    story.join(a_host("n9", 50))
    story.do(c.CloseHost("n3", ROOT, ""))
    assert owned(story) == 29
    story.join(a_host("n3", 12))
    assert owned(story) == 5
    pool = replace(story.cluster.policy.pools[0], slots_share=1.0)
    story.do(c.Reconfigure(replace(story.cluster.configured, pools=(pool,))))
    assert owned(story) == 20
    story.cluster = reborn(story.cluster)
    assert owned(story) == 20


def test_loans_to_the_queues_of_loan_policies() -> None:
    """Jobs of others find the class's slots taken; those of the queue borrow them, and give them back."""
    story = a_site(lends=True, borrowers=SHORT)
    others = [story.submit(a_job(caller=BOB)) for _ in range(8)]
    assert started(story, others) == 4
    told = explain(story.cluster, story.cluster.jobs[others[-1]], 0, story.now)
    assert "guaranteed to another capacity pool" in told[0].reason.text
    borrowers = [story.submit(a_job(caller=BOB, queue="short")) for _ in range(8)]
    assert started(story, borrowers) == 4
    assert started(story, others) == 4


def test_jobs_of_a_profile() -> None:
    """Jobs with other profiles, or none, are not the class's, though the same user submits them."""
    story = a_site(applications=Names(False, frozenset({"md"})))
    plain = [story.submit(a_job()) for _ in range(8)]
    its_own = [story.submit(a_job(application="md")) for _ in range(8)]
    assert started(story, plain) == 4
    assert started(story, its_own) == 4
