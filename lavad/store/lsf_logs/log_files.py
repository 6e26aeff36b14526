"""The two files, and how far they tell: no record is lost or doubled, whenever the process is killed.

Lines are appended and synced, then the position file says how far the database is told and how long the files are. What
a file has beyond that at the next start is cut off and written again. A file that this position does not know is
another program's, LSF's own for instance: it is never touched.
"""

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lavad.store.lsf_logs import fields as f

POSITION = ".lsb.lava"
ACCT, EVENTS = "lsb.acct", "lsb.events"
DIRECTORY_MODE = 0o755
_HEAD_BYTES = 17  # of the first line of lsb.events, so that it can be overwritten in place


# The unit of lavad lets it write to its own directories only, and the system then calls all others read-only.
UNDER_SYSTEMD = " Under systemd its unit must allow it: systemctl edit lavad, with ReadWritePaths={} in [Service]."


class CannotWrite(Exception):
    """Files that can't be written now; the message is a sentence."""


@dataclass(slots=True)
class Rules:
    """Rules of the switch of files and of their mode. 0 means never, or any number."""

    jobs_max: int = 10_000  # ended jobs in lsb.events
    switch_s: float = 60.0  # least time between two switches
    acct_bytes: int = 0
    acct_s: float = 0.0
    acct_files: int = 0
    kept_s: float = 0.0  # old lsb.events files
    mode: int = 0o644


@dataclass(slots=True)
class Position:
    """Part of the database that the files tell.

    ``seq`` is the last row of the history of which all is told, ``within`` the elements of the next one that are told.
    ``held`` are ended attempts whose hosts may still report usage.
    """

    cluster_id: str = ""
    seq: int = 0
    within: int = 0
    held: list[list[float]] = field(default_factory=list)
    jobs: int = 0  # ended jobs in the present lsb.events
    switched_at: float = 0.0
    archived_at: float = 0.0
    files: dict[str, list[int]] = field(default_factory=dict)  # inode and length


