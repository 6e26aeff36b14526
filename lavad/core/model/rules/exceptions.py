"""Exceptions of jobs: those that run too long, end too soon, or use too little processor time."""

from typing import NamedTuple

OVERRUN, UNDERRUN, IDLE = "overrun", "underrun", "idle"
EXCEPTIONS = frozenset({OVERRUN, UNDERRUN, IDLE})


class ExceptionRule(NamedTuple):
    """Thresholds of a queue; 0: none. ``idle_factor`` is processor time over run time."""

    overrun_s: float = 0.0
    underrun_s: float = 0.0
    idle_factor: float = 0.0


NO_EXCEPTIONS = ExceptionRule()
