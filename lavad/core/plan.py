"""Plans of the scheduler. They are data: ``decide/plans.py`` makes events of the parts that still hold."""

from dataclasses import dataclass
from typing import NamedTuple

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
class Preempt:
    """Preempt for this job: shrink some jobs, suspend some, requeue others.

    Without a job to shrink or to requeue it starts at once; else the resources are claimed, and it starts when all of
    them have been released.
    """

    start: Start
    suspends: tuple[Key, ...] = ()
    requeues: tuple[Key, ...] = ()
    why: str = ""  # for the preempted jobs
    shrinks: tuple[Shrink, ...] = ()


@dataclass(frozen=True, slots=True)
class ReserveSlots:
    """Reserve these free slots for a blocked parallel job, in place of its former reservation."""

    job: int
    index: int
    allocation: Allocation
    until: float


@dataclass(frozen=True, slots=True)
class DropClaim:
    """Drop a claim."""

    job: int
    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class Grow:
    """Grow a running attempt by these shares."""

    key: Key
    additions: Allocation
    reason: str = ""


class Plan(NamedTuple):
    """Starts of one slice, in the order they were decided; ``is_complete`` if the pass has nothing more to examine.
    Preemption, starts in claimed resources, resumptions, drops and resizes come in plans of their own.

    ``version`` is that of the cluster in which the starts were found: while it is unchanged they hold.
    """

    starts: tuple[Start, ...] = ()
    is_complete: bool = True
    steps: int = 0
    takeover: Preempt | None = None
    claimed: tuple[Start, ...] = ()  # in resources claimed for them
    saving: ReserveSlots | None = None
    resumes: tuple[Key, ...] = ()
    drops: tuple[DropClaim, ...] = ()
    shrinks: tuple[Shrink, ...] = ()
    grows: tuple[Grow, ...] = ()
    version: int = -1  # of no cluster

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to apply."""
        return not (self.starts or self.takeover or self.claimed or self.saving or self.is_release or self.is_resize)

    @property
    def is_release(self) -> bool:
        """True if it resumes suspended jobs or drops claims."""
        return bool(self.resumes or self.drops)

    @property
    def is_resize(self) -> bool:
        """True if it resizes running jobs."""
        return bool(self.shrinks or self.grows)
