"""Problems of the master, reported at once and once: in the log, to systemd and to badmin showstatus.

A cause is a callable that returns its present sentence, empty if there is no problem.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from protos import notify

log = logging.getLogger("lavad.health")

AGAIN_S = 60.0  # seconds before a cause with a changed sentence is reported again

Cause = Callable[[], str]


@dataclass(slots=True)
class _Told:
    """A reported problem."""

    sentence: str
    since: float
    told_at: float


class Health:
    """Monitor of causes; ``look`` compares them with the last report."""

    def __init__(self, serving: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._serving = serving
        self._clock = clock
        self._causes: dict[str, Cause] = {}
        self._told: dict[str, _Told] = {}

    def watch(self, name: str, cause: Cause) -> None:
        """Add a cause."""
        self._causes[name] = cause

    @property
    def problems(self) -> list[str]:
        """Present problems, a sentence each."""
        return [sentence for cause in self._causes.values() if (sentence := cause())]

    @property
    def summary(self) -> str:
        """One line for systemctl status."""
        return " ".join(self.problems) or self._serving

    def look(self) -> None:
        """Report changes."""
        changes = [self._compare(name, cause()) for name, cause in self._causes.items()]
        if any(changes):
            notify.status(self.summary)

    def _compare(self, name: str, sentence: str) -> bool:
        told, now = self._told.get(name), self._clock()
        if not sentence:
            return self._recovered(name, now)
        if told is None:
            self._told[name] = _Told(sentence, now, now)
        elif sentence == told.sentence or now - told.told_at < AGAIN_S:
            return False
        else:
            told.sentence, told.told_at = sentence, now
        log.error("problem=%s reason=%r", name, sentence)
        return True

    def _recovered(self, name: str, now: float) -> bool:
        told = self._told.pop(name, None)
        if told is None:
            return False
        log.warning("recovered=%s after_s=%.1f", name, now - told.since)
        return True
