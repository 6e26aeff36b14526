"""Ends that a simulated host sees to itself: of a lease, and of the notice after which the host is taken away."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lavad.simulator.cluster.fleet import SimulatedHost
    from lavad.simulator.cluster.ledger import Shepherd

SIGKILL = 9


def taken_away(agent: "SimulatedHost", seconds: float) -> None:
    """Kill all that is left here after so many seconds; negative: the notice is withdrawn."""
    agent.taken_at = at = agent.world.now + seconds if seconds >= 0 else 0.0
    if at:
        agent.world.after(seconds, lambda: _kill_all(agent) if agent.taken_at == at else None)


def _kill_all(agent: "SimulatedHost") -> None:
    for shepherd in list(agent.shepherds.values()):
        shepherd.is_fenced = shepherd.end is None
        agent.end(shepherd, SIGKILL)


def keep_lease(agent: "SimulatedHost", shepherd: "Shepherd", lease_s: float) -> None:
    """End the attempt when the host has not heard from the master for the length of its lease."""
    if shepherd.is_over or agent.shepherds.get(shepherd.key) is not shepherd:
        return
    left_s = agent.heard_at + lease_s - agent.own_clock()
    if left_s > 0:
        agent.world.after(left_s + 0.001, lambda: keep_lease(agent, shepherd, lease_s))
        return
    shepherd.is_fenced = shepherd.end is None
    agent.end(shepherd, SIGKILL)
