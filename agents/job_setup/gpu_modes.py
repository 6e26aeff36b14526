"""Compute mode of the host's GPUs for the duration of a job: set before it starts, restored after it.

Invariants: a device's original mode is on disk before it is changed, and stays there until it is restored, so the next
agent can restore it; if jobs follow one another on a device before that, the mode from before the first of them is
restored. All methods may block: the driver and the disk.
"""

import json
import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from agents.gpus.vendor import ModeError, Modes
from agents.job_setup.environment import write_whole
from agents.shepherd.messages import Key

LOG = logging.getLogger("lava.gpu")

SHARED = "shared"  # mode of a job that requests none


class Changed(NamedTuple):
    """A device with a changed mode, or one about to change; ``wants`` is the mode for each attempt."""

    before: str
    wants: dict[Key, str]


class GpuModes:
    """Modes of this host's devices; ``path`` is the file that stores the original ones."""

    def __init__(self, path: Path, modes: Modes) -> None:
        self._path = path
        self._modes = modes
        self._changed: dict[str, Changed] = _read(path)

    def set(self, key: Key, gpus: Sequence[int], mode: str) -> None:
        """Set the mode that an attempt wants on devices.

        Raises:
            ModeError: the driver refused; `put_back` restores earlier changes.
            OSError: the disk refused.
        """
        for gpu in gpus:
            try:
                self._set(key, self._modes.uuid(gpu), mode)
            except ModeError as error:
                if mode != SHARED:
                    raise ModeError(f"the compute mode of GPU {gpu} can't be set to {mode}: {error}") from None
                LOG.warning("event=mode_left gpu=%d reason=%r", gpu, str(error))  # most jobs never request one

    def _set(self, key: Key, uuid: str, mode: str) -> None:
        now = self._modes.read(uuid)
        if uuid not in self._changed and now == mode:
            return
        changed = self._changed.setdefault(uuid, Changed(now, {}))
        changed.wants[key] = mode
        self._write()
        if now != mode:
            self._modes.set(uuid, mode)

    def put_back(self, key: Key) -> None:
        """Restore the modes after an attempt; OSError if the disk refuses."""
        self._keep_only(lambda one: one != key)

    def adopt(self, held: Collection[Key]) -> None:
        """Restore the modes of devices of attempts no longer held, after a restart."""
        self._keep_only(lambda one: one in held)

    def _keep_only(self, stays: Callable[[Key], bool]) -> None:
        touched = [uuid for uuid, one in self._changed.items() if not all(map(stays, one.wants))]
        for uuid in touched:
            before, wants = self._changed[uuid]
            left = {key: mode for key, mode in wants.items() if stays(key)}
            mode = list(left.values())[-1] if left else before
            try:
                if self._modes.read(uuid) != mode:
                    self._modes.set(uuid, mode)
            except ModeError as error:  # a lost device has no mode any more; after a reset it has the driver's default
                LOG.warning("event=mode_not_put_back gpu=%s mode=%s reason=%r", uuid, mode, str(error))
            if left:
                self._changed[uuid] = Changed(before, left)
            else:
                del self._changed[uuid]
        if touched:
            self._write()

    def _write(self) -> None:
        text = {
            uuid: [one.before, [[list(key), mode] for key, mode in one.wants.items()]]
            for uuid, one in self._changed.items()
        }
        write_whole(str(self._path), json.dumps(text).encode(), 0o600)


def _read(path: Path) -> dict[str, Changed]:
    try:
        text = json.loads(path.read_text(encoding="ascii"))
    except FileNotFoundError:
        return {}
    except ValueError:
        LOG.warning("event=modes_unreadable path=%s", path)
        return {}
    return {
        uuid: Changed(before, {(job, index, attempt): mode for (job, index, attempt), mode in wants})
        for uuid, (before, wants) in text.items()
    }
