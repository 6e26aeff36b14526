"""Room on the disk of the state directory that is kept for a start on a full one, and the word that it is full.

A database that can't write a byte can't be opened, and a master that does not start can tell nobody why. The file is
given up when the database does not open and the disk is full, and made again when there is room.
"""

import contextlib
import logging
import os
from pathlib import Path

log = logging.getLogger("lavad.reserve")

FILE_NAME = "reserve"
SIZE = 16 << 20
PART = 16  # of a small disk no more than this part


class DiskReserve:
    """The file in a state directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / FILE_NAME

    @property
    def _size(self) -> int:
        """0 as long as there is no directory: one is not needed before something is written there."""
        total, _ = self._space()
        return min(SIZE, total // PART)

    def _space(self) -> tuple[int, int]:
        """Bytes in all, and free for us."""
        try:
            found = os.statvfs(self._directory)
        except OSError:  # the directory is made with the database, and with one elsewhere it may never be
            return 0, 0
        return found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail

    @property
    def _is_full(self) -> bool:
        total, free = self._space()
        return bool(total) and free < self._size

    def give_up(self) -> bool:
        """Give the room back if the disk is full; whether there was any."""
        if not self._is_full or not self._path.exists():
            return False
        self._path.unlink()
        log.error("reserve=given_up bytes=%d path=%s", self._size, self._path)
        return True

    def fill(self) -> None:
        """Make the file where it is missing and there is room for it."""
        _, free = self._space()
        if not self._size or self._path.exists() or free < 3 * self._size:
            return
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, self._size)
            finally:
                os.close(descriptor)
        except OSError as error:
            log.warning("reserve=not_made path=%s reason=%r", self._path, error.strerror)
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()

    def problem(self) -> str:
        """What the administrator should know of the disk; empty when there is room."""
        if not self._is_full:
            return ""
        _, free = self._space()
        room = f"{free >> 10} KiB are left"
        if not self._path.exists():
            room += ", and the reserve is used up"
        return f"The disk of {self._directory} is full: {room}. Make room there, or jobs can't be taken or ended soon."
