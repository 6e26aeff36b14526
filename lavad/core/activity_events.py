"""Events about a job that leave its state: hangs, saved stacks, hosts without a process of it, checkpoints, warnings,
messages, reasons that users give."""

from dataclasses import dataclass, field
from typing import NamedTuple

from lavad.core.model import Key
from lavad.core.model.ranges import Ranges


class PartActivity(NamedTuple):
    """A host's part has been inactive for so many seconds; 0: it is active. Not stored: each hello repeats it."""

    at: float
    key: Key
    host: str
    inactive_s: float


class JobHangs(NamedTuple):
    """All parts of the job have been inactive for the time that its rule names. Their stacks are saved first.

    ``due``: its policy acts then at the latest; 0: it has none for that.
    """

    at: float
    key: Key
    inactive_s: float
    due: float = 0.0


class JobActive(NamedTuple):
    """A job that hung is active again: nothing is done about it."""

    at: float
    key: Key


class StacksSaved(NamedTuple):
    """A host has saved the stacks of the job's processes in a file there, or has none: ``words`` says why."""

    at: float
    key: Key
    host: str
    path: str
    words: str = ""


class HostUnused(NamedTuple):
    """An allocated host has had no process of the job for so many seconds; 0: it has one again."""

    at: float
    key: Key
    host: str
    seconds: float


class CheckpointAsked(NamedTuple):
    """A checkpoint is to be made, with which the job ends or, if it ``migrates``, is requeued. ``force``: in any state
    of its processes. ``by`` is empty if the job has been suspended for its migration threshold."""

    at: float
    key: Key
    by: str
    force: bool = False
    ends: bool = False
    migrates: bool = False
    may_stay: bool = False  # it does not avoid its first host then


class CheckpointEnded(NamedTuple):
    """The host has made a checkpoint, or has not: ``error`` says why. ``number`` of the request; 0: its time had
    come, or it is an ``action`` (SUSPEND, TERMINATE, WARNING)."""

    at: float
    key: Key
    number: int
    began: float  # by the host's clock
    error: str = ""
    ends: bool = False
    action: str = ""


class JobWarned(NamedTuple):
    """A warning about a running job for its user; ``about`` tells it from other warnings."""

    at: float
    key: Key
    about: str
    text: str


class BudgetWarned(NamedTuple):
    """The part of a budget at which it warns is used or reserved; ``consumer`` is empty if it is one for all."""

    at: float
    budget: str
    consumer: str


@dataclass(frozen=True, slots=True)
class JobMessagePosted:
    """A message was posted to a job, or to an element of an array, in place of an earlier one of this number."""

    at: float
    job: int
    index: int
    number: int
    by: str
    text: str
    level: str
    data: bytes = field(repr=False)


class ReasonGiven(NamedTuple):
    """A user said why the job is killed, suspended or resumed: for its history, before what follows from the command.

    ``indices``: waiting elements of an array. ``what``: kill, suspend or resume.
    """

    at: float
    key: Key
    indices: Ranges | None
    by: str
    what: str
    text: str


CheckpointEvent = CheckpointAsked | CheckpointEnded
ActivityEvent = PartActivity | JobHangs | JobActive | StacksSaved | HostUnused | ReasonGiven | CheckpointEvent
