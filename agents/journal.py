"""The ledger on disk: what was ordered and how it ended, appended before it is acted upon, read again after a crash.

Records are framed as in `shepherd.spool`; the end of a torn file is cut off. Invariants: nothing is handed to a
shepherd before `sync` has returned; a file is replaced only by a complete and durable new one; after a failed sync
this file is not written again, because what the kernel still holds of it is unknown.
"""

import os
from collections.abc import Iterable
from pathlib import Path

from agents.ledger import Ledger
from agents.shepherd.messages import Key, write_all
from agents.shepherd.spool import frame, frames, whole_length
from protos.agents_pb2 import CommitMark, JobSpecBlob, Order, Report
from protos.common_pb2 import AttemptKey

# The first byte of a record.
BOOT, TERM, SPEC, ORDER, END, FORGET, RESIZED, MARK = b"B", b"T", b"S", b"O", b"R", b"F", b"Z", b"M"

# A journal is made anew when it has this many bytes and most of them are of attempts long forgotten.
COMPACT_AT = 4 << 20


class JournalError(Exception):
    """The journal can no longer be trusted; the agent must stop and start again from what is on disk."""


def order_record(order: Order) -> bytes:
    """An order that was accepted."""
    return frame(ORDER + order.SerializeToString())


def spec_record(blob: JobSpecBlob) -> bytes:
    """A job's spec."""
    return frame(SPEC + blob.SerializeToString())


def end_record(report: Report) -> bytes:
    """A last report that no shepherd's log tells."""
    return frame(END + report.SerializeToString())


def resized_record(report: Report) -> bytes:
    """That a job was told of another allocation."""
    return frame(RESIZED + report.SerializeToString())


def forget_record(key: Key) -> bytes:
    """An attempt that the master no longer asks about."""
    job, index, attempt = key
    return frame(FORGET + AttemptKey(job=job, index=index, attempt=attempt).SerializeToString())


def term_record(term: int) -> bytes:
    """The highest term seen."""
    return frame(TERM + b"%d" % term)


def mark_record(mark: CommitMark) -> bytes:
    """How far the master's database has come."""
    return frame(MARK + mark.SerializeToString())


class Journal:
    """An open journal."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self.size = 0
        self._base_size = 0

    def load(self) -> tuple[Ledger, str]:
        """The ledger as it was, and the boot id of the machine then (empty: a new journal)."""
        ledger, boot = Ledger(), ""
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return ledger, boot
        for record in frames(text):
            kind, body = record[:1], record[1:]
            if kind == BOOT:
                boot = body.decode()
            else:
                _replay(ledger, kind, body)
        size = whole_length(text)
        if size < len(text):
            os.truncate(self._path, size)
        return ledger, boot

    def rewrite(self, ledger: Ledger, boot: str) -> None:
        """Put a new file in place, with what the ledger holds now, and go on with that one.

        Raises:
            OSError: the old file is still the one in use.
        """
        content = b"".join(_content(ledger, boot))
        temporary = self._path.with_suffix(".new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            write_all(descriptor, content)
            os.fsync(descriptor)
            os.replace(temporary, self._path)
        except OSError:
            os.close(descriptor)
            raise
        _sync_directory(self._path.parent)
        self.close()
        self._fd, self.size, self._base_size = descriptor, len(content), len(content)

    @property
    def wants_compaction(self) -> bool:
        """Whether most of the file is history."""
        return self.size > COMPACT_AT + 4 * self._base_size

    def append(self, records: Iterable[bytes]) -> None:
        """Write; durable only after `sync`.

        Raises:
            OSError: nothing of this was written, the disk may be full.
            JournalError: something of it was, and cannot be taken back.
        """
        data = b"".join(records)
        try:
            write_all(self._fd, data)
        except OSError:
            try:
                os.ftruncate(self._fd, self.size)
            except OSError as error:
                raise JournalError(f"{self._path}: {error.strerror}") from error
            raise
        self.size += len(data)

    def sync(self) -> None:
        """Make everything durable; blocks, so call it in a thread.

        Raises:
            JournalError: nobody knows what is on disk.
        """
        try:
            os.fdatasync(self._fd)
        except OSError as error:
            raise JournalError(f"{self._path}: {error.strerror}") from error

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _replay(ledger: Ledger, kind: bytes, body: bytes) -> None:
    if kind == TERM:
        ledger.accept_term(int(body))
    elif kind == SPEC:
        ledger.learn(JobSpecBlob.FromString(body))
    elif kind == ORDER:
        ledger.restore(Order.FromString(body))
    elif kind == END:
        ledger.restore_end(Report.FromString(body))
    elif kind == RESIZED:
        ledger.restore_resized(Report.FromString(body))
    elif kind == MARK:
        ledger.note_mark(CommitMark.FromString(body))
    elif kind == FORGET:
        key = AttemptKey.FromString(body)
        ledger.drop((key.job, key.index, key.attempt))


def _content(ledger: Ledger, boot: str) -> Iterable[bytes]:
    yield frame(BOOT + boot.encode())
    yield term_record(ledger.term)
    yield mark_record(ledger.mark)
    written: JobSpecBlob | None = None
    # By spec, because an order is read with the spec that stands before it.
    for entry in sorted(ledger.entries.values(), key=lambda entry: (entry.key[0], id(entry.blob))):
        if entry.blob is not written:
            yield spec_record(entry.blob)
            written = entry.blob
        yield from map(order_record, ledger.orders_of(entry))
        if entry.resized is not None:
            yield resized_record(entry.resized)
        if ledger.is_over(entry) and entry.last is not None:
            yield end_record(entry.last)
    yield from map(spec_record, ledger.specs.values())


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
