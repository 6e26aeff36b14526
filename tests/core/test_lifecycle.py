"""State machine of a job: every pair of state and event, and a way out of every state."""

from typing import get_args

import pytest

from lavad.core import commands, events, plan
from lavad.core.apply.events import HANDLERS
from lavad.core.decide import DECIDERS
from lavad.core.decide.plans import PLANS
from lavad.core.lifecycle import TRANSITIONS, IllegalTransition, check, is_allowed
from lavad.core.model import FINAL, HOLDING, WAITING, JobState

EVENTS = get_args(events.Event)


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.__name__)
def test_each_pair_is_decided(state: JobState, event: type) -> None:
    """An event is legal exactly where the table says; any other state is an error that names both."""
    targets = TRANSITIONS.get((state, event), frozenset())
    assert is_allowed(state, event) == bool(targets)
    for target in set(JobState) - targets:
        with pytest.raises(IllegalTransition, match=state.name):
            check(state, _like(event), target)
    for target in targets:
        check(state, _like(event), target)


def _like(event: type) -> object:
    """Make an event of that type with arbitrary fields."""
    made: object = event(**dict.fromkeys(event.__annotations__))
    return made


def test_ended_is_ended() -> None:
    """No event is legal in a final state, except the requeue."""
    assert {event for state, event in TRANSITIONS if state in FINAL} == {events.JobRevived}


@pytest.mark.parametrize("state", sorted(set(JobState) - FINAL))
def test_every_state_has_a_way_out(state: JobState) -> None:
    """From each state some events lead to an end."""
    reached, before = {state}, set[JobState]()
    while reached != before:
        before = set(reached)
        reached |= {target for (source, _), targets in TRANSITIONS.items() if source in reached for target in targets}
    assert reached & FINAL


@pytest.mark.parametrize("state", sorted(HOLDING))
def test_whatever_holds_hosts_can_end_and_wait_again(state: JobState) -> None:
    """So no failure leaves a job stuck."""
    assert TRANSITIONS[state, events.JobFinished] == FINAL
    assert TRANSITIONS[state, events.JobRequeued] == WAITING


def test_the_named_unions_divide_the_states() -> None:
    """Each state is pending, holds hosts, or is final."""
    assert set(JobState) == WAITING | HOLDING | FINAL
    assert not WAITING & HOLDING
    assert not HOLDING & FINAL


def test_nothing_is_forgotten() -> None:
    """Each event has a handler, each command and each plan a decider."""
    assert set(HANDLERS) == set(EVENTS)
    kinds = {kind for kind in get_args(commands.Command) for kind in (get_args(kind) or (kind,))}
    assert set(DECIDERS) == kinds
    assert set(PLANS) == set(get_args(plan.Plan))
