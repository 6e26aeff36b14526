"""Lease of a host's jobs: time of the host's last contact with its master, in a file that every shepherd reads.

The agent enters the time on this host's own clock before it acts on a message. A shepherd reads the file when the lease
of its attempt would end, so the lease holds also if the agent is stopped or has been killed.
"""

import os
import struct
import time

from agents.shepherd.clock import NEVER
from protos import endings

FILE = "lease"  # beside the shepherds' sockets and logs
STEP_S = 0.1  # smaller steps are not written
TRIES = 5
LOOK_EVERY_S = 5.0  # timers stop while the machine sleeps, but the lease does not
_RECORD = struct.Struct("=dd")  # the same time twice, which reveals a write in progress


def own_clock() -> float:
    """Return the seconds of this host's clock, which continues while the machine sleeps and cannot be set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """The file, for reading and, in the agent, for writing."""

    def __init__(self, directory: str) -> None:
        self._file = os.open(f"{directory}/{FILE}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._entered = self.heard_at()

    def begin(self) -> None:
        """Reset a time in the future, at an agent's start: it is from before a reboot."""
        if self._entered > own_clock():
            self._enter(0.0)

    def restore(self, directory: str) -> None:
        """Continue in the present file, or in a new one if it was deleted; OSError if that fails."""
        before, new = self.heard_at(), Lease(directory)
        os.close(self._file)
        self._file, self._entered = new._file, new._entered
        if before > self._entered:
            self._enter(before)

    def renew(self, heard_at: float) -> None:
        """Enter the send time of a message that the master has answered; OSError if that fails."""
        if heard_at - self._entered >= STEP_S:
            self._enter(heard_at)

    def _enter(self, at: float) -> None:
        os.pwrite(self._file, _RECORD.pack(at, at), 0)
        self._entered = at

    def heard_at(self) -> float:
        """Return the send time of the newest message that the master has answered; 0 for never."""
        first = second = 0.0
        for _ in range(TRIES):
            data = os.pread(self._file, _RECORD.size, 0)
            if len(data) < _RECORD.size:
                return 0.0
            first, second = _RECORD.unpack(data)
            if first == second:
                break
        return min(first, second)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


class LeaseClock:
    """End of one attempt's time on this host, as far as known now.

    It is that of its lease (a length of 0 is none), or of the notice after which the host is taken away.
    """

    def __init__(self, lease: Lease, length_s: float) -> None:
        self._lease = lease
        self._length_s = length_s
        self._look_at = time.monotonic() if length_s else NEVER
        self._taken_at = NEVER
        self.ending = endings.FENCED  # reason and detail of a job that is ended for it

    @property
    def next_at(self) -> float:
        """Monotonic time of the next check."""
        return min(self._look_at, self._taken_at)

    def take_away(self, seconds: float) -> float:
        """Set when the host is taken away (negative: it is not); return the monotonic time of that, or NEVER."""
        self._taken_at = time.monotonic() + seconds if seconds >= 0 else NEVER
        return self._taken_at

    def has_ended(self, now: float) -> bool:
        """Check the notice, and the renewal of the lease, when they are due; return True once one of them has ended."""
        if now >= self._taken_at:
            self._taken_at, self.ending = NEVER, endings.TAKEN_AWAY
            return True
        if now < self._look_at:
            return False
        left_s = self._lease.heard_at() + self._length_s - own_clock()
        self._look_at = now + min(left_s, LOOK_EVERY_S) if left_s > 0 else NEVER
        return left_s <= 0
