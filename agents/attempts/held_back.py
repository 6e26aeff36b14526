"""Release of an attempt that is held back: nothing of it is left but memory in its GPUs."""

from agents.attempts.ledger_entry import Entry, State
from protos.agents_pb2 import Report


def hold_back(entry: Entry) -> list[Report]:
    """Take back that nothing of the attempt is left; return what can be told now: its end, without its release."""
    if entry.state is not State.OVER or entry.last is None:
        return []
    final = entry.held_back = entry.last
    entry.state, entry.last = State.ENDED, None
    if not final.HasField("finished"):
        return []
    entry.last = Report()
    entry.last.CopyFrom(final)
    entry.last.also_released = False
    return [entry.last]


def let_go(entry: Entry) -> list[Report]:
    """Return the report that was held back: the attempt is over."""
    if entry.held_back is None:
        return []
    entry.state, entry.last, entry.held_back = State.OVER, entry.held_back, None
    return [entry.last]
