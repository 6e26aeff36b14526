"""Crash-safe records on disk: the shepherd's exit log, and the framing it shares with the agent's journal.

A record is its length, its CRC-32 and its bytes, written at once. A write survives the death of every process; only a
power failure can lose or tear the end of a file, and reading stops at the first record that is not whole.
"""

import contextlib
import ctypes
import errno
import os
import struct
import sys
import time
import zlib
from collections.abc import Iterator

from agents.shepherd.clock import NEVER
from agents.shepherd.messages import (
    FINISHED,
    POSTED,
    REFUSED,
    RELEASED,
    STARTING,
    Finish,
    JobSetup,
    Key,
    NotStarted,
    Used,
    fields_of,
    pack,
    unpack,
    write_all,
)

HEADER = struct.Struct("<II")
SOCKET_SUFFIX = ".sock"  # a shepherd removes its socket when it ends
LOG_SUFFIX = ".exits"
OLD_SUFFIX, NEW_SUFFIX = ".old", ".new"
RECORD_MAX = 16 << 10  # of a start and its end together
ROOM = 64 << 10  # allocated at once
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2
LOOK_S, LOOK_MAX_S = 0.25, 5.0


def frame(data: bytes) -> bytes:
    """Frame one record for appending."""
    return HEADER.pack(len(data), zlib.crc32(data)) + data


def frames(text: bytes) -> Iterator[bytes]:
    """Yield the whole records at the head of a file."""
    at = 0
    while at + HEADER.size <= len(text):
        size, checksum = HEADER.unpack_from(text, at)
        data = text[at + HEADER.size : at + HEADER.size + size]
        if len(data) != size or zlib.crc32(data) != checksum:
            return
        yield data
        at += HEADER.size + size


def whole_length(text: bytes) -> int:
    """Return the bytes at the head of a file that are whole records."""
    return sum(HEADER.size + len(data) for data in frames(text))


class ExitLog:
    """Exit log of a shepherd: starts before they happen, and ends. Never created or removed per job.

    Space for the end is allocated on the disk before anything is started, so that a disk which fills up meanwhile loses
    no exit code; on file systems without allocation (EOPNOTSUPP) the end is retried.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd, self._end = _open_log(path)
        self._room_end = 0  # end of the allocated space

    def rotate(self) -> None:
        """Switch to a new file, and keep the present one as the only old one.

        The agent knows when the old one is no longer needed. OSError: the present one stays in use.
        """
        descriptor, end = _open_log(self._path + NEW_SUFFIX)
        os.replace(self._path, self._path + OLD_SUFFIX)
        os.replace(self._path + NEW_SUFFIX, self._path)
        os.close(self._fd)
        self._fd, self._end, self._room_end = descriptor, end, 0

    def restore(self) -> None:
        """Write a deleted file again: without it a job that has run would be taken for one that has not.

        OSError: it failed, and can be retried.
        """
        if os.path.exists(self._path):
            return
        text = os.pread(self._fd, self._end, 0)
        descriptor = os.open(self._path + NEW_SUFFIX, os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            set_aside(descriptor, 0, self._end + ROOM)
            write_all(descriptor, text)
            os.replace(self._path + NEW_SUFFIX, self._path)
        except OSError:
            os.close(descriptor)
            raise
        os.close(self._fd)
        self._fd, self._room_end = descriptor, self._end + ROOM

    def starting(self, key: Key) -> None:
        """Record a start before the first process of an attempt: without this record none was ever started.

        Raises:
            OSError: there is no space for it, or for the end.
        """
        if self._end + RECORD_MAX > self._room_end:
            set_aside(self._fd, self._end, ROOM)
            self._room_end = self._end + ROOM
        self._write(frame(pack(STARTING, *key)))

    def append(self, message: bytes) -> None:
        """Append a packed FINISHED or REFUSED message, before it is sent.

        Raises:
            OSError: it failed, and can be retried.
        """
        self._write(frame(message))

    def _write(self, record: bytes) -> None:
        written = 0
        try:
            while written < len(record):
                written += os.pwrite(self._fd, record[written:], self._end + written)
        except OSError:
            os.ftruncate(self._fd, self._end)  # readers stop at half a record
            self._room_end = 0
            raise
        self._end += written


def _open_log(path: str) -> tuple[int, int]:
    """Open a log; return the end of its last whole record. Half a record of a dead shepherd is cut off."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    size = os.fstat(descriptor).st_size
    end = whole_length(os.pread(descriptor, size, 0))
    if end < size:
        os.ftruncate(descriptor, end)
    return descriptor, end


