"""HOSTS of a queue confine its jobs, whatever they request, and apply anew after each change of rules or jobs."""

from dataclasses import replace

import pytest

from lavad.core import commands as c
from lavad.core.decide.jobs.request import request_of, rules_for
from lavad.core.model import NO_OPTIONS, JobState, RoleAsked
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.queries.pending_reasons import explain
from lavad.core.queries.start_estimate import forecast
from lavad.core.queries.suggestions import Suggestions, remedies
from lavad.core.scheduling.queueing.ordering import Ranking
from lavad.simulator.cluster.restart import reborn
from tests.builders import ANN, ROOT, Story, a_cluster, a_host, a_job, in_one_go


def some(*names: str) -> Names:
    """These hosts."""
    return Names(False, frozenset(names))


RULES = Policy(queues=(Queue("normal", 30, hosts=some("n2")), Queue("wide", 20), Queue("shut", 10, active=False)))


@pytest.fixture
def story() -> Story:
    """Two hosts of four slots, one of them in use by the normal queue."""
    return a_cluster(a_host("n1", 4), a_host("n2", 4), policy=RULES)


def placed(story: Story, **job: object) -> list[str]:
    """Hosts on which a job starts at once."""
    number = story.submit(a_job(**job))  # type: ignore[arg-type]
    story.plan()
    return story.where(number)


def requested(story: Story, text: str, tasks: int = 1) -> dict[str, object]:
    """A job with that -R."""
    rules = rules_for(story.cluster.policy, story.cluster.table, None)
    return {"request": request_of([RoleAsked(tasks, tasks, requirement=text)], NO_OPTIONS, rules)[0]}


@pytest.mark.parametrize(
    "text", ["", "order[slots]", "span[ptile=1]", "select[maxslots > 1]", "rusage[mem=10]", "span[hosts=1]"]
)
def test_whatever_a_job_asks_for(story: Story, text: str) -> None:
    """All ways of selecting hosts are confined to the queue's."""
    assert placed(story, **requested(story, text)) == ["n2"]
    assert placed(story, queue="wide", **requested(story, text)) == ["n1"]


def test_exclusive_and_wide_jobs(story: Story) -> None:
    """A whole host, and more slots than the queue's hosts have."""
    assert placed(story, exclusive=True) == ["n2"]
    assert placed(story, slots=5) == []
    assert placed(story, slots=4, queue="wide") == ["n1"]


def test_preference_of_the_queue_and_of_the_job(story: Story) -> None:
    """The queue's preference applies unless the job has its own."""
    preference = (("n1", -1), ("n2", 3))
    story.do(c.Reconfigure(Policy(queues=(Queue("normal", host_preference=preference),))))
    assert placed(story) == ["n2"]
    assert placed(story, hosts=("n1", "n2")) == ["n2"]
    assert placed(story, hosts=("n1+1", "n2")) == ["n1"]


def test_the_first_host_is_none_of_the_queues(story: Story) -> None:
    """-m "n1! n2": the job can't start elsewhere; an unknown first host does no harm."""
    assert placed(story, hosts=("n1!", "n2"), slots=2) == []
    story.do(c.Reconfigure(replace(RULES, known_hosts=frozenset({"n9"}))))
    assert placed(story, hosts=("n9!", "n2")) == []


def test_other_hosts_by_new_rules(story: Story) -> None:
    """Pending jobs follow the files; running ones stay."""
    first, second = story.submit(a_job(4)), story.submit(a_job(4))
    story.plan()
    assert (story.where(first), story.where(second)) == (["n2"], [])
    story.do(c.Reconfigure(replace(RULES, queues=(Queue("normal", hosts=some("n1")),))))
    story.plan()
    assert (story.where(first), story.where(second)) == (["n2"], ["n1"])


def test_a_master_that_starts_again(story: Story) -> None:
    """The queue's hosts are not stored with the job, so they are those of the files at any time."""
    job = story.submit(a_job())
    story.cluster = reborn(story.cluster)
    story.worklist = type(story.worklist)()
    for name in ("n1", "n2"):
        story.join(a_host(name, 4))
    story.plan()
    assert story.where(job) == ["n2"]


