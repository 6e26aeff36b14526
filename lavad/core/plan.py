"""What the scheduler proposes. Plans are data: ``decide/plans.py`` verifies each start again before it becomes an
event."""

from dataclasses import dataclass
from typing import NamedTuple

from lavad.core.model import Allocation


class Start(NamedTuple):
    """Dispatch this job or element on this allocation, because of ``reason``."""

    job: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody wants of a start
    allocation: Allocation
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """The starts of one slice, in the order they were decided; ``is_complete`` when the pass has nothing more to look
    at."""

    starts: tuple[Start, ...] = ()
    is_complete: bool = True
    steps: int = 0
