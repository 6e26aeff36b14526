"""Join tickets: what a host needs to become part of a cluster.

A ticket is a small private file: where to ask, whom to believe, and a secret. The master keeps only hashes of secrets
with their expiry, so that its list, read by someone, admits nobody. A ticket may be for one host only; the master's
list says so. A ticket is checked when a host enrols and never again.
"""

import hashlib
import hmac
import json
import secrets
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from protos.private import PrivateFileError, read_private, write_private
from protos.tls import TrustError

_SECRET_BYTES = 32
_FIELDS = ("cluster", "masters", "enrol", "ca_pem", "secret", "expires")


@dataclass(frozen=True, slots=True)
class Ticket:
    """`masters` and `enrol` are HOST:PORT; `expires` is seconds since the epoch."""

    cluster: str
    masters: tuple[str, ...]
    enrol: str
    ca_pem: str
    secret: str = field(repr=False)
    expires: float

    def write(self, path: Path) -> None:
        """Store it in a private file."""
        write_private(path, (json.dumps(asdict(self), indent=1) + "\n").encode())


def read_ticket(path: Path) -> Ticket:
    """The ticket in a file; TrustError when it cannot be used."""
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
    """A secret that nobody can guess."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def digest(secret: str) -> str:
    """What the master keeps of a secret. The secret is random and long, so a plain hash cannot be turned round."""
    return hashlib.sha256(secret.encode()).hexdigest()


class Entry(NamedTuple):
    """What the master keeps of a ticket; ``host`` is the only one it admits, empty for any."""

    expires: float
    host: str = ""


def admit(tickets: Path, secret: str, expires: float, now: float | None = None, host: str = "") -> None:
    """Add a secret to the master's list, and drop what has expired; an existing secret gets the new expiry.

    Args:
        host: the only host that may join with it; empty: any.
    """
    moment = time.time() if now is None else now
    entries = {mark: entry for mark, entry in _entries(tickets).items() if entry.expires > moment}
    entries[digest(secret)] = Entry(expires, host)
    lines = [f"{mark} {entry.expires:.0f} {entry.host}".rstrip() + "\n" for mark, entry in entries.items()]
    write_private(tickets, "".join(lines).encode())


def check(tickets: Path, secret: str, now: float | None = None, host: str = "") -> None:
    """TrustError unless this secret admits that host now; the list is read each time, so tickets may come and go."""
    mark = digest(secret)
    found = Entry(0.0)
    # All entries are compared, each in constant time: how long it takes says nothing about how close a guess was.
    for known, entry in _entries(tickets).items():
        if hmac.compare_digest(known, mark):
            found = entry
    expires = found.expires
    if not expires:
        raise TrustError("The ticket is not known to this master; ask its administrator for a new one.")
    if expires <= (time.time() if now is None else now):
        raise TrustError("The ticket has expired; ask the master's administrator for a new one.")
    if found.host and found.host != host:
        raise TrustError(
            f"The ticket is for host {found.host} only; ask the master's administrator for one for {host}."
        )


def _entries(tickets: Path) -> dict[str, Entry]:
    try:
        text = read_private(tickets).decode("ascii", "replace") if tickets.exists() else ""
    except PrivateFileError as error:
        raise TrustError(str(error)) from error
    entries = {}
    for number, line in enumerate(text.splitlines(), start=1):
        mark, until, host = [*line.split(), "", ""][:3]
        if len(mark) != 64 or not until.isdigit() or len(line.split()) > 3:
            raise TrustError(f"{tickets}:{number}: expected a hash, a time and perhaps a host.")
        entries[mark] = Entry(float(until), host)
    return entries
