"""Clocks of the master. The core reads none: each step is given the time."""

import time
from typing import Protocol


class Clock(Protocol):
    """Source of seconds since the epoch, as the cluster's records use them."""

    def __call__(self) -> float: ...


class SystemClock:
    """Monotonic system time: anchored once, advanced by the monotonic clock.

    A step of the system clock (NTP, an administrator) would otherwise make limits fire early and run times negative.
    Small drifts are followed; only backward jumps are held until time has caught up.
    """

    def __init__(self) -> None:
        self._latest = time.time()

    def __call__(self) -> float:
        self._latest = max(self._latest, time.time())
        return self._latest
