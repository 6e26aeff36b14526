"""The ledger on disk: what was ordered and how it ended, appended before it is acted upon, read again after a crash.

Records are framed as in `shepherd.spool`; what is damaged is left out, and told. Invariants: nothing is handed to a
shepherd before `sync` has returned; a file is replaced only by a complete and durable new one; after a failed sync
this file is not written again, because what the kernel still holds of it is unknown.
"""

import logging
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from agents.ledger import Ledger
from agents.shepherd.messages import Key, write_all
from agents.shepherd.spool import HEADER, frame, frames
from protos.agents_pb2 import CommitMark, JobSpecBlob, Order, Report
from protos.common_pb2 import AttemptKey

# The first byte of a record.
BOOT, TERM, SPEC, ORDER, END, FORGET, RESIZED, MARK = b"B", b"T", b"S", b"O", b"R", b"F", b"Z", b"M"

# A journal is made anew when it has this many bytes and most of them are of attempts long forgotten.
COMPACT_AT = 4 << 20
DAMAGED_KEPT = 3

LOG = logging.getLogger("lava.journal")


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


def salvaged(text: bytes) -> Iterator[tuple[int, bytes]]:
    """The whole records of a file and where they begin, also those behind a damaged part."""
    at = 0
    while at + HEADER.size <= len(text):
        record = next(frames(text[at : at + _length(text, at)]), None)
        if record is None:
            at += 1
            continue
        yield at, record
        at += HEADER.size + len(record)


def _length(text: bytes, at: int) -> int:
    """How many bytes a record at this place would have; 0 when it would not fit or be empty."""
    size, _ = HEADER.unpack_from(text, at)
    return HEADER.size + size if 0 < size <= len(text) - at - HEADER.size else 0


class Journal:
    """An open journal."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self.size = 0
        self._base_size = 0
        self.is_damaged = False
        self.is_missing = False

    def load(self) -> tuple[Ledger, str]:
        """The ledger as it was, and the boot id of the machine then (empty: a new journal).

        Of a damaged file all whole records count, also those behind the damage; the file as it was is kept aside.
        """
        ledger, boot = Ledger(), ""
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            self.is_missing = True
            return ledger, boot
        records = list(salvaged(text))
        whole = sum(HEADER.size + len(record) for _, record in records)
        for _, record in records:
            kind, body = record[:1], record[1:]
            if kind == BOOT:
                boot = body.decode()
            else:
                _replay(ledger, kind, body)
        if whole < len(text):
            self.is_damaged = True
            self._keep_aside(text, records)
        return ledger, boot

    def _keep_aside(self, text: bytes, records: list[tuple[int, bytes]]) -> None:
        """Tell of the damage and keep the file for whoever wants to look; a rewrite takes its place soon."""
        at = 0
        for offset, record in records:
            if offset != at:
                break
            at = offset + HEADER.size + len(record)
        kept = self._path.with_name(f"{self._path.name}.damaged-{int(time.time())}")
        try:
            kept.write_bytes(text)
            kept.chmod(0o600)
            for old in sorted(self._path.parent.glob(f"{self._path.name}.damaged-*"))[:-DAMAGED_KEPT]:
                old.unlink()
        except OSError as error:
            LOG.error("event=journal_not_kept_aside reason=%r", error.strerror)
        LOG.error(
            "event=journal_damaged path=%s offset=%d bytes=%d records=%d kept=%s",
            self._path, at, len(text) - sum(HEADER.size + len(record) for _, record in records), len(records), kept,
        )  # fmt: skip

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