def test_bswitch_and_bmod(story: Story) -> None:
    """The other queue's hosts apply from then on; a job whose own hosts are not among them is not switched."""
    story.run(a_job(4))
    job = story.submit(a_job(queue="shut", hosts=("n1",)))
    with pytest.raises(Refused, match="n1: Host or host group is not used by the queue"):
        modify(story, job, "queues", queue="normal", hosts=("n1",))
    modify(story, job, "queues", queue="wide", hosts=("n1",))
    story.plan()
    assert story.where(job) == ["n1"]
    other = story.submit(a_job(queue="normal"))
    with pytest.raises(Refused, match="not used by the queue"):
        modify(story, other, "hosts", hosts=("n1",))
    modify(story, other, "hosts", hosts=("n1", "n2"))


def modify(story: Story, job: int, field: str, **values: object) -> None:
    """bmod, or bswitch."""
    changed = a_job(**values)  # type: ignore[arg-type]
    story.do(c.ModifyJob(story.target(job), changed, ANN, "", frozenset({field}), field == "queues"))


def reasons(story: Story, job: int) -> list[tuple[int, tuple[str, ...]]]:
    """Number and hosts of each reason."""
    found = explain(story.cluster, story.cluster.jobs[job], 0, story.now)
    return [(one.code, one.hosts) for one in found]


def test_why_a_job_waits(story: Story) -> None:
    """1310 for hosts that the queue does not use, 1326 for those of them that the job names, 1311 for those not
    named."""
    story.run(a_job(4))
    assert reasons(story, story.submit(a_job())) == [(1310, ("n1",)), (1303, ("n2",))]
    named = story.submit(a_job(hosts=("n2",), queue="shut"))
    story.do(c.Reconfigure(replace(RULES, queues=(Queue("shut", hosts=some("n1")), Queue("normal")))))
    assert reasons(story, named) == [(1311, ("n1",)), (1326, ("n2",))]


def test_advice_keeps_to_the_queue(story: Story) -> None:
    """-mn would not help; fewer tasks and a queue that uses other hosts would."""
    job = story.submit(a_job(6, hosts=("n2", "n1")))
    story.plan()
    commands = ("bswitch wide {}", "bmod -n 4 {}")
    assert in_one_go(remedies(story.cluster, story.cluster.jobs[job], 0, story.now)) == Suggestions(commands, True)


def test_a_queue_that_would_not_start_it_is_no_advice(story: Story) -> None:
    """The other queue's hosts are full."""
    story.run(a_job(4, queue="wide"))
    job = story.submit(a_job(6))
    story.plan()
    assert in_one_go(remedies(story.cluster, story.cluster.jobs[job], 0, story.now)).commands == ("bmod -n 4 {}",)


def test_the_forecast_keeps_to_the_queue(story: Story) -> None:
    """The job waits for the end of what runs on the queue's host, although another one is idle."""
    story.run(a_job(4, run_limit_s=600))
    job = story.submit(a_job(4))
    story.plan()
    ranking = Ranking(story.cluster, story.now)
    assert in_one_go(forecast(story.cluster, ranking, story.cluster.jobs[job], 0)).start_at == story.now + 600


def test_an_elastic_job_grows_on_hosts_of_the_queue(story: Story) -> None:
    """Idle slots on other hosts are not used."""
    key = story.run(a_job(tasks_min=1, tasks_max=8, resizable=True))
    story.plan()
    assert {share.host for share in story.cluster.attempts[key].allocation} == {"n2"}


def test_preemption_takes_hosts_of_the_queue() -> None:
    """The victim is the job on a host of the queue."""
    queues = (Queue("urgent", 50, hosts=some("n2"), preempts=(("low", 0),)), Queue("low", 10))
    story = a_cluster(a_host("n1", 1), a_host("n2", 1), policy=Policy(queues=queues))
    victims = {story.where(key.job)[0]: key.job for key in [story.run(a_job(queue="low")) for _ in range(2)]}
    job = story.submit(a_job(queue="urgent"))
    story.plan()
    assert story.where(job) == ["n2"]
    assert [story.state(victims[name]) for name in ("n1", "n2")] == [JobState.RUN, JobState.SSUSP]


def test_administrators_may_force_it_elsewhere(story: Story) -> None:
    """brun overrides the queue's hosts, too."""
    job = story.submit(a_job())
    story.do(c.ForceJob(story.target(job), ROOT, (("n1", 0),)))
    assert story.where(job) == ["n1"]
