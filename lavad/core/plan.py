"""Plans of the scheduler. They are data: ``decide/plans.py`` makes events of the parts that still hold.

A slice ends in one plan. ``is_complete``: the pass has nothing more to examine. ``steps``: work of the slice, in hosts
examined. ``is_empty``: there is nothing to apply.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from lavad.core.model import Allocation, Key


class Start(NamedTuple):
    """Dispatch a job or element on this allocation, because of ``reason``."""

    job: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which has no use on a start
    allocation: Allocation
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Shrink:
    """Shrink a running attempt by these shares."""

    key: Key
    gives: Allocation
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Grow:
    """Grow a running attempt by these shares."""

    key: Key
    additions: Allocation
    reason: str = ""


@dataclass(frozen=True, slots=True)
class DropClaim:
    """Drop a claim."""

    job: int
    index: int
    reason: str


# -- plans -------------------------------------------------------------------------------------------------------------


class Starts(NamedTuple):
    """Starts of one slice in free resources, in the order they were decided; a slice without a result has none.

    ``version`` is that of the cluster in which the starts were found: while it is unchanged they hold.
    """

    starts: tuple[Start, ...] = ()
    is_complete: bool = True
    steps: int = 0
    version: int = -1  # of no cluster

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to apply."""
        return not self.starts


class _NotLast:
    """Plan of a slice that others follow in the same pass."""

    __slots__ = ()
    is_complete: ClassVar[bool] = False
    is_empty: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class Preempt(_NotLast):
    """Preempt for this job: shrink some jobs, suspend some, requeue others.

    Without a job to shrink or to requeue it starts at once; else the resources are claimed, and it starts when all of
    them have been released.
    """

    start: Start
    suspends: tuple[Key, ...] = ()
    requeues: tuple[Key, ...] = ()
    why: str = ""  # for the preempted jobs
    shrinks: tuple[Shrink, ...] = ()
    steps: int = 0


@dataclass(frozen=True, slots=True)
class ReserveSlots(_NotLast):
    """Reserve these free slots for a blocked parallel job, in place of its former reservation."""

    job: int
    index: int
    allocation: Allocation
    until: float
    steps: int = 0


@dataclass(frozen=True, slots=True)
class DropClaims(_NotLast):
    """Drop these claims, which are void."""

    steps: ClassVar[int] = 0

    drops: tuple[DropClaim, ...]


@dataclass(frozen=True, slots=True)
class StartClaimed(_NotLast):
    """Start these jobs in the resources claimed for them, which have been released."""

    steps: ClassVar[int] = 0

    starts: tuple[Start, ...]


@dataclass(frozen=True, slots=True)
class Resume(_NotLast):
    """Resume these suspended jobs, whose own resources are free again."""

    steps: ClassVar[int] = 0

    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Resize(_NotLast):
    """Shrink and grow these running jobs."""

    steps: ClassVar[int] = 0

    shrinks: tuple[Shrink, ...] = ()
    grows: tuple[Grow, ...] = ()


Plan = Starts | Preempt | ReserveSlots | DropClaims | StartClaimed | Resume | Resize
