"""The register of certificates: to whom each was issued, whether it was used, and whether it is revoked.

One file in the cluster directory, to which lines are only appended, so that the master and `lavactl` may both write it
and a crash loses at most a line that was never acknowledged. A certificate that is not in the register (of a cluster
older than it) counts as valid until it, or its host, is revoked. Revocations are durable before they take effect.
"""

import errno
import fcntl
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from protos.trust.private import PrivateFileError, follow_owner, read_private
from protos.trust.roles import TrustError

FILE_NAME = "certificates"
ALL_OF_HOST = "*"
TAIL_BYTES = 4096  # longer than any line
FORGOTTEN_S = 6 * 365 * 86400.0  # no certificate is valid for longer


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate of an agent; times are seconds since the epoch, 0 for never."""

    serial: str
    host: str
    issued_at: float
    expires_at: float
    ticket: str = ""  # digest of the ticket for which it was issued
    used_at: float = 0.0
    revoked_at: float = 0.0
    revoked_by: str = ""

    def is_valid(self, now: float) -> bool:
        """True if neither revoked nor expired."""
        return not self.revoked_at and now < self.expires_at


class Register:
    """Certificates of one cluster directory. Methods block on its file."""

    def __init__(self, directory: Path) -> None:
        self.version = 0  # incremented by each change of revocations
        self._path = directory / FILE_NAME
        self._read_to = 0
        self._by_serial: dict[str, Certificate] = {}
        self._by_host: dict[str, set[str]] = {}
        self._hosts_revoked: dict[str, float] = {}
        self._by_ticket: dict[str, set[str]] = {}
        self.refresh()

    # -- reading

    def refresh(self) -> None:
        """Read the lines appended to the file since the last time.

        Raises:
            TrustError: the file cannot be read, or contains an invalid line.
        """
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            return
        except OSError as error:
            raise TrustError(f"{self._path}: {error.strerror}.") from error
        if size == self._read_to:
            return
        try:
            added = read_private(self._path)[self._read_to :]
        except PrivateFileError as error:
            raise TrustError(str(error)) from error
        whole = added[: added.rfind(b"\n") + 1]
        for line in whole.decode("ascii", "replace").splitlines():
            self._take(line)
        self._read_to += len(whole)

    def _take(self, line: str) -> None:
        words = line.split()
        try:
            match words:
                case ["issued", serial, host, at, until, *ticket]:
                    self._issued(Certificate(serial, host, float(at), float(until), "".join(ticket)))
                case ["used", serial, host, at, until, used]:
                    known = self._by_serial.get(serial) or Certificate(serial, host, float(at), float(until))
                    self._issued(replace(known, used_at=float(used)))
                case ["revoked", serial, host, at, *by]:
                    self._revoked(serial, host, float(at), " ".join(by))
                case []:
                    return
                case _:
                    raise ValueError
        except (ValueError, TypeError):
            raise TrustError(f"{self._path}: {line[:80]!r} is no line of a register of certificates.") from None

    def _issued(self, one: Certificate) -> None:
        self._by_serial[one.serial] = one
        self._by_host.setdefault(one.host, set()).add(one.serial)
        if one.ticket:
            self._by_ticket.setdefault(one.ticket, set()).add(one.host)

    def _revoked(self, serial: str, host: str, at: float, by: str) -> None:
        self.version += 1
        serials = {serial}
        if serial == ALL_OF_HOST:
            self._hosts_revoked[host] = at
            serials = self._by_host.get(host, set())
        for one in serials:
            known = self._by_serial.get(one)
            if known is not None and not known.revoked_at:
                self._by_serial[one] = replace(known, revoked_at=at, revoked_by=by)

    def all(self) -> list[Certificate]:
        """All registered certificates, by host."""
        return sorted(self._by_serial.values(), key=lambda one: (one.host, one.issued_at))

    def of_host(self, host: str) -> list[Certificate]:
        """All registered certificates of that host."""
        return [self._by_serial[serial] for serial in self._by_host.get(host, ())]

    def find(self, serial: str) -> Certificate | None:
        """Certificate with that serial number; None if not registered."""
        return self._by_serial.get(serial)

    def hosts_of_ticket(self, mark: str) -> frozenset[str]:
        """Hosts that received certificates for that ticket."""
        return frozenset(self._by_ticket.get(mark, ()))

    def host_revoked_at(self, host: str) -> float:
        """Time of the last revocation of all certificates of a host; 0: never."""
        return self._hosts_revoked.get(host, 0.0)

    def is_revoked(self, serial: str, host: str, issued_at: float) -> bool:
        """True if this certificate is revoked, by its number or, if it is not registered, with all of its host."""
        known = self._by_serial.get(serial)
        if known is not None:
            return bool(known.revoked_at)
        return issued_at < self.host_revoked_at(host)

    def revoked(self, now: float) -> list[str]:
        """Revocations for the agents: SERIAL of each revoked, unexpired certificate, HOST=TIME of each revoked host."""
        serials = [one.serial for one in self._by_serial.values() if one.revoked_at and now < one.expires_at]
        hosts = [(host, at) for host, at in sorted(self._hosts_revoked.items()) if at > now - FORGOTTEN_S]
        return [*sorted(serials), *(f"{host}={at:.3f}" for host, at in hosts)]

    # -- writing

    def note_issued(self, one: Certificate) -> None:
        """Register a certificate before it is handed out; durable on return."""
        words = ["issued", one.serial, one.host, f"{one.issued_at:.3f}", f"{one.expires_at:.0f}"]
        self._append([*words, one.ticket], is_durable=True)

    def note_used(self, one: Certificate, now: float) -> None:
        """Register the first use of a certificate, after which its ticket admits no second one."""
        words = ["used", one.serial, one.host, f"{one.issued_at:.3f}", f"{one.expires_at:.0f}"]
        self._append([*words, f"{now:.0f}"], is_durable=False)

    def revoke_host(self, host: str, by: str, now: float | None = None) -> None:
        """Revoke all certificates of a host, registered or not, and the tickets for it; durable on return."""
        self._append(["revoked", ALL_OF_HOST, host, f"{self._moment(now):.3f}", by], is_durable=True)

    def revoke(self, one: Certificate, by: str, now: float | None = None) -> None:
        """Revoke one certificate; durable on return."""
        self._append(["revoked", one.serial, one.host, f"{self._moment(now):.3f}", by], is_durable=True)

    @staticmethod
    def _moment(now: float | None) -> float:
        return time.time() if now is None else now

    def _append(self, words: list[str], *, is_durable: bool) -> None:
        line = " ".join(word for word in words if word) + "\n"
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(self._path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                _add_line(descriptor, line.encode("ascii", "replace"))
                follow_owner(self._path)
                if is_durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise TrustError(f"{self._path}: {error.strerror}.") from error
        self.refresh()


def _add_line(descriptor: int, line: bytes) -> None:
    """Append a whole line, overwriting a partial one left by a crash or a full disk."""
    size = os.fstat(descriptor).st_size
    tail_at = max(0, size - TAIL_BYTES)
    tail = os.pread(descriptor, TAIL_BYTES, tail_at)
    if tail and not tail.endswith(b"\n"):
        size = tail_at + tail.rfind(b"\n") + 1
        os.ftruncate(descriptor, size)
    if os.write(descriptor, line) != len(line):
        os.ftruncate(descriptor, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Revoked:
    """Revocations known to an agent, from the master's ``Register.revoked``."""

    def __init__(self, marks: Iterable[str] = ()) -> None:
        self._serials: set[str] = set()
        self._hosts: dict[str, float] = {}
        for mark in marks:
            host, equals, at = mark.partition("=")
            if equals:
                self._hosts[host] = float(at)
            else:
                self._serials.add(mark)

    def covers(self, serial: str, host: str, issued_at: float) -> bool:
        """True if this certificate must not be accepted."""
        return serial in self._serials or issued_at < self._hosts.get(host, 0.0)
