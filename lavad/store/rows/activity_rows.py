"""Rows of events that leave a job's state: hangs, saved stacks, hosts without a process of it, checkpoints, posted
messages, reasons given for commands."""

from lavad.core import activity_events as a
from lavad.core import task_events as t
from lavad.store.rows import values as v
from lavad.store.writer.batch import Batch

REASON_GIVEN = "reason given"
# Events with rows; what parts of a job are doing is reported again after a restart.
KINDS = (
    t.HangEnded, a.JobHangs, a.JobActive, a.StacksSaved, a.HostUnused, a.CheckpointAsked, a.CheckpointEnded,
)  # fmt: skip


def lines(event: a.ActivityEvent | t.HangEnded) -> list[tuple[str, str]]:
    """Return kind and details of the rows of an event; what its policy does about a hang has rows of its own."""
    match event:
        case a.JobHangs():
            return [("hangs", v.detail(seconds=round(event.inactive_s)))]
        case a.JobActive():
            return [("active", "")]
        case a.StacksSaved():
            return [("stacks", v.detail(host=event.host, path=event.path, words=event.words))]
        case a.HostUnused():
            return [("unused", v.detail(host=event.host, seconds=round(event.seconds)))]
        case a.CheckpointAsked():
            return [("checkpoint asked", v.detail(by=v.clean(event.by), ends=event.ends, migrates=event.migrates))]
        case a.CheckpointEnded():
            told: dict[str, str | int | bool] = {
                "number": event.number,
                "error": v.clean(event.error),
                "ends": event.ends,
            }
            if event.action:
                told["action"] = event.action
            return [("checkpoint", v.detail(**told))]
    return []


def add_message(batch: Batch, event: a.JobMessagePosted) -> None:
    """Add the row of a message, and the one that tells of it in the job's history."""
    key, text = (event.job, event.index, event.number), v.clean(event.text)
    batch.job_messages[key] = (*key, event.at, v.clean(event.by), text, event.level, len(event.data), event.data)
    told = v.detail(number=event.number, by=v.clean(event.by), text=text)
    batch.events.append((event.job, event.index, 0, event.at, "message", told))


def add_reason(batch: Batch, event: a.ReasonGiven) -> None:
    """Add the row of what a user said about a command; of an array's waiting elements one row has all."""
    elements = {} if event.indices is None else {"indices": event.indices.text()}
    told = v.detail(what=event.what, by=v.clean(event.by), text=v.clean(event.text), **elements)
    batch.events.append((*event.key, event.at, REASON_GIVEN, told))
