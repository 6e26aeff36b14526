"""Capacity pools of service classes: a percentage of slots, loans to some queues only, application profiles."""

from dataclasses import replace
from typing import Any

import pytest

from lavad.core import commands as c
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.applications import Application
from lavad.core.model.rules.names import ALL, Names
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.resources import Pool, ServiceClass
from lavad.core.queries.pending_reasons import explain
from lavad.core.queries.pool_usage import pool_usage
from lavad.simulator.cluster.restart import reborn
from tests.builders import ANN as HER
from tests.builders import BOB, ROOT, Story, a_cluster, a_host, a_job

ANN = Names(False, frozenset({"ann"}))
BOBS = Names(False, frozenset({"bob"}))
SHORT = Names(False, frozenset({"short"}))
MD = Names(False, frozenset({"md"}))
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


def a_site_with_a_class(**pool: Any) -> Story:
    """The same for all users, but only for their jobs of the class gold (bsub -sla)."""
    policy = a_site(users=ALL, service_class="gold", attaches=False, **pool).cluster.policy
    classes = {"gold": ServiceClass("gold", attaches=False), "tin": ServiceClass("tin")}
    return a_cluster(policy=replace(policy, service_classes=classes))


def test_only_jobs_that_name_the_class_have_its_slots() -> None:
    """Those of the same user without it, and of a class that no pool is for, find half of the slots taken."""
    story = a_site_with_a_class()
    plain = [story.submit(a_job(service_class=name)) for name in ("", "tin") * 4]
    its_own = [story.submit(a_job(service_class="gold")) for _ in range(4)]
    assert started(story, plain) == 4
    assert started(story, its_own) == 4
    assert story.cluster.pools.used[0]["slots"] == 4


def test_a_named_class_comes_before_the_pool_of_the_user() -> None:
    """A job with -sla is not of a pool that its user and queue match, whatever the order of the pools."""
    lab = Pool("lab", ANN, deserved={"slots": 8.0})
    story = a_site_with_a_class()
    story.do(c.Reconfigure(replace(story.cluster.configured, pools=(lab, *story.cluster.policy.pools))))
    job = story.submit(a_job(service_class="gold"))
    assert started(story, [job]) == 1
    assert [used["slots"] for used in story.cluster.pools.used] == [0, 1]
    assert story.cluster.pools.service_class_of(story.cluster.jobs[job].shared) == "gold"


def test_a_class_that_is_gone_counts_as_none() -> None:
    """Jobs that named it stay, and belong to the pool that their user and queue match."""
    story = a_site_with_a_class()
    jobs = [story.submit(a_job(service_class="gold")) for _ in range(8)]
    lab = Pool("lab", ANN, largest={"slots": 3.0})
    story.do(c.Reconfigure(replace(story.cluster.configured, pools=(lab,), service_classes={})))
    assert started(story, jobs) == 3


@pytest.mark.parametrize(
    ("rules", "job", "sentence"),
    [
        ({}, {"service_class": "lead"}, "lead: No such service class"),
        ({"users": BOBS}, {}, "gold: User cannot use the service class"),
        ({"queues": SHORT}, {}, "gold: Jobs of queue normal cannot use the service class"),
        ({"applications": MD}, {}, "gold: Jobs without an application profile cannot use the service class"),
        ({"applications": SHORT}, {"application": "md"},
         "gold: Jobs of application profile md cannot use the service class"),
    ],
)  # fmt: skip
def test_classes_that_a_job_cannot_name(rules: dict[str, Names], job: dict[str, str], sentence: str) -> None:
    """One that there is not, and those whose ACCESS_CONTROL leaves it out; it is changed to neither (bmod -sla)."""
    policy = replace(a_site_with_a_class().cluster.policy, service_classes={"gold": ServiceClass("gold", **rules)})
    story = a_cluster(policy=policy)
    new = a_job(**{"service_class": "gold", **job})
    with pytest.raises(Refused, match=f"^{sentence}$"):
        story.submit(new)
    plain = story.submit(a_job(application=job.get("application", "")))
    with pytest.raises(Refused, match=f"^{sentence}$"):
        story.do(c.ModifyJob(c.Target(plain), new, HER, "", frozenset({"service_class"})))
