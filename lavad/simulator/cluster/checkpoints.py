"""Checkpoints on a simulated host: made after a moment, once for each number, and told again when asked again."""

from typing import TYPE_CHECKING

from lavad.core import commands as c
from lavad.core.order_kinds import CheckpointOrder

if TYPE_CHECKING:
    from lavad.simulator.cluster.fleet import SimulatedHost
    from lavad.simulator.cluster.ledger import Shepherd

SIGKILL = 9
TERM_CHKPNT = "TERM_CHKPNT"
MAKING_S = 0.2


def make_checkpoint(agent: "SimulatedHost", order: CheckpointOrder) -> None:
    """Make a checkpoint of an attempt that runs here; without one say that it does not."""
    shepherd = agent.shepherds.get(order.key)
    if shepherd is None or shepherd.end is not None or shepherd.is_over:
        _tell(agent, order, agent.wall(), "the job does not run here")
    elif order.request.number in shepherd.checkpoints:
        _tell(agent, order, shepherd.checkpoints[order.request.number])
    else:
        shepherd.checkpoints[order.request.number] = agent.wall()
        agent.world.after(MAKING_S, lambda: _made(agent, order, shepherd))


def _made(agent: "SimulatedHost", order: CheckpointOrder, shepherd: "Shepherd") -> None:
    if shepherd.end is None and not shepherd.is_over:
        if order.request.ends:
            agent.signal_shepherd(shepherd, SIGKILL, TERM_CHKPNT)
        _tell(agent, order, shepherd.checkpoints[order.request.number])


def _tell(agent: "SimulatedHost", order: CheckpointOrder, began: float, error: str = "") -> None:
    request = order.request
    made = c.ReportCheckpoint(agent.name, order.key, request.number, began, error, request.ends)
    agent.world.say(agent, [made])
