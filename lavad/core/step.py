"""One step of the master: decide a command, apply its events, derive its orders. Read this first.

``step`` is deterministic: time comes in as ``now``, and there is no I/O. Replies and orders of an outcome may leave the
process only after its events are durable.
"""

from lavad.core.apply.events import apply_events
from lavad.core.cluster import Cluster
from lavad.core.commands import Command
from lavad.core.decide import AFTERWARDS, DECIDERS
from lavad.core.decide.activity import late_hangs
from lavad.core.decide.clock.exit_rates import fresh_exit_events
from lavad.core.decide.decision import Decision
from lavad.core.decide.jobs.dependencies import budget_of, follow_ups
from lavad.core.decide.tasks.follow_up import follow_up
from lavad.core.events import Event
from lavad.core.orders import orders_for
from lavad.core.state.dependencies import Budget

_ROUNDS_MAX = 8  # rounds; a longer chain of orphans goes on in the next step


Outcome = Decision  # a decision whose events have been applied: make them durable, then send the orders and the reply


def _release_dependants(cluster: Cluster, outcome: Outcome, budget: Budget, now: float) -> None:
    """Release jobs whose conditions have become true; a job that ends as an orphan may be a parent itself."""
    for _ in range(_ROUNDS_MAX):
        events = list(follow_ups(cluster, budget, now))
        if not events:
            return
        _add(cluster, outcome, events)


def _follow_tasks(cluster: Cluster, outcome: Outcome, now: float) -> None:
    """Decide what follows from what happened to tasks, one thing at a time, each in the state the last one left."""
    while (decision := follow_up(cluster, now)) is not None:
        _add(cluster, outcome, decision.events)


def _add(cluster: Cluster, outcome: Outcome, events: list[Event]) -> None:
    apply_events(cluster, events)
    outcome.events.extend(events)


def step(
    cluster: Cluster, command: Command, now: float, has_agents: bool = True, budget: Budget | None = None
) -> Outcome:
    """Carry out one command.

    Args:
        has_agents: derive orders; a replay has no agents and is spared them.
        budget: of the commands of one batch, for evaluations of dependency conditions; None: one of its own.

    Raises:
        Refused: the command is not allowed or not possible; nothing has changed.
        NotNow: the same, for now: the caller may retry.
    """
    outcome = DECIDERS[type(command)](cluster, command, now)
    apply_events(cluster, outcome.events)
    if type(command) in AFTERWARDS:
        for decide in AFTERWARDS[type(command)]:
            _add(cluster, outcome, list(decide(cluster, now)))
    if cluster.task_news:
        _follow_tasks(cluster, outcome, now)
    if cluster.parts_changed:
        _add(cluster, outcome, list(late_hangs(cluster, now)))
    if cluster.exit_rates.fresh:
        _add(cluster, outcome, list(fresh_exit_events(cluster, now)))
    cluster.counters.watches_groups = bool(cluster.dependants.by_group)
    if cluster.dependants.by_group:
        cluster.dependants.note_groups(cluster.counters.take_changed_groups())
    if cluster.dependants.dependents_to_check:
        _release_dependants(cluster, outcome, budget_of(command, budget), now)
    if not has_agents:
        return outcome
    for event in outcome.events:  # in the state after all of them: what is released already needs no order
        outcome.orders.extend(orders_for(cluster, event))
    return outcome
