"""The lease of a host's jobs: when this host last spoke with its master, in a file that every shepherd reads.

The agent enters the time on this host's own clock before it acts on what it heard. A shepherd looks there when the
lease of its attempt would end, so the lease holds also where the agent is stopped or has been killed.
"""

import os
import struct
import time

from agents.shepherd.clock import NEVER

FILE = "lease"  # beside the shepherds' sockets and logs
STEP_S = 0.1  # a time that is so little newer is not entered
TRIES = 5
LOOK_EVERY_S = 5.0  # while the machine sleeps no timer goes on, but the lease does
_RECORD = struct.Struct("=dd")  # the same time twice: one that is being written is seen


def own_clock() -> float:
    """Seconds of this host's life: the clock goes on while the machine sleeps and cannot be set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """The file, for reading and, in the agent, for writing."""

    def __init__(self, directory: str) -> None:
        self._file = os.open(f"{directory}/{FILE}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._entered = self.heard_at()

    def begin(self) -> None:
        """Called by an agent that starts: a time that is still to come is of an earlier life of the machine."""
        if self._entered > own_clock():
            self._enter(0.0)

    def restore(self, directory: str) -> None:
        """Go on in the file that there is by now, or in a new one, where it was deleted; OSError when it can't be."""
        before, new = self.heard_at(), Lease(directory)
        os.close(self._file)
        self._file, self._entered = new._file, new._entered
        if before > self._entered:
            self._enter(before)

    def renew(self, heard_at: float) -> None:
        """The master has answered what this host said at that time; OSError when it cannot be entered."""
        if heard_at - self._entered >= STEP_S:
            self._enter(heard_at)

    def _enter(self, at: float) -> None:
        os.pwrite(self._file, _RECORD.pack(at, at), 0)
        self._entered = at

    def heard_at(self) -> float:
        """When the host said what the master answered last; 0: never."""
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
        """Let the file go."""
        os.close(self._file)


class LeaseClock:
    """When the lease of one attempt ends, as far as it is known by now. A length of 0 is none."""

    def __init__(self, lease: Lease, length_s: float) -> None:
        self._lease = lease
        self._length_s = length_s
        self.next_at = time.monotonic() if length_s else NEVER

    def has_ended(self, now: float) -> bool:
        """Look whether the lease was renewed, if it is time to; True once, when it was not."""
        if now < self.next_at:
            return False
        left_s = self._lease.heard_at() + self._length_s - own_clock()
        self.next_at = now + min(left_s, LOOK_EVERY_S) if left_s > 0 else NEVER
        return left_s <= 0
