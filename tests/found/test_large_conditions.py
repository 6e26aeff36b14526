"""Dependency conditions on very many jobs, which must not block the master."""

import asyncio
import time
from typing import Any, cast

import pytest

from lavad.agent_links.spec_cache import SpecShelf
from lavad.api.jobs import submission
from lavad.core import commands as c
from lavad.core.decide.clock.tick import wake_at
from lavad.core.decide.jobs import dependencies
from lavad.core.language import dependency
from lavad.core.model import JobState
from lavad.core.model.reasons import Refused
from lavad.engine import Engine
from lavad.simulator.cluster.restart import reborn
from protos import jobs_pb2
from tests.builders import ANN, BOB, Story, a_cluster, a_job

JOBS = 300


def _with_jobs() -> Story:
    """A cluster with held jobs a0, a1 and so on."""
    story = a_cluster()
    for number in range(JOBS):
        story.submit(a_job(hold=True, name=f"a{number}"))
    return story


def test_a_condition_is_bounded_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name in it may match many jobs, and it may have hundreds of names: one bsub took minutes."""
    monkeypatch.setattr(dependencies, "MATCHES_MAX", JOBS)
    story = _with_jobs()
    assert story.submit(a_job(dependency='ended("a*")')) == JOBS + 1
    began = time.monotonic()
    with pytest.raises(Refused, match=f"speaks of more than {JOBS} jobs"):
        story.submit(a_job(dependency=" && ".join(['ended("a*")'] * 200)))
    assert time.monotonic() - began < 60


def test_a_condition_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was typed: a name in it that stood for 3,000 jobs was written out and parsed again, 1,000 times a batch."""
    story = _with_jobs()
    parsed: list[str] = []
    of_text = dependency._Reader.clause
    monkeypatch.setattr(dependency._Reader, "clause", lambda reader: parsed.append(reader.text) or of_text(reader))
    waits = story.submit(a_job(dependency='ended("a*")'))
    story.do(c.ModifyJob(story.target(waits), a_job(dependency='done("a*")'), ANN, "", frozenset({"dependency"})))
    assert parsed == ['ended("a*")', 'done("a*")']
    assert len(list(dependency.clauses_of(story.cluster.dependants.conditions[waits]))) == JOBS


def _refused(story: Story, condition: str) -> None:
    """It is said so, and neither a job nor a reference comes of it."""
    before = story.cluster.next_job, len(story.cluster.jobs), story.cluster.dependants.references(ANN.uid)
    with pytest.raises(Refused, match=f"conditions of waiting jobs of user <ann> would refer to more than {4 * JOBS}"):
        story.submit(a_job(dependency=condition))
    assert before == (story.cluster.next_job, len(story.cluster.jobs), story.cluster.dependants.references(ANN.uid))


def test_the_conditions_of_a_user_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of 1,000 jobs that waited for 3,000 others each made three million references to keep."""
    monkeypatch.setattr(dependencies, "REFERENCES_MAX", 4 * JOBS)
    story = _with_jobs()
    waiting = [story.submit(a_job(dependency='ended("a*")')) for _ in range(3)]
    waiting.append(story.submit(a_job(dependency='ended("a*")', array="1-2")))
    _refused(story, "ended(1)")
    _refused(story, 'ended("a*")')
    _refused(story, 'ended(1) || exit("a*") && done("a*")')
    story.submit(a_job(dependency="ended(1)", caller=BOB))
    story.cluster = reborn(story.cluster)
    _refused(story, "ended(1)")
    story.kill(waiting[0])
    story.do(c.ModifyJob(story.target(waiting[1]), a_job(dependency='done("a*")'), ANN, "", frozenset({"dependency"})))
    last = story.submit(a_job(dependency='ended("a*")'))
    _refused(story, "ended(1)")
    story.do(c.ModifyJob(story.target(last), a_job(dependency=""), ANN, "", frozenset({"dependency"})))
    for parent in range(1, JOBS + 1):
        story.kill(parent)
    assert story.cluster.dependants.references(ANN.uid) == JOBS  # done() is never met
    assert story.cluster.dependants.references(BOB.uid) == 0


@pytest.fixture
def evaluated(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Grows with each condition on one job that is evaluated."""
    clauses: list[object] = []
    of_clause = dependencies._clause
    monkeypatch.setattr(dependencies, "_clause", lambda *given: clauses.append(given[1]) or of_clause(*given))
    return clauses


