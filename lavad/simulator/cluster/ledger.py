"""Attempts as a simulated host keeps them: its agent's journal entry, and its shepherd."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lavad.core import commands as c
from lavad.core.model import HostShare, Key
from lavad.core.orders import StageOrder
from lavad.simulator.cluster.checkers import Process

if TYPE_CHECKING:
    from lavad.simulator.cluster.tasks import TaskRunner


@dataclass(slots=True)
class Shepherd:
    """Shepherd of one attempt on one host; survives the agent, dies with the host."""

    key: Key
    share: HostShare
    is_lead: bool
    peers: tuple[str, ...]
    process: Process | None = None
    is_over: bool = False
    is_launched: bool = False
    end: tuple[int, float] | None = None  # status and time of the exit log
    is_timed: bool = False  # it runs the job's command, not only tasks for another host
    left_s: float = 0.0  # remaining run time
    resumed_at: float = 0.0
    is_stopped: bool = False
    is_ending: bool = False
    is_fenced: bool = False  # its lease had ended
    reason: str = ""
    tasks: "TaskRunner | None" = None  # of a job of tasks
    checkpoints: dict[int, float] = field(default_factory=dict)  # by number, when each began


@dataclass(slots=True)
class Entry:
    """One attempt in the agent's ledger and journal."""

    order: StageOrder
    is_launched: bool
    state: str = "accepted"  # accepted, held, ended, over
    is_releasing: bool = False
    last: c.AgentReport | None = None
    serials: set[int] = field(default_factory=set)
    age_s: float = 0.0  # age of the order that lets it start, at arrival
    version: int = 1
    resized: c.ReportResized | None = None  # the newest report on a resize
    limits: int = 0  # version of the newest limits in force
