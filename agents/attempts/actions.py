"""The actions that the ledger asks for: what an agent does with its shepherds, its journal and its master.

Those with ``journal`` set must be on disk before anything else of the same batch is done.
"""

from typing import NamedTuple

from agents.attempts.task_book import Run
from agents.shepherd.messages import Key
from protos.agents_pb2 import (
    Order,
    Report,
)


class Place(NamedTuple):
    """Find a shepherd for the attempt; launch at once if the entry then says so."""

    key: Key


class Launch(NamedTuple):
    """Start the command of a held attempt."""

    key: Key


class Signal(NamedTuple):
    """Forward a signal; 0 is the terminate sequence."""

    key: Key
    number: int
    reason: str
    causes: int = 0  # of a suspension: LSF's bits
    event: str = ""  # of the notice before it; empty: none
    notice: str = ""  # its sentence
    notice_s: float = 0.0  # between the two


class Notify(NamedTuple):
    """Give a notice to a held attempt."""

    key: Key
    event: str
    reason: str
    at: float  # of what it announces; 0: unknown


class Release(NamedTuple):
    """Kill what is left of a held attempt."""

    key: Key


class Renew(NamedTuple):
    """Drop the logs' records of an attempt that the host left and is to rejoin."""

    key: Key


class Adapt(NamedTuple):
    """Update the attempt's files to another allocation, and on the lead host notify the job."""

    key: Key


class Limit(NamedTuple):
    """Enforce the changed limits in the entry of a held attempt."""

    key: Key


class Tasks(NamedTuple):
    """End, signal and start tasks of a held attempt, in this order."""

    key: Key
    stop: tuple[Run, ...]
    reason: str
    signalled: tuple[Run, ...]
    signal: int
    start: tuple[Run, ...]
    hold: tuple[Run, ...] = ()  # started without a command


class Say(NamedTuple):
    """Send a report."""

    report: Report


class Note(NamedTuple):
    """Append an order to the journal; ``sync`` if it must be durable before the actions are done."""

    order: Order
    sync: bool


class Complete(NamedTuple):
    """Restore the order of an attempt that was found with only its shepherd."""

    key: Key


Action = Complete | Place | Launch | Signal | Release | Renew | Adapt | Limit | Tasks | Say | Note | Notify
