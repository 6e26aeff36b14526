"""Watchdog for shepherds that no longer answer (stopped, or hung), so that they are killed with their jobs.

A job whose shepherd is stopped has no run limit, and nothing else could end it. Looks are counted rather than seconds:
an agent that was itself stopped for a while reads its messages before it looks again. A shepherd that waits for a disk
or a file server gets more time: the server may recover, and until then nothing can kill the shepherd.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Iterable
from pathlib import Path

from agents.shepherd.process import processes
from agents.shepherd_pool.pool import ASK_AT, Handle

LOG = logging.getLogger("lava.shepherds")

SILENT = "supervisor lost: the process that kept the job on its host did not answer and was killed, and the job with it"
LOOK_S = 5.0
KILL_AT = ASK_AT + 6  # looks without a message: about 30 s after the PING, 45 s after the last message
KILL_WAITING_AT = ASK_AT + 120  # about ten minutes


class Watchdog:
    """Watcher of the shepherds that hold attempts."""

    def __init__(self, handles: Callable[[], Iterable[Handle]]) -> None:
        self._handles = handles

    async def run(self) -> None:
        """Look at intervals, for ever."""
        while True:
            await asyncio.sleep(LOOK_S)
            self.look()

    def look(self) -> None:
        """Send PING to silent shepherds, kill those that have not answered it."""
        for handle in self._handles():
            if handle.key is None or not handle.can_answer:
                continue
            handle.silent_looks += 1
            if handle.silent_looks == ASK_AT:
                handle.ask()
            elif handle.silent_looks >= (KILL_WAITING_AT if _waits_for_the_kernel(handle.pid) else KILL_AT):
                _kill(handle)


def _kill(handle: Handle) -> None:
    if not handle.why_lost:
        LOG.error("event=shepherd_silent slot=%d pid=%d job=%s", handle.slot, handle.pid, handle.key)
        handle.why_lost = SILENT
    processes.send([handle.pid], signal.SIGKILL)


def _waits_for_the_kernel(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] == "D"
