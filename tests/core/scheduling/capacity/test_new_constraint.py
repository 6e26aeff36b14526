"""A constraint that the product does not have: one class and one line, and every part of the scheduler asks it."""

import pytest

from lavad.core import commands as c
from lavad.core.cluster import Cluster
from lavad.core.events import NewJob
from lavad.core.model import Allocation, JobState, Key
from lavad.core.model.allocation import slots_of
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Reason
from lavad.core.model.rules.queues import Queue
from lavad.core.passes import slice_pass
from lavad.core.queries.pending_reasons import explain
from lavad.core.queries.start_estimate import forecast
from lavad.core.queries.suggestions import remedies
from lavad.core.scheduling.capacity import constraints
from lavad.core.scheduling.capacity.constraint import Constraint, Demand, Limit, Obstacle, Refusal
from lavad.core.scheduling.queueing.ordering import Ranking
from tests.builders import Story, a_cluster, a_host, a_job, in_one_go

MOST = 5
REASON = Reason(2999, "The power cap of the site has been reached")


class PowerCap(Constraint):
    """At most five slots in use in the whole cluster."""

    changes_with_time = False
    is_simulated = True

    def __init__(self, cluster: Cluster, _: float) -> None:
        self._used = sum(slots_of(one.booked) for one in cluster.attempts.values())

    def limit(self, demand: Demand) -> Limit:
        """Return the slots left."""
        return Limit(MOST - self._used)

    def is_checked(self, demand: Demand) -> bool:
        """False: only the number of slots counts."""
        return False

    def why(self, demand: Demand, allocation: Allocation | None = None) -> Obstacle | None:
        """Return an obstacle if too few are left."""
        wanted = slots_of(allocation) - slots_of(demand.given) if allocation else demand.request.slots_min
        return Obstacle(Refusal.FORBIDDEN, REASON) if wanted > MOST - self._used else None

    def take(self, demand: Demand, allocation: Allocation, sign: int = 1) -> None:
        """Count the slots."""
        self._used += sign * slots_of(allocation)


@pytest.fixture(autouse=True)
def _capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line."""
    monkeypatch.setattr(constraints, "CONSTRAINTS", (*constraints.CONSTRAINTS, PowerCap))


@pytest.fixture
def story() -> Story:
    return a_cluster(a_host("n1", 4), a_host("n2", 4))


def in_use(story: Story) -> int:
    """Slots held by attempts."""
    return sum(slots_of(one.booked) for one in story.cluster.attempts.values())


def test_starts_keep_it_and_go_on_when_there_is_room_again(story: Story) -> None:
    """The fast paths of single tasks and of backfilling are closed by it."""
    jobs = [story.submit(a_job(2)) for _ in range(4)]
    story.plan()
    assert in_use(story) == 4
    key = story.key(jobs[0])
    story.started("n1", key)
    story.finished("n1", key)
    story.plan()
    assert in_use(story) == 4
    assert story.state(jobs[3]) is JobState.PEND
    singles = [story.submit(a_job(1)) for _ in range(3)]
    story.plan()
    assert [story.state(job) is JobState.PEND for job in singles] == [False, True, True]


def test_a_job_of_a_range_takes_what_is_left(story: Story) -> None:
    """Its slots are the most that the cap leaves."""
    story.submit(a_job(2))
    job = story.submit(a_job(tasks_min=1, tasks_max=6))
    story.plan()
    assert slots_of(story.cluster.attempts[story.key(job)].booked) == 3


def test_a_reservation_waits_for_it(story: Story) -> None:
    """With backfilling as well no job goes beyond it."""
    queue = Queue("normal", backfill_depth=1)
    story = a_cluster(a_host("n1", 4), a_host("n2", 4), policy=Policy(queues=(queue,)))
    story.submit(a_job(4, run_limit_s=600))
    story.submit(a_job(2, run_limit_s=600))
    story.submit(a_job(1, run_limit_s=60))
    story.plan()
    assert in_use(story) == MOST


def test_an_outdated_plan_is_verified(story: Story) -> None:
    """Two plans made of one state: of the second nothing holds."""
    for _ in range(2):
        story.submit(a_job(4))
    first = slice_pass(story.cluster, story.worklist, 1000, story.now)
    other = replace_job(first, story.submit(a_job(4)))
    assert story.do(c.ApplyPlan(first)).reply == 0
    assert story.do(c.ApplyPlan(other)).reply == 1
    assert in_use(story) == 4


def replace_job(plan: object, job: int) -> object:
    """The same starts for another job, on the other host."""
    start = plan.starts[0]  # type: ignore[attr-defined]
    host = {"n1": "n2", "n2": "n1"}[start.allocation[0].host]
    shares = (start.allocation[0]._replace(host=host),)
    return plan._replace(starts=(start._replace(job=job, allocation=shares),))  # type: ignore[attr-defined]


def test_elastic_jobs_grow_up_to_it(story: Story) -> None:
    """Free slots beyond it are none."""
    story.run(a_job(tasks_min=1, tasks_max=8, resizable=True))
    story.plan()
    assert in_use(story) <= MOST


def test_preemption_does_not_pass_it() -> None:
    """Victims release four slots, but the job wants six."""
    queues = (
        Queue("low", is_preemptable=True),
        Queue("high", priority=50, preempts=(("low", 0),)),
    )
    story = a_cluster(a_host("n1", 4), a_host("n2", 4), policy=Policy(queues=queues))
    story.run(a_job(4, queue="low"))
    job = story.submit(a_job(6, queue="high"))
    story.plan()
    assert story.state(job) is JobState.PEND
    assert in_use(story) == 4


class CountedCap(PowerCap):
    """The same cap, for which victims count until they have ended, as they do for limits."""

    most = MOST

    def why(self, demand: Demand, allocation: Allocation | None = None) -> Obstacle | None:
        """Return an obstacle if too few are left."""
        wanted = slots_of(allocation) if allocation else demand.request.slots_min
        return Obstacle(Refusal.FORBIDDEN, REASON) if wanted > self.most - self._used else None


@pytest.fixture
def preempting(monkeypatch: pytest.MonkeyPatch) -> tuple[Story, list[Key]]:
    """Cluster whose hosts each run a job of one slot with all the memory; jobs of queue high end them."""
    monkeypatch.setattr(constraints, "CONSTRAINTS", (CountedCap,))
    queues = (
        Queue("low", is_preemptable=True),
        Queue("high", priority=50, preempts=(("low", 0),)),
    )
    story = a_cluster(a_host("n1", 4), a_host("n2", 4), policy=Policy(queues=queues, preempts_by_requeue=True))
    return story, [story.run(a_job(1, queue="low", memory_mib=8000)) for _ in range(2)]


def a_preemptor() -> NewJob:
    """Job of three slots on one host that fits beside no other."""
    return a_job(queue="high", slots_per_task=3, memory_mib=8000)


def test_claims_of_others_count(preempting: tuple[Story, list[Key]]) -> None:
    """The cap has room for one of two preemptors: the other one preempts nothing."""
    story, victims = preempting
    first, _ = (story.submit(a_preemptor()) for _ in range(2))
    story.plan()
    assert [claim.job for claim in story.cluster.claims.values()] == [first]
    assert [story.cluster.attempts[key].is_ending for key in victims].count(True) == 1


def test_claims_cleared_together_start_one_by_one(
    preempting: tuple[Story, list[Key]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cap falls while victims end: the second job no longer keeps within it."""
    story, victims = preempting
    monkeypatch.setattr(CountedCap, "most", 100)
    for _ in range(2):
        story.submit(a_preemptor())
    story.plan()
    assert len(story.cluster.claims) == 2
    for key in victims:
        story.finished(story.cluster.attempts[key].lead, key)
    monkeypatch.setattr(CountedCap, "most", MOST)
    story.plan()
    assert in_use(story) <= MOST
    assert not story.cluster.claims