def set_aside(descriptor: int, start: int, size: int) -> None:
    """Allocate disk space without making the file longer, if the file system can.

    Raises:
        OSError: there is no space.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    offsets = (ctypes.c_int64(start), ctypes.c_int64(size))
    if libc.fallocate(descriptor, FALLOC_FL_KEEP_SIZE, *offsets):
        code = ctypes.get_errno()
        if code not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            raise OSError(code, os.strerror(code))


class OutputFile:
    """Output of jobs without an output file: one file a slot; a job's output is kept after its end.

    A job's file is bounded: beyond the limit the space of its middle is freed, repeatedly while it grows.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._uid = -1
        self._fd = -1
        self._limit = self._size = 0
        self._pause_s = LOOK_S
        self.next_at = NEVER  # time of the next check of its size

    def fresh(self, setup: JobSetup) -> int:
        """Return the emptied file, owned by the job's user; it stays open here."""
        uid, gid = setup.uid, setup.gid
        self._limit, self._size, self._pause_s = setup.kept_output_mib << 20, 0, LOOK_S
        self.next_at = time.monotonic() + LOOK_S
        if uid == self._uid:
            os.ftruncate(self._fd, 0)
            return self._fd
        self._forget()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        if os.geteuid() == 0:
            os.fchown(self._fd, uid, gid)
        self._uid = uid
        return self._fd

    def bound(self, now: float) -> None:
        """Check the size of the file when that is due, soon again if it grows."""
        if now < self.next_at:
            return
        size = os.fstat(self._fd).st_size
        self._pause_s = LOOK_S if size > self._size else min(2 * self._pause_s, LOOK_MAX_S)
        self._size, self.next_at = size, now + self._pause_s
        half = self._limit // 2
        if size > 2 * self._limit:
            give_back(self._fd, half, size - 2 * half)

    @property
    def directory(self) -> str:
        """The directory of kept outputs."""
        return os.path.dirname(self._path)

    def keep(self, key: Key) -> None:
        """Move an ended job's output, if any, to a file of its own, which the agent removes later."""
        if self.next_at == NEVER:
            return
        self.next_at = NEVER
        try:
            self._keep(key)
        except OSError as error:  # the disk is full: the end itself is recorded
            print(f"event=output_not_kept job={key} error={error.strerror!r}", file=sys.stderr)

    def forsake(self) -> None:
        """Keep nothing of an attempt that was never started."""
        self.next_at = NEVER

    def _keep(self, key: Key) -> None:
        size = os.fstat(self._fd).st_size
        if not size:
            return
        os.utime(self._fd)
        if size > self._limit:
            cut(self._fd, self._path, self._limit // 2, size)
        os.replace(self._path, kept_path(self.directory, key))
        self._forget()

    def _forget(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = self._uid = -1


def kept_path(directory: str, key: Key) -> str:
    """Return the path of an attempt's kept output."""
    return f"{directory}/{key[0]}.{key[1]}.{key[2]}"


def cut(descriptor: int, path: str, half: int, size: int) -> None:
    """Replace the file by its beginning and its end, with a line about the missing middle."""
    about = os.fstat(descriptor)
    ends = os.pread(descriptor, half, 0), os.pread(descriptor, half, size - half)
    other = os.open(path + NEW_SUFFIX, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        if os.geteuid() == 0:
            os.fchown(other, about.st_uid, about.st_gid)
        write_all(other, b"%s\n[%d bytes of output are left out here]\n%s" % (ends[0], size - 2 * half, ends[1]))
    finally:
        os.close(other)
    os.replace(path + NEW_SUFFIX, path)


def give_back(descriptor: int, start: int, size: int) -> None:
    """Free the disk space of a part of a file, which then reads as zeros; no effect if that is impossible."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate(descriptor, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, ctypes.c_int64(start), ctypes.c_int64(size))


class Traces:
    """Records of attempts in a shepherd's log."""

    def __init__(self) -> None:
        self.started: set[Key] = set()
        self.finished: dict[Key, Finish] = {}
        self.refused: dict[Key, NotStarted] = {}
        self.posted: dict[Key, tuple[int, float]] = {}
        self.released: dict[Key, Used] = {}

    def read(self, path: str) -> None:
        """Read a log and its predecessor; one that does not exist has no records."""
        self._read(path + OLD_SUFFIX)
        self._read(path)

    def _read(self, path: str) -> None:
        try:
            with open(path, "rb") as file:
                text = file.read()
        except FileNotFoundError:
            return
        for data in frames(text):
            kind, *fields = unpack(data)
            key = (fields[0], fields[1], fields[2])
            if kind == STARTING:
                self.started.add(key)
            elif kind == FINISHED:
                self.finished[key] = fields_of(Finish, tuple(fields))
            elif kind == REFUSED:
                self.refused[key] = NotStarted(*fields[3:])
            elif kind == POSTED:
                self.posted[key] = (fields[3], fields[4])
            elif kind == RELEASED:
                self.released[key] = Used(*fields[3:])
