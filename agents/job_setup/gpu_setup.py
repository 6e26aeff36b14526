"""GPU set-up for attempts, and its reversal when nothing of an attempt is left on this host.

The work may block (the driver, the disk), so one thread does it, in the order of the requests: the set-up of one job is
reversed before the next one sent here gets the device.
"""

import asyncio
import contextlib
import logging
import os
import shutil
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from agents.attempts.ledger_entry import Entry
from agents.gpus.vendor import ModeError, Modes
from agents.job_setup.gpu_modes import GpuModes
from agents.job_setup.users import Owner
from agents.shepherd.messages import Key
from agents.shepherd.process.gpu_daemon import directory_of
from agents.state_directory import GPU_MODES
from protos.gpu_vendors import GpuVendor

LOG = logging.getLogger("lava.gpu")


class NotReady(Exception):
    """GPU set-up failed; the text is one sentence for the master."""


class Devices:
    """GPU set-up of this host's attempts. ``state`` is the agent's own directory."""

    def __init__(self, host: str, state: Path, modes: Modes, vendor: GpuVendor) -> None:
        self._host = host
        self._modes = GpuModes(state / GPU_MODES, modes)
        self._daemon = vendor.daemon
        self._base = state / vendor.daemon.folder if vendor.daemon else None
        self._thread = ThreadPoolExecutor(1, "devices")

    def concern(self, entry: Entry) -> bool:
        """Return True if the attempt has GPUs here that need a set-up."""
        return entry.stage.HasField("gpu") and bool(self._gpus(entry))

    async def make_ready(self, entry: Entry, owner: Owner) -> None:
        """Set up the attempt's GPUs; NotReady if that fails, and then `put_back` reverses the part done."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._make_ready, entry, owner)
        except (ModeError, OSError) as error:
            raise NotReady(f"the GPUs can't be made ready: {error}") from None

    def _make_ready(self, entry: Entry, owner: Owner) -> None:
        wanted = entry.stage.gpu
        if wanted.mode:
            self._modes.set(entry.key, self._gpus(entry), wanted.mode)
        if wanted.mps and self._daemon and self._base:
            self._base.mkdir(mode=0o711, exist_ok=True)
            own = Path(directory_of(str(self._base), entry.key))
            self._make_directories(own, [name for _, name in self._daemon.directories], owner)

    def _gpus(self, entry: Entry) -> list[int]:
        return [gpu for share in entry.stage.allocation if share.host == self._host for gpu in share.gpus]

    def _make_directories(self, own: Path, names: Sequence[str], owner: Owner) -> None:
        shutil.rmtree(own, ignore_errors=True)
        for path in (own, *(own / name for name in names)):
            path.mkdir(mode=0o700)
            if os.geteuid() == 0:
                os.chown(path, owner.uid, owner.gid)

    def put_back(self, entry: Entry) -> None:
        """Reverse the set-up of an attempt of which nothing is left here; returns at once."""
        if self.concern(entry):
            self._thread.submit(self._put_back, entry.key)

    def _put_back(self, key: Key) -> None:
        if self._base:
            shutil.rmtree(directory_of(str(self._base), key), ignore_errors=True)
        try:
            self._modes.put_back(key)
        except OSError as error:
            LOG.error("event=modes_not_noted error=%s", error.strerror)

    def adopt(self, held: Collection[Key]) -> None:
        """Reverse the set-up of attempts no longer held, after a restart. Blocks."""
        self._modes.adopt(held)
        if self._base:
            _remove_others(self._base, {directory_of(str(self._base), key) for key in held})

    async def close(self) -> None:
        """Finish pending work."""
        await asyncio.get_running_loop().run_in_executor(None, self._thread.shutdown)


def _remove_others(base: Path, wanted: Collection[str]) -> None:
    with contextlib.suppress(FileNotFoundError):
        for path in base.iterdir():
            if str(path) not in wanted:
                shutil.rmtree(path, ignore_errors=True)
