"""Repetition of a removal from the database at intervals, for as long as the master lives."""

import asyncio
import logging
from abc import ABC, abstractmethod

from lavad.core.model.reasons import NotNow

log = logging.getLogger(__name__)


class PeriodicSweep(ABC):
    """Removal that begins again at intervals; a failed one waits for the next.

    Args:
        what: word of the log lines for the things removed, such as "environments".
        every_s: pause before each.
    """

    def __init__(self, what: str, every_s: float) -> None:
        self._what = what
        self._every_s = every_s

    async def run(self) -> None:
        """Sweep for ever, at intervals."""
        while True:
            await asyncio.sleep(self._every_s)
            try:
                removed = await self.sweep()
            except NotNow as error:
                log.warning("%s=kept reason=%r", self._what, str(error))
                continue
            except Exception:  # log a defect here, but keep sweeping
                log.exception("%s=failed", self._what)
                continue
            if removed:
                log.info("%s=removed count=%d", self._what, removed)

    @abstractmethod
    async def sweep(self) -> int:
        """Remove what is not needed any more; return its number.

        Raises:
            NotNow: the database can't be read at the moment.
        """
