"""Join tickets: the credential with which a host joins a cluster.

A ticket is a small private file: the enrolment address, the CA certificate, and a secret. The master stores only hashes
of secrets with their expiry, so that a reader of its list cannot admit a host. A ticket is for one host, named or
whichever joins first, unless it was made for several; the master's list records that. A ticket is checked when a host
enrols and never again. The register of certificates records the hosts that used it.
"""

import fcntl
import hashlib
import hmac
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from protos.trust.private import PrivateFileError, read_private, write_private
from protos.trust.roles import TrustError

_SECRET_BYTES = 32
_FIELDS = ("cluster", "masters", "enrol", "ca_pem", "secret", "expires")


@dataclass(frozen=True, slots=True)
class Ticket:
    """Content of a ticket; `masters` and `enrol` are HOST:PORT, `expires` is seconds since the epoch."""

    cluster: str
    masters: tuple[str, ...]
    enrol: str
    ca_pem: str
    secret: str = field(repr=False)
    expires: float

    def write(self, path: Path) -> None:
        """Write it to a private file."""
        write_private(path, (json.dumps(asdict(self), indent=1) + "\n").encode())


def why_none_joins(directory: Path) -> str:
    """Return a sentence if the authority's key is lost, so that no ticket is good; empty else."""
    key = directory / "ca" / "ca.key"
    if key.exists():
        return ""
    return (
        f"{key} is lost: no host can join and no certificate be renewed, though hosts with valid ones work. "
        f"Put a copy of that file back; without one the authority has to be made anew, and each host to join again."
    )


def read_ticket(path: Path) -> Ticket:
    """Ticket of a file; TrustError if it cannot be used."""
    try:
        found: Any = json.loads(read_private(path))
        if not isinstance(found, dict) or not all(name in found for name in _FIELDS):
            raise TypeError
        return Ticket(
            cluster=str(found["cluster"]),
            masters=tuple(str(address) for address in found["masters"]),
            enrol=str(found["enrol"]),
            ca_pem=str(found["ca_pem"]),
            secret=str(found["secret"]),
            expires=float(found["expires"]),
        )
    except PrivateFileError as error:
        raise TrustError(str(error)) from error
    except (ValueError, TypeError) as error:
        raise TrustError(f"{path} is not a ticket of a lava cluster.") from error


def make_secret() -> str:
    """A random secret, too long to guess."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def digest(secret: str) -> str:
    """Hash of a secret, for the master's list. The secret is random and long, so a plain hash cannot be reversed."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Entry(NamedTuple):
    """Entry of a ticket in the master's list."""

    expires: float
    host: str = ""  # the only host to admit; empty: any new one
    uses: int = 1  # number of hosts to admit, if no host is named
    replaces: bool = False  # the host gets a certificate although it has a valid one, which is revoked
    made: float = 0.0


MARK_SHOWN = 12  # digits of a digest that identify a ticket in lists and on command lines


def admit(tickets: Path, secret: str, entry: Entry, now: float | None = None) -> None:
    """Add a ticket to the master's list, and drop expired ones; a known secret gets the new entry."""
    admit_all(tickets, {secret: entry}, now)


def admit_all(tickets: Path, entries: Mapping[str, Entry], now: float | None = None) -> None:
    """Add several tickets, by their secrets, in one write."""
    moment = time.time() if now is None else now
    with _locked(tickets):
        kept = {mark: entry for mark, entry in read_entries(tickets).items() if entry.expires > moment}
        kept |= {digest(secret): entry._replace(made=entry.made or moment) for secret, entry in entries.items()}
        _write_entries(tickets, kept)


def revoke(tickets: Path, word: str) -> list[str]:
    """Drop the tickets whose digest begins with ``word``, those of a host of that name, or with ``all`` every one.

    Returns:
        The digests of the dropped tickets.
    """
    with _locked(tickets):
        entries = read_entries(tickets)
        gone = [mark for mark, entry in entries.items() if word in ("all", entry.host) or _is_meant(mark, word)]
        _write_entries(tickets, {mark: entry for mark, entry in entries.items() if mark not in gone})
    return gone


def _is_meant(mark: str, word: str) -> bool:
    return len(word) >= MARK_SHOWN and mark.startswith(word)


def check(tickets: Path, secret: str, now: float | None = None, host: str = "") -> tuple[str, Entry]:
    """Digest and entry of a ticket that may admit that host now; the list is read each time.

    Raises:
        TrustError: the ticket is unknown, expired or for another host.
    """
    mark = digest(secret)
    found = Entry(0.0)
    # All entries are compared, each in constant time: the duration does not reveal how close a guess was.
    for known, entry in read_entries(tickets).items():
        if hmac.compare_digest(known, mark):
            found = entry
    if not found.expires:
        raise TrustError("The ticket is not known to this master; ask its administrator for a new one.")
    if found.expires <= (time.time() if now is None else now):
        raise TrustError("The ticket has expired; ask the master's administrator for a new one.")
    if found.host and found.host != host:
        raise TrustError(
            f"The ticket is for host {found.host} only; ask the master's administrator for one for {host}."
        )
    return mark, found


def read_entries(tickets: Path) -> dict[str, Entry]:
    """The master's list by digest.

    Raises:
        TrustError: it cannot be read, or contains an invalid line.
    """
    try:
        text = read_private(tickets).decode("ascii", "replace") if tickets.exists() else ""
    except (PrivateFileError, OSError) as error:
        raise TrustError(str(error)) from error
    entries = {}
    for number, line in enumerate(text.splitlines(), start=1):
        mark, until, *rest = [*line.split(), "", ""]
        entry = _entry(until, [word for word in rest if word])
        if len(mark) != 64 or entry is None:
            raise TrustError(f"{tickets}:{number}: expected a hash, a time and what the ticket is for.")
        entries[mark] = entry
    return entries


def _entry(until: str, words: list[str]) -> Entry | None:
    """Entry of a line of the list; in the old format without keywords the third word is the host."""
    values = {}
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not equals and place == 0:
            name, value = "host", word
        values[name] = value
    numbers = (until, values.get("uses", "1"), values.get("replace", "0"), values.get("made", "0").replace(".", "", 1))
    if not all(number.isdigit() for number in numbers) or not values.keys() <= {"host", "uses", "made", "replace"}:
        return None
    made = float(values.get("made", "0"))
    return Entry(float(until), values.get("host", ""), int(numbers[1]), numbers[2] == "1", made)


def _write_entries(tickets: Path, entries: Mapping[str, Entry]) -> None:
    lines = []
    for mark, entry in entries.items():
        words = [mark, f"{entry.expires:.0f}", f"host={entry.host}" if entry.host else f"uses={entry.uses}"]
        lines.append(" ".join([*words, f"made={entry.made:.3f}", f"replace={entry.replaces:d}"]) + "\n")
    write_private(tickets, "".join(lines).encode())


@contextmanager
def _locked(tickets: Path) -> Iterator[None]:
    """Lock for one writer at a time; the directory is locked, since the file is replaced."""
    descriptor = os.open(tickets.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
