"""Timers of an attempt: run limit, deadline (-t), and the sequence of signals that ends it."""

import signal
from collections.abc import Sequence

NEVER = float("inf")
TERMINATE = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
# Warning before the run limit is enforced.
LIMIT_REACHED = (signal.SIGUSR2, *TERMINATE)


KILL = (signal.SIGKILL,)


class RunClock:
    """Run limit, which stands still while the job is suspended, and deadline, which does not.

    Monotonic times, so that a changed wall clock ends nothing early. A limit of 0 is none.
    """

    def __init__(self, limit_s: float, deadline: float, now: float, wall: float) -> None:
        self._began = now  # later by the time of its suspensions
        self._stopped_at = NEVER
        self.change(limit_s, deadline, now, wall)

    def change(self, limit_s: float, deadline: float, now: float, wall: float) -> None:
        """Replace the limits; the run limit still counts from the start."""
        self._limit_s = limit_s or NEVER
        self._deadline_at = now + max(0.0, deadline - wall) if deadline else NEVER

    def stop(self, now: float) -> None:
        """Stop the run limit's clock."""
        if self._stopped_at == NEVER:
            self._stopped_at = now

    def resume(self, now: float) -> None:
        """Continue the run limit's clock."""
        if self._stopped_at != NEVER:
            self._began, self._stopped_at = self._began + now - self._stopped_at, NEVER

    @property
    def is_stopped(self) -> bool:
        """True while the run limit's clock stands still."""
        return self._stopped_at != NEVER

    def elapsed(self, now: float) -> float:
        """Return the time that counts for the run limit, in seconds."""
        return max(0.0, min(now, self._stopped_at) - self._began)

    def left(self, now: float) -> tuple[float, float]:
        """Return the seconds left until the run limit and until the deadline; -1 for none."""
        limit = self._limit_s - self.elapsed(now) if self._limit_s != NEVER else -1.0
        deadline = self._deadline_at - now if self._deadline_at != NEVER else -1.0
        return (max(0.0, limit) if limit != -1.0 else limit), (max(0.0, deadline) if deadline != -1.0 else deadline)

    @property
    def next_reason(self) -> str:
        """Termination reason of the next limit; empty if there is none."""
        if self.next_at == NEVER:
            return ""
        return "TERM_RUNLIMIT" if self._limit_at <= self._deadline_at else "TERM_DEADLINE"

    @property
    def _limit_at(self) -> float:
        return self._began + self._limit_s if self._stopped_at == NEVER else NEVER

    @property
    def next_at(self) -> float:
        """Monotonic time of the next limit."""
        return min(self._limit_at, self._deadline_at)

    def reached(self, now: float) -> str:
        """Return the termination reason that is due, once; empty if none is."""
        if now >= self._limit_at:
            self._limit_s = NEVER
            return "TERM_RUNLIMIT"
        if now >= self._deadline_at:
            self._deadline_at = NEVER
            return "TERM_DEADLINE"
        return ""


NO_LIMITS = RunClock(0, 0, 0, 0)  # of every attempt that does not run: never reached


class Termination:
    """Signals still to be sent to a job that is being ended, one each interval.

    Within the notice of a host that is taken away, the kill comes at the end of the notice.
    """

    def __init__(self, interval_s: float, kill_due: float = NEVER) -> None:
        self._interval_s = interval_s
        self._left: list[int] = []
        self.kill_due = kill_due  # when the kill is to follow, at the end of the host's notice; NEVER: no notice
        self.next_at = NEVER

    def begin(self, signals: Sequence[int], now: float) -> bool:
        """Start a sequence unless one is in progress; return True if it was started.

        A pending sequence gives way to a kill.
        """
        if self._left and (self.next_at <= now or tuple(signals) != KILL):
            return False
        self._left = list(signals)
        self.next_at = now
        return True

    def kill_at(self, moment: float) -> bool:
        """Schedule a kill for ``moment``, should the job not end before; return False if a sequence is in progress."""
        return not self._left and self.begin(KILL, moment)

    def due(self, now: float) -> int:
        """Return the signal to send now, 0 for none yet. The last of a sequence is repeated."""
        if now < self.next_at:
            return 0
        number = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        self.next_at = now + self._interval_s
        if self.kill_due > now and self.kill_due != NEVER and number != signal.SIGKILL:
            is_last = self._left == [signal.SIGKILL]
            self.next_at = self.kill_due if is_last else min(self.next_at, (now + self.kill_due) / 2)
        return number
