"""Fail points: places where a test makes a process of the master or of an agent die, to prove that no state is lost.

``LAVA_FAIL=agent.after_journal:3`` ends the process, as if killed, when it passes that point for the third time; each
process counts its own passes, and logs a line about its end. Without the variable a point costs one comparison. Only
``os`` is imported here, because the launcher and the shepherds use it too.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

AGENT_POINTS = (
    "agent.after_journal",  # orders are durable, no shepherd has received one yet
    "agent.after_handover",  # a shepherd has the order, the agent has not recorded it
    "agent.after_start",  # a job runs, the master has not been informed
    "agent.before_report",  # an attempt has ended, the master has not been informed
    "agent.before_forget",  # the master no longer wants the attempt, the journal still has it
    "launcher.before_fork",  # a shepherd's socket exists, the shepherd does not
    "launcher.after_fork",  # a shepherd lives, the agent has not been informed
    "shepherd.before_spawn",  # the start is recorded, the process does not exist
    "shepherd.after_spawn",  # the process runs, its shepherd dies
    "shepherd.before_record",  # the job has ended, its exit is not recorded
    "shepherd.after_record",  # the exit is recorded, the agent has not been informed
)
MASTER_POINTS = (
    "master.before_commit",  # events are applied in memory, the store has not received them
    "master.after_commit",  # events are durable, no order or reply has been sent
    "master.before_reply",  # orders are being sent, the caller has no reply
    "master.after_orders",  # orders have been sent to an agent
    "master.after_report",  # an agent's report is applied in memory and perhaps not durable
)
POINTS = (*AGENT_POINTS, *MASTER_POINTS)
DIED = 137  # the exit code, as a shell shows SIGKILL


def _armed() -> tuple[str, int]:
    name, _, count = os.environ.get("LAVA_FAIL", "").partition(":")
    return (name, int(count or 1)) if name in POINTS else ("", 0)


_name, _left = _armed()


def reach(point: str, about: "Iterable[object]" = ()) -> None:
    """Pass a fail point; does not return if this process is to die here.

    ``about``: the items in hand; the last line of the log names their kinds.
    """
    global _left
    if point != _name:
        return
    _left -= 1
    if _left == 0:
        kinds = ",".join(sorted({_kind(one) for one in about}))
        os.write(2, f"event=died point={point} about={kinds or 'nothing'}\n".encode())
        os._exit(DIED)


def _kind(thing: object) -> str:
    """Kind of an order or report of the wire, for other items the type."""
    said = getattr(thing, "WhichOneof", None)
    return (said("what") or "nothing") if said is not None else type(thing).__name__
