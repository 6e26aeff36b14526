"""The smallest change that would help: each is tried, so it is true."""

from typing import Any

import pytest

from lavad.core.events import NewJob
from lavad.core.model.policy import Policy
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import Queue
from lavad.core.model.rules.resources import ComputeUnit, Resource, ResourceInstance, ResourceKind
from lavad.core.queries.request_changes import Advice, RequestChanges, advise, counsel, options
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.place import place
from tests.builders import Story, a_cluster, a_host, a_job, in_one_go


def ask(story: Story, job: NewJob) -> list[Advice]:
    """All advice for a job that was not submitted."""
    return in_one_go(advise(story.cluster.table, job.shared.request))


@pytest.fixture
def story() -> Story:
    """n1: 4 slots, 4000 MiB, 2 GPUs; n2: 4 slots, 2000 MiB; n3: 2 slots, 8000 MiB, with something on it."""
    story = a_cluster(a_host("n1", 4, 4000, gpus=2), a_host("n2", 4, 2000), a_host("n3", 3, 8000))
    story.run(a_job(1, hosts=("n3",)))
    return story


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (
            a_job(4, memory_mib=5000, one_host=True),
            {'-R "rusage[mem=4000] span[hosts=1]"', "-n 2"},
        ),
        (a_job(6, ptile=6), {'-R "span[ptile=4]"', "-n 4"}),
        (a_job(5, one_host=True), {"-Rn", "-n 4"}),
        (a_job(3, hosts=("n3",)), {"-mn", "-n 2"}),
        (a_job(1, select="maxslots > 9", memory_mib=100), {'-R "rusage[mem=100]"'}),
        (a_job(1, exclusive=True, hosts=("n3",)), {"-mn", "-xn"}),
        (a_job(1, gpus=3), {'-gpu "num=2"'}),
        (a_job(11), {"-n 10"}),
        (a_job(1, memory_mib=9000), {'-R "rusage[mem=8000]"'}),
    ],
)
def test_the_smallest_change_of_each_kind(story: Story, job: NewJob, expected: set[str]) -> None:
    """As options of bmod."""
    assert expected == {options(one) for one in ask(story, job)}


def test_what_fits_needs_no_advice(story: Story) -> None:
    """There is none."""
    assert ask(story, a_job(4)) == []


def test_two_things_wrong_at_once_have_no_single_cure(story: Story) -> None:
    """Neither another host nor less memory alone would suffice."""
    assert ask(story, a_job(5, hosts=("n2",), memory_mib=9000, one_host=True)) == []


@pytest.mark.parametrize("words", [{"memory_mib": 7777}, {"ptile": 3}, {"one_host": True}, {"gpus": 1}])
def test_no_advice_that_does_not_hold(story: Story, words: dict[str, Any]) -> None:
    """A change that is advised finds hosts, and a slightly smaller one does not."""
    for slots in range(1, 14):
        for one in ask(story, a_job(slots, **words)):
            assert place(FreeResources(story.cluster.table), one.request) is not None


def hear(story: Story, job: NewJob) -> RequestChanges:
    """Changes that would help, now or ever."""
    return in_one_go(counsel(story.cluster, job.shared.request))


def test_a_job_that_can_never_start_is_told_so_when_the_hosts_are_full(story: Story) -> None:
    """The change is the one that would suffice on idle hosts."""
    story.run(a_job(10))
    found = hear(story, a_job(5, one_host=True))
    assert found.is_hopeless
    assert {options(one) for one in found.changes} == {"-Rn", "-n 4"}


def test_a_job_that_only_has_to_wait_is_not(story: Story) -> None:
    """Full hosts are no reason to change anything."""
    story.run(a_job(10))
    assert hear(story, a_job(4, one_host=True)) == RequestChanges()


def _a_site() -> Story:
    """Two hosts of four slots, a rack each, with scratch that an elim reports: 20 now."""
    scratch = Resource("scratch", ResourceKind.NUMERIC, interval_s=10)
    lic = Resource("lic", ResourceKind.NUMERIC)
    where = tuple(ResourceInstance("scratch", "", frozenset({name})) for name in ("n1", "n2"))
    units = tuple(ComputeUnit(f"r{name}", "rack", Names(False, frozenset({name}))) for name in ("n1", "n2"))
    policy = Policy(
        queues=(Queue("normal", slot_reserve_s=600),),
        resources={"scratch": scratch, "lic": lic},
        resource_map=(*where, ResourceInstance("lic", "3", is_shared=True)),
        compute_units=units,
        compute_unit_types=("rack",),
    )
    story = a_cluster(a_host("n1", 4), a_host("n2", 4), policy=policy)
    for row in range(2):
        story.cluster.table.set_external(row, {"scratch": 20})
    return story


@pytest.mark.parametrize(
    ("asked", "is_hopeless"),
    [
        ({"rusage": "scratch=50"}, False),
        ({"select": "scratch > 50"}, False),
        ({"select": "scratch < 5 && maxslots > 2"}, False),
        ({"select": "!(scratch > 5)"}, False),
        ({"select": "r1m > 0.5 || lic > 7"}, False),
        ({"select": "tmp > 100000"}, False),
        ({"select": "mem > 7000"}, False),
        ({"select": "lic > 2"}, False),
        ({"select": "mem > 9000"}, True),
        ({"select": "lic > 3"}, True),
        ({"select": "scratch < 5 && maxslots > 9"}, True),
        ({"rusage": "lic=4,scratch=1"}, True),
    ],
)
def test_what_changes_by_itself_is_no_reason_for_never(asked: dict[str, Any], is_hopeless: bool) -> None:
    """Values of an elim and load may change at any time; memory and licences never exceed their totals."""
    assert hear(_a_site(), a_job(**asked)).is_hopeless is is_hopeless


def test_what_others_save_up_is_theirs_for_a_while_only() -> None:
    """Free slots that are reserved for a blocked job do not make another one infeasible."""
    story = _a_site()
    story.run(a_job(3, hosts=("n1",)))
    story.submit(a_job(7))
    story.plan()
    assert story.cluster.claims
    assert hear(story, a_job(4, cu="type=rack:maxcus=1", ptile=4)) == RequestChanges()
    assert hear(story, a_job(5, cu="type=rack:maxcus=1")).is_hopeless


def test_units_kept_for_one_job_are_free_on_idle_hosts() -> None:
    """cu[excl] ends with its job."""
    story = _a_site()
    story.run(a_job(2, cu="type=rack:excl", exclusive=True))
    assert not hear(story, a_job(8)).is_hopeless
