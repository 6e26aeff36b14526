"""Load indices of LSF from the kernel's counters: ut, pg, io, ls, it, tmp, swp, mem.

A rate is the difference between two readings of a counter, so a `Counters` is made once and called repeatedly; the
first result covers the time since it was made.
"""

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import psutil

from agents.sensors.facts import MIB, TEMPORARY_DIRECTORY

KIB = 1024
PAGE = 4096
UTILISATION_AVERAGE_S = 60.0
DEVICES = Path("/dev")


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates between two readings: ut from 0 to 1, pages and KiB a second."""

    ut: float
    pg: float
    io: float


@dataclass(frozen=True, slots=True)
class _Look:
    time: float
    busy_s: float
    total_s: float
    paged: int
    moved: int


def decay(elapsed_s: float, average_s: float) -> float:
    """Return the weight of the old value in an exponential average over `average_s`, after `elapsed_s`."""
    return math.exp(-elapsed_s / average_s)


class Counters:
    """Converter of the kernel's ever-growing counters to rates."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = self._look()
        self._ut: float | None = None

    def rates(self) -> Rates:
        """Return the rates since the last call; ut is averaged over about a minute, as LSF's is."""
        now, last = self._look(), self._last
        elapsed = now.time - last.time
        if elapsed <= 0:
            return Rates(self._ut or 0.0, 0.0, 0.0)
        self._last = now
        total = now.total_s - last.total_s
        busy = min(1.0, max(0.0, (now.busy_s - last.busy_s) / total)) if total > 0 else 0.0
        kept = decay(elapsed, UTILISATION_AVERAGE_S)
        self._ut = busy if self._ut is None else kept * self._ut + (1 - kept) * busy
        return Rates(
            ut=self._ut,
            pg=max(0, now.paged - last.paged) / PAGE / elapsed,
            io=max(0, now.moved - last.moved) / KIB / elapsed,
        )

    def _look(self) -> _Look:
        times = psutil.cpu_times()
        # Guest time is contained in user time already.
        total = sum(times) - times.guest - times.guest_nice
        swap = psutil.swap_memory()
        disks = psutil.disk_io_counters()
        return _Look(
            time=self._clock(),
            busy_s=total - times.idle - times.iowait,
            total_s=total,
            paged=swap.sin + swap.sout,
            moved=disks.read_bytes + disks.write_bytes if disks else 0,
        )


def login_sessions() -> int:
    """Return the number of login sessions."""
    return len(psutil.users())


def idle_minutes(now: float, devices: Path = DEVICES) -> int:
    """Return the minutes since the last terminal input, or since boot without a login. `now` is the time of day."""
    touched = [psutil.boot_time()]
    for session in psutil.users():
        # A session may end meanwhile, and a graphical one has no terminal.
        with contextlib.suppress(OSError):
            touched.append((devices / (session.terminal or "")).stat().st_atime)
    return max(0, int((now - max(touched)) / 60))


def free_tmp_mib() -> int:
    """Return the free space for ordinary users in the temporary directory."""
    return int(psutil.disk_usage(TEMPORARY_DIRECTORY).free // MIB)


def free_swap_mib() -> int:
    """Return the unused swap space."""
    return int(psutil.swap_memory().free // MIB)


def free_memory_mib() -> int:
    """Return the memory available without swapping."""
    return int(psutil.virtual_memory().available // MIB)
