"""An entry of the ledger: one attempt as this host holds it."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from agents.attempts.task_book import TaskBook
from agents.shepherd import messages
from agents.shepherd.messages import Key
from protos.agents_pb2 import Held, JobSpecBlob, Limits, Report, Stage
from protos.common_pb2 import AttemptKey, HostShare


class State(Enum):
    """State of an attempt on this host."""

    ACCEPTED = "accepted"  # without a shepherd yet
    HELD = "held"  # with a shepherd
    ENDED = "ended"  # reported as finished, processes are left
    OVER = "over"  # nothing is left here but the report


@dataclass(slots=True)
class Entry:
    """One attempt on this host."""

    key: Key
    version: int
    stage: Stage
    blob: JobSpecBlob
    state: State = State.ACCEPTED
    launched: bool = False
    releasing: bool = False
    last: Report | None = None
    serials: set[int] = field(default_factory=set)
    joined: int = 1  # version with which this host became part of the attempt; later ones come by resize orders
    before: list[HostShare] = field(default_factory=list)  # allocation of the job's last notification
    given_up: list[HostShare] = field(default_factory=list)  # hosts that the job has released
    notify: str = ""  # command of the newest resize order
    resized: Report | None = None  # newest report on a resize
    limits: Limits | None = None  # replace those it was staged with
    limit_reached: Report | None = None
    ending: str = ""  # why a forwarded signal is to end it
    tasks: TaskBook | None = None  # of a job of tasks
    mailed: frozenset[str] = frozenset()  # what mails were sent about: start, done
    held_back: Report | None = None  # its last report, while its GPUs are not clear

    @property
    def is_told(self) -> bool:
        """True if the job was notified of its newest allocation."""
        known = self.joined if self.resized is None else self.resized.allocation_version
        return known >= self.version


def version_of(limits: Limits | None) -> int:
    """Return the version of limits; 0 for those that the attempt was staged with."""
    return 0 if limits is None else limits.version


def limits_for(limits: Limits, protocol: int) -> tuple[Any, ...]:
    """Fields of LIMITS for a shepherd of that protocol; an older one keeps what it cannot change."""
    fields = (limits.version, limits.run_limit_s, limits.deadline, limits.memory_limit_mib)
    period_s = limits.checkpoint_period_s if limits.HasField("checkpoint_period_s") else None
    if protocol < messages.CHANGES_FILES:
        return fields if protocol < messages.CHANGES_PERIODS or period_s is None else (*fields, period_s)
    files = limits.files
    names = (files.output, files.error, files.output_overwrite, files.error_overwrite)
    cpu_limit_s = limits.cpu_limit_s if limits.HasField("cpu_limit_s") else None
    return (*fields, period_s, cpu_limit_s, names if limits.HasField("files") else None)


def held_message(entry: Entry, detailed: bool) -> Held:
    """Describe the attempt for the hello of a session."""
    job, index, attempt = entry.key
    one = Held(
        key=AttemptKey(job=job, index=index, attempt=attempt),
        allocation_version=entry.version,
        launched=entry.launched,
        limits_version=version_of(entry.limits),
    )
    if entry.last is not None:
        one.last.CopyFrom(entry.last)
    if entry.resized is not None:
        one.resized.CopyFrom(entry.resized)
    if entry.limit_reached is not None:
        one.limit_reached.CopyFrom(entry.limit_reached)
    if entry.tasks is not None:
        one.tasks.extend(entry.tasks.states())
    if detailed:
        one.order.stage.CopyFrom(entry.stage)
    return one
