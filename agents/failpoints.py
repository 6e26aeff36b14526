"""Places where a test may make a process die, to prove that nothing is lost there.

``LAVA_FAIL=agent.after_journal:3`` ends the process, as if killed, when it passes that point for the third time; each
process counts its own passings. Without the variable a point costs one comparison. Only ``os`` is imported here,
because the launcher and the shepherds use it too.
"""

import os

POINTS = (
    "agent.after_journal",  # orders are durable, nothing was handed to a shepherd yet
    "agent.after_handover",  # a shepherd has the order, the agent has noted nothing about it
    "agent.before_report",  # an attempt has ended, the master has not been told
    "agent.before_forget",  # the master no longer wants the attempt, the journal still has it
    "launcher.before_fork",  # a shepherd's socket exists, the shepherd does not
    "launcher.after_fork",  # a shepherd lives, the agent has not been told
    "shepherd.before_spawn",  # the start is on record, the process does not exist
    "shepherd.after_spawn",  # the process runs, its shepherd dies
    "shepherd.before_record",  # the job has ended, its exit is not on record
    "shepherd.after_record",  # the exit is on record, the agent has not been told
)


def _armed() -> tuple[str, int]:
    name, _, count = os.environ.get("LAVA_FAIL", "").partition(":")
    return (name, int(count or 1)) if name in POINTS else ("", 0)


_name, _left = _armed()


def reach(point: str) -> None:
    """Pass a point; does not return where this process was told to die."""
    global _left
    if point != _name:
        return
    _left -= 1
    if _left == 0:
        os._exit(137)
