"""What a job's other hosts have used, as the shepherd of its first host gets to know it for the job's report.

Asked for when the command has ended and nothing of the job is left on the first host. Invariant: the end is told within
a certain time, whoever is silent; figures that are missing then are named.
"""

from agents.shepherd.clock import NEVER

# So long the report waits. Its agent is asked again meanwhile: it may be a new one.
COUNT_OTHERS_S, ASK_AGAIN_S = 4.5, 1.0

Figures = tuple[tuple[str, tuple[float, ...]], ...]  # host, fields of a Used


class OthersUsed:
    """One question, put again until it is answered or the time is up."""

    def __init__(self, is_wide: bool) -> None:
        self.is_awaited = is_wide
        self.next_at = NEVER  # asked again, or given up
        self._until = NEVER
        self._found: Figures = ()
        self._missing: tuple[str, ...] = ("the other hosts",) if is_wide else ()

    def ask(self, now: float) -> bool:
        """Is the question to be put now?"""
        if not self.is_awaited or (self.next_at != NEVER and now < self.next_at):
            return False
        self._until = min(self._until, now + COUNT_OTHERS_S)
        self.next_at = min(now + ASK_AGAIN_S, self._until)
        if now >= self._until:
            self._stop()
        return self.is_awaited

    def take(self, found: Figures, missing: tuple[str, ...]) -> None:
        """The answer."""
        self._found, self._missing = found, missing
        self._stop()

    def _stop(self) -> None:
        self.is_awaited, self.next_at = False, NEVER

    def found(self) -> tuple[Figures, tuple[str, ...]]:
        """Figures by host, and who told none."""
        return self._found, self._missing