class LogFiles:
    """lsb.acct and lsb.events of one directory."""

    def __init__(self, directory: Path, rules: Rules) -> None:
        self.directory = directory
        self.rules = rules
        self.position = Position()
        self._lock = -1
        self._open: dict[str, int] = {}

    def open(self, begin: Position) -> None:
        """Take the directory, and cut off what was written beyond the position.

        Args:
            begin: where to begin if nothing was written there for this cluster.

        Raises:
            CannotWrite: another master has it, a file is another program's, or the system refuses.
        """
        try:
            self._make_directory()
            self._take()
            known = self._read()
            if known is None or known.cluster_id != begin.cluster_id:
                known = replace(begin, files=known.files if known else {})
            self.position = known
            for name in (ACCT, EVENTS):
                self._open[name] = self._file(name)
            self.save()
        except OSError as error:
            raise CannotWrite(self._sentence(error)) from error
        self.apply_mode()

    def _make_directory(self) -> None:
        """Make the directory so that users can pass through to the files, whose own modes tell who may read them."""
        missing = [path for path in (self.directory, *self.directory.parents) if not path.exists()]
        self.directory.mkdir(parents=True, exist_ok=True)
        for path in missing:
            path.chmod(DIRECTORY_MODE)  # the umask of lavad's unit leaves nothing to others

    def apply_mode(self) -> None:
        """Give all files that were written here, the old ones too, the mode of the rules.

        Raises:
            CannotWrite: the system refuses.
        """
        try:
            for name, descriptor in self._open.items():
                os.fchmod(descriptor, self.rules.mode)
                for path in self._old(name):
                    if path.stat().st_uid == os.geteuid():  # another's was written by another program
                        path.chmod(self.rules.mode)
        except OSError as error:
            raise CannotWrite(self._sentence(error)) from error

    def _sentence(self, error: OSError) -> str:
        sentence = f"The logs for LSF's tools in {self.directory} can't be written: {error.strerror}."
        return sentence + (UNDER_SYSTEMD.format(self.directory) if error.errno == errno.EROFS else "")

    def _take(self) -> None:
        if self._lock < 0:
            self._lock = os.open(self.directory / f"{POSITION}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotWrite(f"Another lavad writes the logs in {self.directory}.") from None

    def _read(self) -> Position | None:
        try:
            values: dict[str, Any] = json.loads((self.directory / POSITION).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            told = f"{self.directory / POSITION} is damaged: move it away with {ACCT} and {EVENTS}"
            raise CannotWrite(f"{told}, and new ones begin.") from None
        known = Position.__dataclass_fields__
        return Position(**{name: value for name, value in values.items() if name in known})

    def _file(self, name: str) -> int:
        """Open a file at its recorded length."""
        path, known = self.directory / name, self.position.files.get(name)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, self.rules.mode)
        status = os.fstat(descriptor)
        if status.st_size and (known is None or known[0] != status.st_ino):
            os.close(descriptor)
            raise CannotWrite(
                f"{path} was not written by this cluster, and stays as it is: "
                f"move it away, or set LAVA_LSF_LOGS=no in lava.conf."
            )
        os.fchmod(descriptor, self.rules.mode)
        length = min(known[1], status.st_size) if known is not None and known[0] == status.st_ino else 0
        if length < status.st_size:
            os.ftruncate(descriptor, length)
        self.position.files[name] = [status.st_ino, length]
        if not length:
            self.save()  # it is known as ours before anything is in it
            if name == EVENTS:
                self.position.files[name][1] = os.pwrite(descriptor, _head(_HEAD_BYTES), 0)
        return descriptor

    def append(self, acct: bytes, events: bytes) -> None:
        """Append lines to both files, durably; ``save`` makes them count.

        Raises:
            CannotWrite: the system refuses; what was written so far is written again.
        """
        try:
            told = [(name, data) for name, data in ((ACCT, acct), (EVENTS, events)) if data]
            for name, _ in told:
                if not self._is_in_place(name):  # moved away, as by logrotate: a new one begins
                    os.close(self._open.pop(name))
                    self._open[name] = self._file(name)
            for name, data in told:
                self._append(name, data)
        except OSError as error:
            raise CannotWrite(self._sentence(error)) from error

    def _append(self, name: str, data: bytes) -> None:
        descriptor, length = self._open[name], self.position.files[name][1]
        size = os.fstat(descriptor).st_size
        length = min(length, size)  # it may have been emptied
        view = memoryview(data)
        while view:
            written = os.pwrite(descriptor, view, length)
            length += written
            view = view[written:]
        os.fsync(descriptor)
        self.position.files[name][1] = length

    def _is_in_place(self, name: str) -> bool:
        with contextlib.suppress(FileNotFoundError):
            return os.stat(self.directory / name).st_ino == self.position.files[name][0]
        return False

    def save(self) -> None:
        """Write the position, durably.

        Raises:
            CannotWrite: the system refuses.
        """
        path = self.directory / POSITION
        values = {name: getattr(self.position, name) for name in Position.__dataclass_fields__}
        try:
            with open(f"{path}.new", "w", encoding="utf-8") as file:
                json.dump(values, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(f"{path}.new", path)
            self._sync_directory()
        except OSError as error:
            raise CannotWrite(self._sentence(error)) from error

    def _sync_directory(self) -> None:
        descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    # -- switches --------------------------------------------------------------------------------------------------

    def switch(self, now: float) -> None:
        """Begin new files where the rules want it; call it when all that was appended is saved.

        Raises:
            CannotWrite: the system refuses.
        """
        rules, position = self.rules, self.position
        try:
            is_due = rules.jobs_max and position.jobs >= rules.jobs_max
            if is_due and now - position.switched_at >= rules.switch_s:
                os.pwrite(self._open[EVENTS], _head(int(now)), 0)
                self._begin_anew(EVENTS)
                position.jobs, position.switched_at = 0, now
                self.append(b"", f.line("LOG_SWITCH", f.EVENTS_VERSION, now, ["0"]))
                self.save()
                self._drop_old(EVENTS, now)
            if self._is_acct_due(now):
                self._begin_anew(ACCT)
                position.archived_at = now
                self.save()
                self._drop_old(ACCT, now)
        except OSError as error:
            raise CannotWrite(self._sentence(error)) from error

    def _is_acct_due(self, now: float) -> bool:
        rules, position = self.rules, self.position
        position.archived_at = position.archived_at or now
        size = position.files[ACCT][1]
        if not size:
            return False
        is_old = bool(rules.acct_s) and now - position.archived_at >= rules.acct_s
        return is_old or (bool(rules.acct_bytes) and size >= rules.acct_bytes)

    def _begin_anew(self, name: str) -> None:
        """Number the old files up, the newest being 1, and open a new one."""
        old = list(self._old(name))
        for number, path in reversed(list(enumerate(old, 1))):
            os.rename(path, self.directory / f"{name}.{number + 1}")
        os.rename(self.directory / name, self.directory / f"{name}.1")
        self._sync_directory()
        os.close(self._open.pop(name))
        self._open[name] = self._file(name)

    def _drop_old(self, name: str, now: float) -> None:
        """Delete old files beyond what is to be kept; the oldest have the highest numbers."""
        for number, path in enumerate(self._old(name), 1):
            age_s = now - path.stat().st_mtime
            is_over = name == ACCT and bool(self.rules.acct_files) and number > self.rules.acct_files
            if is_over or (name == EVENTS and bool(self.rules.kept_s) and age_s > self.rules.kept_s):
                path.unlink()

    def _old(self, name: str) -> Iterator[Path]:
        """Yield the old files, the newest first."""
        number = 1
        while (path := self.directory / f"{name}.{number}").exists():
            yield path
            number += 1

    def close(self) -> None:
        """Give the directory free."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _head(number: int) -> bytes:
    """Return the first line of lsb.events: of the present file the place of its first record, of others a time."""
    return b"#%-15d\n" % number


def now() -> float:
    """Seconds since the epoch."""
    return time.time()
