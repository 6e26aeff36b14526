"""Records on disk that survive a crash: the shepherd's exit log, and the framing it shares with the agent's journal.

A record is its length, its CRC-32 and its bytes, written at once. A write survives the death of every
process; only a power cut can lose or tear the end of a file, and reading stops at the first record that is not whole.
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
    REFUSED,
    RELEASED,
    STARTING,
    Finish,
    JobSetup,
    Key,
    Used,
    fields_of,
    pack,
    unpack,
    write_all,
)

HEADER = struct.Struct("<II")
LOG_SUFFIX = ".exits"
OLD_SUFFIX, NEW_SUFFIX = ".old", ".new"
RECORD_MAX = 16 << 10  # of a start and its end together
ROOM = 64 << 10  # set aside at once
FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2
LOOK_S, LOOK_MAX_S = 0.25, 5.0


def frame(data: bytes) -> bytes:
    """One record, ready to be appended."""
    return HEADER.pack(len(data), zlib.crc32(data)) + data


def frames(text: bytes) -> Iterator[bytes]:
    """The whole records at the head of a file."""
    at = 0
    while at + HEADER.size <= len(text):
        size, checksum = HEADER.unpack_from(text, at)
        data = text[at + HEADER.size : at + HEADER.size + size]
        if len(data) != size or zlib.crc32(data) != checksum:
            return
        yield data
        at += HEADER.size + size


def whole_length(text: bytes) -> int:
    """How many bytes at the head of a file are whole records."""
    return sum(HEADER.size + len(data) for data in frames(text))


class ExitLog:
    """A shepherd's own log: what it is about to start, and how that ended. Never created or removed per job.

    Room for the end is set aside on the disk before anything is started, so that a disk which fills up meanwhile
    takes no exit code along; file systems that set no room aside (EOPNOTSUPP) leave the end to be tried again.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd, self._end = _open_log(path)
        self._room_end = 0  # what is set aside ends here

    def rotate(self) -> None:
        """Go on in a new file, and keep the present one as the only old one.

        The agent knows when nobody needs the old one. OSError: this one goes on.
        """
        descriptor, end = _open_log(self._path + NEW_SUFFIX)
        os.replace(self._path, self._path + OLD_SUFFIX)
        os.replace(self._path + NEW_SUFFIX, self._path)
        os.close(self._fd)
        self._fd, self._end, self._room_end = descriptor, end, 0

    def restore(self) -> None:
        """Write the file anew where it was deleted: without it a job that has run would be taken for one that has not.

        OSError: it is not there, and can be tried again.
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
        """Before the first process of an attempt: without this record none was ever started.

        Raises:
            OSError: there is no room for it, or for the end.
        """
        if self._end + RECORD_MAX > self._room_end:
            set_aside(self._fd, self._end, ROOM)
            self._room_end = self._end + ROOM
        self._write(frame(pack(STARTING, *key)))

    def append(self, message: bytes) -> None:
        """A packed FINISHED or REFUSED message, before it is sent.

        Raises:
            OSError: it is not there, and can be tried again.
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
    """A log and where its last whole record ends; half a record, of a shepherd that died, is cut off."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    size = os.fstat(descriptor).st_size
    end = whole_length(os.pread(descriptor, size, 0))
    if end < size:
        os.ftruncate(descriptor, end)
    return descriptor, end


def set_aside(descriptor: int, start: int, size: int) -> None:
    """Make sure of room on the disk without making the file longer, where the file system can.

    Raises:
        OSError: there is no room.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    offsets = (ctypes.c_int64(start), ctypes.c_int64(size))
    if libc.fallocate(descriptor, FALLOC_FL_KEEP_SIZE, *offsets):
        code = ctypes.get_errno()
        if code not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
            raise OSError(code, os.strerror(code))


class OutputFile:
    """Where the output of jobs without an output file goes: one file a slot; what a job wrote is kept after its end.

    A job's file is bounded: beyond the limit its middle is given back to the disk, again and again while it grows.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._uid = -1
        self._fd = -1
        self._limit = self._size = 0
        self._pause_s = LOOK_S
        self.next_at = NEVER  # when to look at how large it is

    def fresh(self, setup: JobSetup) -> int:
        """The empty file, belonging to the job's user; it stays open here."""
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
        """When it is time, look at how large the file is, soon again if it grows."""
        if now < self.next_at:
            return
        size = os.fstat(self._fd).st_size
        self._pause_s = LOOK_S if size > self._size else min(2 * self._pause_s, LOOK_MAX_S)
        self._size, self.next_at = size, now + self._pause_s
        half = self._limit // 2
        if size > 2 * self._limit:
            give_back(self._fd, half, size - 2 * half)

    def keep(self, key: Key) -> None:
        """A job has ended: what it wrote here, if anything, gets a file of its own, which the agent removes in time."""
        if self.next_at == NEVER:
            return
        self.next_at = NEVER
        try:
            self._keep(key)
        except OSError as error:  # the disk is full: the end itself is on record
            print(f"event=output_not_kept job={key} error={error.strerror!r}", file=sys.stderr)

    def _keep(self, key: Key) -> None:
        size = os.fstat(self._fd).st_size
        if not size:
            return
        os.utime(self._fd)
        if size > self._limit:
            _cut(self._fd, self._path, self._limit // 2, size)
        os.replace(self._path, kept_path(os.path.dirname(self._path), key))
        self._forget()

    def _forget(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = self._uid = -1


def kept_path(directory: str, key: Key) -> str:
    """Where the output of an attempt is kept."""
    return f"{directory}/{key[0]}.{key[1]}.{key[2]}"


def _cut(descriptor: int, path: str, half: int, size: int) -> None:
    """Put the beginning and the end in the file's place, and a line about what is missing between them."""
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
    """Free the disk space of a part of a file, which then reads as zeros; without effect where that cannot be done."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate(descriptor, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, ctypes.c_int64(start), ctypes.c_int64(size))


class Traces:
    """What a shepherd's log tells of attempts."""

    def __init__(self) -> None:
        self.started: set[Key] = set()
        self.finished: dict[Key, Finish] = {}
        self.refused: dict[Key, str] = {}
        self.released: dict[Key, Used] = {}

    def read(self, path: str) -> None:
        """Take in a log and its predecessor; one that does not exist tells nothing."""
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
                self.refused[key] = fields[3]
            elif kind == RELEASED:
                self.released[key] = Used(*fields[3:])
