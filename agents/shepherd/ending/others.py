"""Usage on a job's other hosts, gathered by the shepherd of the lead host for the job report.

Requested when the command has ended and nothing of the job is left on the lead host. Invariant: the end is reported
within a bounded time, even if hosts are silent; missing hosts are named.
"""

from agents.shepherd.clock import NEVER

# Longest wait of the report. The request is repeated meanwhile, since the agent may be a new one.
COUNT_OTHERS_S, ASK_AGAIN_S = 4.5, 1.0

Figures = tuple[tuple[str, tuple[float, ...]], ...]  # host, fields of a Used


class OthersUsed:
    """One request, repeated until it is answered or the time is up."""

    def __init__(self, is_wide: bool) -> None:
        self.is_awaited = is_wide
        self.next_at = NEVER  # next repetition, or the end
        self._until = NEVER
        self._found: Figures = ()
        self._missing: tuple[str, ...] = ("the other hosts",) if is_wide else ()

    def ask(self, now: float) -> bool:
        """Return True if the request is to be sent now."""
        if not self.is_awaited or (self.next_at != NEVER and now < self.next_at):
            return False
        self._until = min(self._until, now + COUNT_OTHERS_S)
        self.next_at = min(now + ASK_AGAIN_S, self._until)
        if now >= self._until:
            self._stop()
        return self.is_awaited

    def take(self, found: Figures, missing: tuple[str, ...]) -> None:
        """Take the answer."""
        self._found, self._missing = found, missing
        self._stop()

    def _stop(self) -> None:
        self.is_awaited, self.next_at = False, NEVER

    def found(self) -> tuple[Figures, tuple[str, ...]]:
        """Return figures by host, and hosts without figures."""
        return self._found, self._missing
