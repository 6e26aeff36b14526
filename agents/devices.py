"""GPUs made ready for an attempt, and put back in order when nothing of it is left on this host.

What has to be done may block (the driver, the disk), so it is done by one thread, in the order in which it was asked
for: what one job leaves is put back before the next one that was sent here gets the device.
"""

import asyncio
import contextlib
import logging
import os
import shutil
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agents.gpu_modes import GpuModes
from agents.ledger import Entry
from agents.sensors.compute_mode import ModeError, Modes
from agents.shepherd.messages import Key
from agents.shepherd.mps import LOG_DIRECTORY, PIPE_DIRECTORY, directory_of
from agents.users import Owner

LOG = logging.getLogger("lava.gpu")


class NotReady(Exception):
    """The devices can't be made ready; the text is one sentence for the master."""


class Devices:
    """What this host's attempts need of its devices. ``state`` is the agent's own directory."""

    def __init__(self, host: str, state: Path, modes: Modes) -> None:
        self._host = host
        self._modes = GpuModes(state / "gpu-modes", modes)
        self.mps_directory = state / "mps"
        self._thread = ThreadPoolExecutor(1, "devices")

    def concern(self, entry: Entry) -> bool:
        """Has the attempt devices here that must be made ready?"""
        return entry.stage.HasField("gpu") and bool(self._gpus(entry))

    async def make_ready(self, entry: Entry, owner: Owner) -> None:
        """Raises NotReady; what was done by then is for `put_back`."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._make_ready, entry, owner)
        except (ModeError, OSError) as error:
            raise NotReady(f"the GPUs can't be made ready: {error}") from None

    def _make_ready(self, entry: Entry, owner: Owner) -> None:
        wanted = entry.stage.gpu
        if wanted.mode:
            self._modes.set(entry.key, self._gpus(entry), wanted.mode)
        if wanted.mps:
            self._make_directories(Path(directory_of(str(self.mps_directory), entry.key)), owner)

    def _gpus(self, entry: Entry) -> list[int]:
        return [gpu for share in entry.stage.allocation if share.host == self._host for gpu in share.gpus]

    def _make_directories(self, own: Path, owner: Owner) -> None:
        self.mps_directory.mkdir(mode=0o711, exist_ok=True)
        shutil.rmtree(own, ignore_errors=True)
        for path in (own, own / PIPE_DIRECTORY, own / LOG_DIRECTORY):
            path.mkdir(mode=0o700)
            if os.geteuid() == 0:
                os.chown(path, owner.uid, owner.gid)

    def put_back(self, entry: Entry) -> None:
        """Nothing of the attempt is left here; returns at once."""
        if self.concern(entry):
            self._thread.submit(self._put_back, entry.key)

    def _put_back(self, key: Key) -> None:
        shutil.rmtree(directory_of(str(self.mps_directory), key), ignore_errors=True)
        try:
            self._modes.put_back(key)
        except OSError as error:
            LOG.error("event=modes_not_noted error=%s", error.strerror)

    def adopt(self, held: Collection[Key]) -> None:
        """After a restart: put back what attempts have left that are no longer held. Blocks."""
        self._modes.adopt(held)
        wanted = {directory_of(str(self.mps_directory), key) for key in held}
        with contextlib.suppress(FileNotFoundError):
            for path in self.mps_directory.iterdir():
                if str(path) not in wanted:
                    shutil.rmtree(path, ignore_errors=True)

    async def close(self) -> None:
        """Finish what is under way."""
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)
