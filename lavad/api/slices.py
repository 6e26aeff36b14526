"""Slices of long work: a large request yields to other calls after each slice."""

import asyncio
import time

SLICE_S = 0.001  # another caller's command waits for a few of them, one at each await


class Slices:
    """The present time slice of one request's work."""

    def __init__(self) -> None:
        self._ends_at = time.monotonic() + SLICE_S

    @property
    def is_over(self) -> bool:
        """True if the slice has run out."""
        return time.monotonic() >= self._ends_at

    async def give_way(self) -> None:
        """Yield to other calls; then a new slice begins."""
        await asyncio.sleep(0)
        self._ends_at = time.monotonic() + SLICE_S

    async def check(self) -> None:
        """Yield if the slice has run out."""
        if self.is_over:
            await self.give_way()
