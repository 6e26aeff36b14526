"""Long work between other work: whoever asks for much gives way to the others after a slice."""

import asyncio
import time

SLICE_S = 0.001  # a command of others waits for a few of them, one at each step of its way


class Slices:
    """Measures the present slice of one request's work."""

    def __init__(self) -> None:
        self._ends_at = time.monotonic() + SLICE_S

    @property
    def is_over(self) -> bool:
        """Whether others should be served now."""
        return time.monotonic() >= self._ends_at

    async def give_way(self) -> None:
        """Serve others; then a new slice begins."""
        await asyncio.sleep(0)
        self._ends_at = time.monotonic() + SLICE_S

    async def check(self) -> None:
        """Give way if the slice is over."""
        if self.is_over:
            await self.give_way()
