"""Disk reserve of the state directory, for a start on a full disk, and the report that the disk is full.

A database that can't write can't be opened, and a master that does not start can report nothing. The file is deleted
when the database does not open and the disk is full, and made again when there is space.
"""

import contextlib
import logging
import os
from pathlib import Path

log = logging.getLogger("lavad.store.disk_reserve")

FILE_NAME = "reserve"
SIZE = 16 << 20
PART = 16  # largest part of a small disk
ROOM = 3  # times its size: free space in which it is made


class DiskReserve:
    """Reserve file in a state directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / FILE_NAME

    @property
    def _size(self) -> int:
        """Size in bytes; 0 while there is no directory, since nothing is written there yet."""
        total, _ = self._space()
        return min(SIZE, total // PART)

    def _space(self) -> tuple[int, int]:
        """Return total bytes, and free bytes for this process."""
        try:
            found = os.statvfs(self._directory)
        except OSError:  # the directory is made with the database; with a database elsewhere it may never exist
            return 0, 0
        return found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail

    @property
    def _is_full(self) -> bool:
        """True with less space than the reserve has, or, once it is given up, with too little to make it anew."""
        total, free = self._space()
        return bool(total) and free < (1 if self._path.exists() else ROOM) * self._size

    def give_up(self) -> bool:
        """Delete the file if the disk is full; return True if there was one."""
        if not self._is_full or not self._path.exists():
            return False
        self._path.unlink()
        log.error("reserve=given_up bytes=%d path=%s", self._size, self._path)
        return True

    def fill(self) -> None:
        """Make the file if it is missing and there is space for it."""
        _, free = self._space()
        if not self._size or self._path.exists() or free < ROOM * self._size:
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
        """Return a sentence for the administrator if the disk is full; empty if not."""
        if not self._is_full:
            return ""
        _, free = self._space()
        room = f"{free >> 10} KiB are left"
        if not self._path.exists():
            room += ", and the reserve is used up"
        return f"The disk of {self._directory} is full: {room}. Make room there, or jobs can't be taken or ended soon."
