"""What the scheduler proposes. Plans are data: ``decide/plans.py`` makes events of what still holds of them."""

from dataclasses import dataclass
from typing import NamedTuple

from lavad.core.model import Allocation, Key


class Start(NamedTuple):
    """Dispatch this job or element on this allocation, because of ``reason``."""

    job: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody wants of a start
    allocation: Allocation
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Shrink:
    """Let a running attempt give up these shares; ``elastic.spare`` says what it could."""

    key: Key
    gives: Allocation
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Preempt:
    """Give this job room that others hold: let some shrink, suspend some, end others so that they wait again.

    With nobody to shrink or to end the job starts at once; else its room is claimed, and it starts when all of it has
    been cleared.
    """

    start: Start
    suspends: tuple[Key, ...] = ()
    requeues: tuple[Key, ...] = ()
    why: str = ""  # for those who are suspended or ended
    shrinks: tuple[Shrink, ...] = ()


@dataclass(frozen=True, slots=True)
class ReserveSlots:
    """Keep these free slots for a blocked parallel job, in place of what was kept for it before."""

    job: int
    index: int
    allocation: Allocation
    until: float


@dataclass(frozen=True, slots=True)
class DropClaim:
    """Give up a claim."""

    job: int
    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class Grow:
    """Let a running attempt have these shares as well."""

    key: Key
    additions: Allocation
    reason: str = ""


class Plan(NamedTuple):
    """The starts of one slice, in the order they were decided; ``is_complete`` when the pass has nothing more to look
    at. A takeover, starts in cleared room, resumptions, drops and changes of size come in plans of their own.

    ``version`` is the cluster's that the starts were found in: as long as it stays the same they hold.
    """

    starts: tuple[Start, ...] = ()
    is_complete: bool = True
    steps: int = 0
    takeover: Preempt | None = None
    claimed: tuple[Start, ...] = ()  # in room that was cleared for them
    saving: ReserveSlots | None = None
    resumes: tuple[Key, ...] = ()
    drops: tuple[DropClaim, ...] = ()
    shrinks: tuple[Shrink, ...] = ()
    grows: tuple[Grow, ...] = ()
    version: int = -1  # of no cluster

    @property
    def is_empty(self) -> bool:
        """Is there nothing to apply?"""
        return not (self.starts or self.takeover or self.claimed or self.saving or self.is_release or self.is_resize)

    @property
    def is_release(self) -> bool:
        """Does it let suspended jobs go on, or give claims up?"""
        return bool(self.resumes or self.drops)

    @property
    def is_resize(self) -> bool:
        """Does it change running jobs' allocations?"""
        return bool(self.shrinks or self.grows)
