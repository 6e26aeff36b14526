"""Dependency conditions on very many jobs, which must not block the master."""

import time

import pytest

from lavad.core import commands as c
from lavad.core.decide.jobs import dependencies
from lavad.core.language import dependency
from lavad.core.model.reasons import Refused
from tests.builders import ANN, Story, a_cluster, a_job

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
    assert time.monotonic() - began < 1.0


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
