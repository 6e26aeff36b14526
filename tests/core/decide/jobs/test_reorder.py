"""btop and bbot: after any number of moves the order is the one requested."""

from random import Random

import pytest

from lavad.core import commands as c
from lavad.core.model import Key
from lavad.core.model.policy import Policy
from lavad.core.model.reasons import Refused
from tests.builders import ANN, BOB, ROOT, Story, a_cluster, a_host, a_job

GROWING = Policy(user_priority_max=10, priority_step=1, priority_step_s=60)


def order(story: Story) -> list[int]:
    """All waiting jobs in the order in which they would start."""
    buckets = story.cluster.pending.buckets.values()
    return [entry.job for entry in sorted(entry for bucket in buckets for entry in bucket)]


@pytest.mark.parametrize("policy", [Policy(), GROWING])
@pytest.mark.parametrize("seed", range(5))
def test_an_administrators_moves(policy: Policy, seed: int) -> None:
    """A list model in which jobs are removed and inserted gives the same order."""
    rng, story = Random(seed), a_cluster(policy=policy)
    for number in range(12):
        story.submit(a_job(caller=(ANN, BOB)[number % 2], slots=8 + number % 3))
        story.now += 0.25
    expected = order(story)
    for _ in range(40):
        job, place = rng.choice(expected), rng.choice((1, 2, 3, 50, -1, -2, -7, -50))
        reached = story.move(job, place, ROOT)
        expected.remove(job)
        where = min(place, len(expected) + 1) if place > 0 else max(place, -len(expected) - 1)
        assert reached == where
        expected.insert(where - 1 if where > 0 else len(expected) + where + 1, job)
        assert order(story) == expected


@pytest.mark.parametrize("place", [2, -2])
def test_there_is_always_room_between_two(place: int) -> None:
    """A script that moves job after job to the same place never runs out of positions between neighbours."""
    story = a_cluster(a_host("n1", slots=1))
    jobs = [story.submit(a_job(slots=2)) for _ in range(6)]
    for turn in range(300):
        job = jobs[1 + turn % 4]
        story.move(job, place, ROOT)
        now = order(story)
        assert now.index(job) == (1 if place > 0 else len(now) - 2)
        assert now[0] == jobs[0]
        assert now[-1] == jobs[5]


def test_a_user_moves_among_own_jobs_only() -> None:
    """The top of one's own jobs is not the top of the queue."""
    story = a_cluster()
    other = story.submit(a_job(slots=9, caller=BOB))
    first, second = story.submit(a_job(slots=9)), story.submit(a_job(slots=8))
    story.move(second, 1)
    assert order(story) == [other, second, first]
    with pytest.raises(Refused, match="User permission denied"):
        story.move(other, 1)


@pytest.mark.parametrize("place", [1, -1])
def test_an_administrator_moves_a_job_among_those_of_its_owner(place: int) -> None:
    """btop -u: the jobs of others keep their places before and after it."""
    story = a_cluster()
    before = story.submit(a_job(slots=9, caller=BOB))
    first, second, third = (story.submit(a_job(slots=9)) for _ in range(3))
    after = story.submit(a_job(slots=9, caller=BOB))
    reply = story.do(c.MoveJob(c.Target(second), place, ROOT, among_own=True)).reply
    assert reply.place == place
    expected = [second, first, third] if place > 0 else [first, third, second]
    assert [job for job in order(story) if job not in (before, after)] == expected
    assert order(story)[0] == before
    assert order(story)[-1] == after


def test_an_array_moves_as_a_whole() -> None:
    """Its elements stay together; held jobs can be moved, too, and keep the place until they are resumed."""
    story = a_cluster()
    first, array = story.submit(a_job(slots=9)), story.submit(a_job(slots=9, array="1-3"))
    held = story.submit(a_job(slots=9, hold=True))
    story.move(array, 1)
    story.move(held, 1)
    assert order(story) == [array, first]
    story.do(c.ResumeJob(story.target(held), ANN))
    assert order(story) == [held, array, first]


def test_a_moved_array_starts_as_an_array() -> None:
    """Its elements start, not the number 0 that only plain jobs have."""
    story = a_cluster(a_host("n1", slots=2))
    running, first = story.submit(a_job(slots=2)), story.submit(a_job(slots=2))
    story.plan()
    array = story.submit(a_job(array="1-3"))
    story.move(array, 1, ROOT)
    story.do(c.KillJob(story.target(running), ROOT))
    story.released("n1", story.key(running))
    story.plan()
    assert [key for key in story.cluster.attempts if key.job in (first, array)] == [Key(array, 1, 1), Key(array, 2, 1)]


def test_elements_changed_by_themselves_move_along() -> None:
    """Behind the others of their array, and to where the array is; they are no jobs to move, nor any to move past."""
    story = a_cluster()
    first, array = story.submit(a_job(slots=9)), story.submit(a_job(slots=9, array="1-3"))
    own = a_job(slots=9, array="1-3", run_limit_s=60)
    story.do(c.ModifyJob(story.target(array, "2"), own, ANN, "", frozenset({"run_limit_s"})))
    element = story.job(array, 2).number
    assert order(story) == [first, array, element]
    story.move(array, 1)
    assert order(story) == [array, element, first]
    assert story.move(first, 2) == 2
    with pytest.raises(Refused, match="moves as a whole: name it without an index"):
        story.do(c.MoveJob(story.target(array, "2"), 1, ANN))
    with pytest.raises(Refused, match="the job is not an array"):
        story.do(c.MoveJob(story.target(first, "2"), 1, ANN))
