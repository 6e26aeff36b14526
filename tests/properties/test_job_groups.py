"""Limits of job groups: what is set, raised and removed at any time calls every job back that waits for it."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lavad.core import commands as c
from lavad.core.events import NewJob
from tests.builders import ROOT
from tests.properties.examples import examples
from tests.properties.test_cycle import Player, first_difference

GROUPS = ("/a", "/a", "/a/b", "/d", "")


class Grouped(Player):
    """Random actions with jobs in groups, and with limits of these."""

    def __init__(self, seed: int, with_rules: bool) -> None:
        super().__init__(seed, with_rules)
        self.actions += [self.limit] * 4
        plain = self.story.submit

        def submit(job: NewJob) -> int:
            group = self.rng.choice(GROUPS)
            return plain(job._replace(shared=replace(job.shared, job_group=group)))

        self.story.submit = submit  # type: ignore[method-assign]

    def limit(self) -> None:
        """bgadd or bgmod; a limit below what runs already would be no mistake, but the checks take it for one."""
        path, cluster = self.rng.choice(GROUPS[:-1]), self.story.cluster
        used = cluster.limits.used_by_group(path)
        limit = self.rng.choice((None, None, used, used + 1))
        self.story.do(c.SetJobGroup(path, limit, ROOT, path in cluster.job_groups))


@pytest.mark.slow
@examples(10)
@given(st.integers(0, 10**6), st.sampled_from([1, 3, 100_000]), st.booleans())
@example(41, 100_000, False)  # the last limit of all once went without calling anything back
def test_a_limit_of_a_group_calls_back_what_waits_for_it(seed: int, steps: int, with_rules: bool) -> None:
    """A pass over changes starts what a pass over everything would, with and without other limits."""
    assert first_difference(Grouped(seed, with_rules), steps) is None