def test_a_step_evaluates_no_more_than_its_budget(evaluated: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Conditions were counted, whatever they refer to: each end of a parent took as long as all of them do."""
    monkeypatch.setattr(dependencies, "EVALUATIONS_MAX", JOBS)
    monkeypatch.setattr(dependencies, "TICK_EVALUATIONS_MAX", 3 * JOBS)
    story = _with_jobs()
    small = [story.submit(a_job(dependency='ended("a*")')) for _ in range(5)]
    large = [story.submit(a_job(dependency='ended("a*") && exit("a*")')) for _ in range(2)]
    for parent in range(1, JOBS + 1):
        evaluated.clear()
        story.kill(parent)
        assert len(evaluated) <= JOBS
    assert set(large) <= set(story.cluster.dependants.conditions)
    for _ in range(5):
        assert wake_at(story.cluster, story.now) == story.now
        evaluated.clear()
        story.wait(0)
        assert len(evaluated) <= 3 * JOBS
        if not story.cluster.dependants.dependents_to_check:
            break
    assert not story.cluster.dependants.conditions
    assert {story.state(job) for job in small + large} == {JobState.PEND}


def test_an_array_is_evaluated_as_a_whole(evaluated: list[object]) -> None:
    """With -ti each of its elements was evaluated by itself, whenever a parent had ended."""
    story = _with_jobs()
    array = story.submit(a_job(array="1-1000", dependency='done("a*")', ends_orphan=True))
    evaluated.clear()
    story.kill(JOBS)
    assert len(evaluated) == JOBS
    assert story.array(array).is_over


def test_the_lists_of_a_condition_are_bounded_together() -> None:
    """Before names are looked up: a refused submission took as long as one of 200,000 conditions."""
    story = a_cluster()
    with pytest.raises(Refused, match="lists more than 10000 array elements"):
        story.submit(a_job(dependency=" && ".join(['ended("a[1-1000]")'] * 180)))
    with pytest.raises(Refused, match="a: No matching job found"):
        story.submit(a_job(dependency=" && ".join(['ended("a[1-1000]")'] * 10)))


def _batch(jobs: int, dependency: str) -> jobs_pb2.SubmitBatch:
    """Equal jobs to submit."""
    spec = jobs_pb2.JobSpec(command="true", cwd="/tmp", roles=[{}], dependency=dependency)
    return jobs_pb2.SubmitBatch(items=[jobs_pb2.SubmitItem(request_id=b"%d" % n, spec=spec) for n in range(jobs)])


def test_other_users_submit_while_a_batch_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch was one step for all users: up to 1,000 conditions were resolved, or refused, in one go."""
    monkeypatch.setattr(submission, "PORTION_S", 0.0)
    cluster, unused = _with_jobs().cluster, cast("Any", None)

    async def body() -> tuple[list[int], list[int]]:
        engine = Engine(cluster, lambda _, durable: durable(), lambda _: None, lambda: 1000.0)
        submissions = submission.Submissions(engine, SpecShelf(unused, unused), unused)
        large = asyncio.create_task(submissions.post(_batch(50, 'ended("a*")'), ANN))
        for _ in range(3):
            await asyncio.sleep(0)
        small = await submissions.post(_batch(1, ""), BOB)
        told = (await (await large)).results, (await small).results
        return [one.job for one in told[0]], [one.job for one in told[1]]

    large, small = asyncio.run(body())
    assert sorted(large + small) == list(range(JOBS + 1, JOBS + 52))
    assert large == sorted(large)
    assert JOBS + 1 < small[0] < JOBS + 10


def test_a_batch_evaluates_no_more_than_a_step(evaluated: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    """bkill of all parents was as many steps, each with evaluations of its own."""
    monkeypatch.setattr(dependencies, "EVALUATIONS_MAX", JOBS)
    story = _with_jobs()
    for _ in range(3):
        story.submit(a_job(dependency='ended("a*")'))
    evaluated.clear()

    async def body() -> None:
        engine = Engine(story.cluster, lambda _, durable: durable(), lambda _: None, lambda: 1000.0)
        engine.post(c.KillJob(story.target(parent), ANN) for parent in range(1, JOBS + 1))

    asyncio.run(body())
    assert len(evaluated) == JOBS
    story.wait(0)
    assert not story.cluster.dependants.conditions
