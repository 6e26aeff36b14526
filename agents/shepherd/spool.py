"""Records on disk that survive a crash: the shepherd's exit log, and the framing it shares with the agent's journal.

A record is its length, its CRC-32 and its bytes, appended with one write. A write survives the death of every
process; only a power cut can lose or tear the end of a file, and reading stops at the first record that is not whole.
"""

import contextlib
import os
import struct
import zlib
from collections.abc import Iterator

from agents.shepherd.messages import (
    FINISHED,
    REFUSED,
    RELEASED,
    STARTING,
    Finish,
    Key,
    Used,
    fields_of,
    pack,
    unpack,
    write_all,
)

HEADER = struct.Struct("<II")
LOG_SUFFIX = ".exits"
OLD_SUFFIX = ".old"


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
    """A shepherd's own log: what it is about to start, and how that ended. Never created or removed per job."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._fd = self._open()

    def _open(self) -> int:
        return os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def rotate(self) -> None:
        """Go on in a new file, and keep the present one as the only old one.

        The agent knows when nobody needs the old one.
        """
        os.replace(self._path, self._path + OLD_SUFFIX)
        os.close(self._fd)
        self._fd = self._open()

    def starting(self, key: Key) -> None:
        """Before the first process of an attempt: without this record none was ever started."""
        write_all(self._fd, frame(pack(STARTING, *key)))

    def append(self, message: bytes) -> None:
        """A packed FINISHED or REFUSED message, before it is sent."""
        write_all(self._fd, frame(message))


class OutputFile:
    """Where the output of jobs without an output file goes: one file a slot, emptied for each job.

    Another user gets another file, because somebody may still hold the old one open.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._uid = -1
        self._fd = -1

    def fresh(self, uid: int, gid: int) -> int:
        """The empty file, belonging to the user; it stays open here."""
        if uid == self._uid:
            os.ftruncate(self._fd, 0)
            return self._fd
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = self._uid = -1
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        if os.geteuid() == 0:
            os.fchown(self._fd, uid, gid)
        self._uid = uid
        return self._fd

    def clear(self) -> None:
        """A job has ended: its output is nobody's any more."""
        if self._fd >= 0 and os.fstat(self._fd).st_size:
            os.ftruncate(self._fd, 0)


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
