"""The replay starts every job in the same second as the rules of the plain policies, followed slowly."""

import copy

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lavad.simulator.replay import textbook
from lavad.simulator.replay.fast_replay import BriefReplay
from lavad.simulator.replay.replay import Replay
from lavad.simulator.replay.swf import TraceJob
from lavad.simulator.replay.workload import Machine, Overrun, of_trace
from tests.simulator.twin import TwinJob, replay

PROCESSORS = 6
Described = tuple[int, int, int, int, int]  # seconds after the one before, run, processors, estimate, user


def a_trace(described: list[Described]) -> list[TraceJob]:
    """Jobs in order of their submission, numbered from 1."""
    jobs, now = [], 0
    for number, (gap, run, processors, estimate, user) in enumerate(described, 1):
        now += gap
        jobs.append(TraceJob(number, now, run, processors, estimate, user))
    return jobs


def replayed(
    jobs: list[TraceJob], machine: Machine, policy: str, overrun: Overrun, is_brief: bool = True
) -> dict[int, float]:
    """Start of each job by number."""
    rules = textbook.policy(policy)
    kind = BriefReplay if is_brief else Replay
    replay = kind(of_trace(jobs, rules, overrun), machine.facts(), rules)
    return {ran.number: ran.start_s for ran in replay.run()}


def by_the_rules(jobs: list[TraceJob], policy: str, overrun: Overrun) -> dict[int, int]:
    """The same by the twin."""
    twins = [TwinJob(job.number, job.submit_s, job.run_s, job.processors, job.estimate_s) for job in jobs]
    return replay(copy.deepcopy(twins), PROCESSORS, policy, overrun.value)


traces = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 0, 1, 1, 2, 5]),
        st.integers(1, 9),
        st.integers(1, PROCESSORS),
        st.integers(1, 9),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("overrun", Overrun)
@settings(max_examples=120, deadline=None)
@given(traces, st.sampled_from([Machine(1, PROCESSORS), Machine(PROCESSORS, 1), Machine(2, PROCESSORS // 2)]))
@example([(0, 4, 3, 2, 1), (0, 3, 6, 3, 1), (1, 2, 3, 2, 1)], Machine(1, PROCESSORS))  # the first outruns its estimate
def test_starts_are_those_of_the_twin(
    policy: str, overrun: Overrun, described: list[Described], machine: Machine
) -> None:
    """For any trace, any overruns, and any division of the processors into hosts."""
    jobs = a_trace(described)
    assert replayed(jobs, machine, policy, overrun) == by_the_rules(jobs, policy, overrun)


@pytest.mark.parametrize("policy", ["fcfs", "easy", "conservative"])
@settings(max_examples=60, deadline=None)
@given(traces, st.sampled_from([Machine(1, PROCESSORS), Machine(2, PROCESSORS // 2)]))
def test_what_agents_say_meanwhile_changes_nothing(policy: str, described: list[Described], machine: Machine) -> None:
    """A replay that leaves out the reports that lead nowhere makes the same schedule as one that has them all."""
    jobs = a_trace(described)
    brief = replayed(jobs, machine, policy, Overrun.RUN_ON)
    assert brief == replayed(jobs, machine, policy, Overrun.RUN_ON, is_brief=False)
