"""Journal of the ledger: orders and ends, appended before they are acted upon, read again after a crash.

Records are framed as in `shepherd.spool`; damaged ones are left out and logged. Invariants: nothing is handed to a
shepherd before `sync` has returned; a file is replaced only by a complete and durable new one; after a failed sync this
file is not written again, because its state in the kernel is unknown.
"""

import logging
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from agents.attempts.ledger import Ledger
from agents.shepherd.messages import Key, write_all
from agents.shepherd.spool import HEADER, frame, frames
from protos.agents_pb2 import CommitMark, JobSpecBlob, Order, Report, Staged
from protos.common_pb2 import AttemptKey

# Kinds: the first byte of a record.
BOOT, TERM, SPEC, ORDER, END, FORGET, RESIZED, MARK, PORTS = b"B", b"T", b"S", b"O", b"R", b"F", b"Z", b"M", b"P"
MAILED = b"L"

# Size of a journal to compact, if most of it is about attempts forgotten long ago.
COMPACT_AT = 4 << 20
DAMAGED_KEPT = 3

LOG = logging.getLogger("lava.journal")


class JournalError(Exception):
    """Journal not to be trusted any more; the agent must stop and restart from the disk."""


def order_record(order: Order) -> bytes:
    """Record of an accepted order."""
    return frame(ORDER + order.SerializeToString())


def spec_record(blob: JobSpecBlob) -> bytes:
    """Record of a job's spec."""
    return frame(SPEC + blob.SerializeToString())


def end_record(report: Report) -> bytes:
    """Record of a last report that no shepherd's log has."""
    return frame(END + report.SerializeToString())


def resized_record(report: Report) -> bytes:
    """Record that a job was notified of another allocation."""
    return frame(RESIZED + report.SerializeToString())


def ports_record(report: Report) -> bytes:
    """Record of the ports of an attempt's tasks."""
    return frame(PORTS + report.SerializeToString())


def forget_record(key: Key) -> bytes:
    """Record that the master no longer needs an attempt."""
    job, index, attempt = key
    return frame(FORGET + AttemptKey(job=job, index=index, attempt=attempt).SerializeToString())


def mailed_record(key: Key, what: str) -> bytes:
    """Record that a mail about the start or the end of an attempt is being sent."""
    return frame(MAILED + " ".join([what, *map(str, key)]).encode())


def term_record(term: int) -> bytes:
    """Record of the highest term seen."""
    return frame(TERM + b"%d" % term)


def mark_record(mark: CommitMark) -> bytes:
    """Record of the master's commit mark."""
    return frame(MARK + mark.SerializeToString())


def salvaged(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the whole records of a file with their offsets, also those behind a damaged part."""
    at = 0
    while at + HEADER.size <= len(text):
        record = next(frames(text[at : at + _length(text, at)]), None)
        if record is None:
            at += 1
            continue
        yield at, record
        at += HEADER.size + len(record)


def _length(text: bytes, at: int) -> int:
    """Return the length of a record at this offset; 0 if it would be empty or not fit."""
    size, _ = HEADER.unpack_from(text, at)
    return HEADER.size + size if 0 < size <= len(text) - at - HEADER.size else 0


class Journal:
    """Open journal."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fd = -1
        self.size = 0
        self._base_size = 0
        self.is_damaged = False
        self.is_missing = False

    def load(self) -> tuple[Ledger, str]:
        """Read the ledger, and the machine's boot id when it was written (empty for a new journal).

        Of a damaged file all whole records count, also those behind the damage; a copy of the file is kept aside.
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
        """Log the damage and keep a copy of the file for inspection; a rewrite replaces the file soon."""
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
        """Write a new file with the ledger's present state, and use it from now on.

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
        """True if most of the file is history."""
        return self.size > COMPACT_AT + 4 * self._base_size

    def append(self, records: Iterable[bytes]) -> None:
        """Append records; durable only after `sync`.

        Raises:
            OSError: nothing was written, the disk may be full.
            JournalError: a part was written, and cannot be taken back.
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
        """Make all records durable; blocks, so call it in a thread.

        Raises:
            JournalError: the state on disk is unknown.
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
    elif kind == PORTS:
        ledger.restore_ports(Report.FromString(body))
    elif kind == MARK:
        ledger.note_mark(CommitMark.FromString(body))
    elif kind == MAILED:
        what, job, index, attempt = body.decode().split()
        entry = ledger.entries.get((int(job), int(index), int(attempt)))
        if entry is not None:
            entry.mailed |= {what}
    elif kind == FORGET:
        key = AttemptKey.FromString(body)
        ledger.drop((key.job, key.index, key.attempt))


def _content(ledger: Ledger, boot: str) -> Iterable[bytes]:
    yield frame(BOOT + boot.encode())
    yield term_record(ledger.term)
    yield mark_record(ledger.mark)
    written: JobSpecBlob | None = None
    # By spec, because an order is read with the spec before it.
    for entry in sorted(ledger.entries.values(), key=lambda entry: (entry.key[0], id(entry.blob))):
        if entry.blob is not written:
            yield spec_record(entry.blob)
            written = entry.blob
        yield from map(order_record, ledger.orders_of(entry))
        if entry.resized is not None:
            yield resized_record(entry.resized)
        if entry.tasks is not None and (entry.tasks.reserved or entry.tasks.address):
            staged = Staged(tasks=entry.tasks.reserved, address=entry.tasks.address)
            yield ports_record(ledger.reserve(entry.key, staged))
        yield from (mailed_record(entry.key, what) for what in sorted(entry.mailed))
        if ledger.is_over(entry) and entry.last is not None:
            yield end_record(entry.last)
    yield from map(spec_record, ledger.specs.values())


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
