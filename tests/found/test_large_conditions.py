"""Dependency conditions on very many jobs, which must not block the master."""

import time

import pytest

from lavad.core.decide.jobs import dependencies
from lavad.core.model.reasons import Refused
from tests.builders import a_cluster, a_job

JOBS = 300


def test_a_condition_is_bounded_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each name in it may match many jobs, and it may have hundreds of names: one bsub took minutes."""
    monkeypatch.setattr(dependencies, "MATCHES_MAX", JOBS)
    story = a_cluster()
    for number in range(JOBS):
        story.submit(a_job(hold=True, name=f"a{number}"))
    assert story.submit(a_job(dependency='ended("a*")')) == JOBS + 1
    began = time.monotonic()
    with pytest.raises(Refused, match=f"speaks of more than {JOBS} jobs"):
        story.submit(a_job(dependency=" && ".join(['ended("a*")'] * 200)))
    assert time.monotonic() - began < 1.0
