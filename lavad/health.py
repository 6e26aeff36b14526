"""What keeps the master from its work, told at once and once: in the log, to systemd and to badmin showstatus.

A cause is asked for its present sentence, which is empty when all is well.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from protos import notify

log = logging.getLogger("lavad.health")

AGAIN_S = 60.0  # a cause whose words change is told again after this long, not before

Cause = Callable[[], str]


@dataclass(slots=True)
class _Told:
    """A problem that the administrator knows of."""

    sentence: str
    since: float
    told_at: float


class Health:
    """Watches causes of trouble; ``look`` compares them with what was told last."""

    def __init__(self, serving: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._serving = serving
        self._clock = clock
        self._causes: dict[str, Cause] = {}
        self._told: dict[str, _Told] = {}

    def watch(self, name: str, cause: Cause) -> None:
        """Look at this cause, too."""
        self._causes[name] = cause

    @property
    def problems(self) -> list[str]:
        """The present problems, a sentence each."""
        return [sentence for cause in self._causes.values() if (sentence := cause())]

    @property
    def summary(self) -> str:
        """One line for systemctl status."""
        return " ".join(self.problems) or self._serving

    def look(self) -> None:
        """Tell what has changed."""
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