def test_a_reservation_on_certain_hosts_knows_who_gives_it_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job on another host uses what the second reservation needs of the cap: that starts when it ends."""
    monkeypatch.setattr(constraints, "CONSTRAINTS", (CountedCap,))
    monkeypatch.setattr(CountedCap, "most", 6)
    policy = Policy(queues=(Queue("normal", backfill_depth=2),))
    story = a_cluster(*(a_host(name, 4) for name in ("n1", "n2", "n3")), policy=policy)
    for host, memory_mib, run_limit_s in (("n1", 8000, 1000), ("n2", 4000, 500), ("n2", 4000, 2000)):
        story.run(a_job(hosts=(host,), memory_mib=memory_mib, run_limit_s=run_limit_s))
    for host, memory_mib in (("n2", 4000), ("n1", 8000)):
        story.submit(a_job(hosts=(host,), slots_per_task=3, memory_mib=memory_mib, run_limit_s=5000))
    story.submit(a_job(hosts=("n3",), run_limit_s=60))
    story.plan()
    starts = [one.start_at for one in story.worklist.reservation_table.reservations]
    assert starts == [story.now + 500, story.now + 2000]


def test_its_reason_is_told_and_nothing_is_advised_against_it(story: Story) -> None:
    """The wait is explained with its words; no command would let the job start."""
    story.run(a_job(4))
    job = story.submit(a_job(2))
    story.plan()
    record = story.cluster.jobs[job]
    assert [one.reason for one in explain(story.cluster, record, 0, story.now)] == [REASON]
    assert in_one_go(remedies(story.cluster, record, 0, story.now)).commands == ()


def test_estimates_know_it(story: Story) -> None:
    """The job starts when the first has ended, although there are free slots now."""
    story.run(a_job(4, run_limit_s=600))
    job = story.submit(a_job(2, run_limit_s=600))
    story.plan()
    found = in_one_go(forecast(story.cluster, Ranking(story.cluster, story.now), story.cluster.jobs[job]))
    assert found.start_at == story.now + 600


def test_it_is_forgotten_with_its_line(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the line all eight slots are used."""
    monkeypatch.setattr(constraints, "CONSTRAINTS", constraints.CONSTRAINTS[:-1])
    for _ in range(2):
        story.submit(a_job(4))
    story.plan()
    assert in_use(story) == 8
