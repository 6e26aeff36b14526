"""All of the master's logic in one function: a command is decided, its events applied, its orders derived. Read this
first.

``step`` is deterministic: time comes in as ``now``, and there is no I/O. Replies and orders of an outcome may leave the
process only after its events are durable.
"""

from lavad.core.apply.events import apply_events
from lavad.core.cluster import Cluster
from lavad.core.commands import Command
from lavad.core.decide import AFTERWARDS, DECIDERS
from lavad.core.decide.decision import Decision
from lavad.core.decide.jobs.dependencies import follow_ups
from lavad.core.events import Event
from lavad.core.orders import orders_for

_ROUNDS_MAX = 8  # a longer chain of orphans goes on with the next step


Outcome = Decision  # its events have been applied: make them durable, then send the orders and give the reply


def _release_dependants(cluster: Cluster, outcome: Outcome, now: float) -> None:
    """Conditions that the step made true; a job that ends as an orphan may be waited for in its turn."""
    for _ in range(_ROUNDS_MAX):
        events = list(follow_ups(cluster, now))
        if not events:
            return
        _add(cluster, outcome, events)


def _add(cluster: Cluster, outcome: Outcome, events: list[Event]) -> None:
    apply_events(cluster, events)
    outcome.events.extend(events)


def step(cluster: Cluster, command: Command, now: float, has_agents: bool = True) -> Outcome:
    """Carry out one command.

    Args:
        has_agents: there is someone to give orders to; a replay has nobody, and is spared making them.

    Raises:
        Refused: the caller can't have that; nothing has changed.
        NotNow: the caller may try again later; nothing has changed.
    """
    outcome = DECIDERS[type(command)](cluster, command, now)
    apply_events(cluster, outcome.events)
    if type(command) in AFTERWARDS:
        for decide in AFTERWARDS[type(command)]:
            _add(cluster, outcome, list(decide(cluster, now)))
    if cluster.dependants.stirred:
        _release_dependants(cluster, outcome, now)
    if not has_agents:
        return outcome
    for event in outcome.events:  # in the state after all of them: what is released already needs no order
        outcome.orders.extend(orders_for(cluster, event))
    return outcome
