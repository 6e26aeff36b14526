"""Actions of a job's queue in place of the usual signals, and those of notices."""

import signal

from agents.shepherd.controls import TERMINATE, Control
from protos.agents_pb2 import Stage
from protos.jobs_pb2 import JobSpec
from protos.names import is_checkpoint


def action_of(text: str, has_checkpoints: bool = False) -> Control:
    """Return a warning action: a signal's name, a command, or CHKPNT, which does nothing without checkpoints."""
    if is_checkpoint(text):
        return Control(0, "", has_checkpoints)
    name = text.strip().upper().removeprefix("SIG")
    number = getattr(signal.Signals, f"SIG{name}", None) if name.isalnum() else None
    return Control(int(number), "") if number is not None else Control(0, text)


def warning_of(spec: JobSpec, stage: Stage, lead: bool, makes_checkpoints: bool) -> Control:
    """Return the warning action of a job, else of its queue, on this host."""
    # That of a job in Slurm's words looks for its processes, which are children of the lead host's.
    text = "" if spec.HasField("slurm") and not lead else spec.warning_action or stage.warning_action
    return action_of(text, makes_checkpoints and spec.HasField("checkpoint"))


def controls_of(spec: JobSpec, stage: Stage, lead: bool) -> tuple[tuple[str, int, str, bool], ...]:
    """Return the queue's actions; commands and checkpoints are of the lead host.

    Without checkpoints an action that is one does not count. A checkpoint that ends the job is awaited on all hosts.
    """
    found = []
    for one in stage.controls:
        if not one.checkpoint:
            found.append((one.kind, one.signal, one.command if lead else "", False))
        elif spec.HasField("checkpoint") and (lead or one.kind == TERMINATE):
            found.append((one.kind, 0, "", lead))
    return tuple(found)
