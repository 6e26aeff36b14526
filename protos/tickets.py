"""Join tickets: what a host needs to become part of a cluster.

A ticket is a small private file: where to ask, whom to believe, and a secret. The master keeps only hashes of secrets
with their expiry, so that its list, read by someone, admits nobody. A ticket is checked when a host enrols and never
again.
"""

import hashlib
import hmac
import json
import secrets
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

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


def admit(tickets: Path, secret: str, expires: float, now: float | None = None) -> None:
    """Add a secret to the master's list, and drop what has expired; an existing secret gets the new expiry."""
    moment = time.time() if now is None else now
    entries = {mark: until for mark, until in _entries(tickets).items() if until > moment}
    entries[digest(secret)] = expires
    write_private(tickets, "".join(f"{mark} {until:.0f}\n" for mark, until in entries.items()).encode())


def check(tickets: Path, secret: str, now: float | None = None) -> None:
    """TrustError unless this secret admits a host now; the list is read each time, so tickets may come and go."""
    mark = digest(secret)
    expires = 0.0
    # All entries are compared, each in constant time: how long it takes says nothing about how close a guess was.
    for known, until in _entries(tickets).items():
        if hmac.compare_digest(known, mark):
            expires = until
    if not expires:
        raise TrustError("The ticket is not known to this master; ask its administrator for a new one.")
    if expires <= (time.time() if now is None else now):
        raise TrustError("The ticket has expired; ask the master's administrator for a new one.")


def _entries(tickets: Path) -> dict[str, float]:
    try:
        text = read_private(tickets).decode("ascii", "replace") if tickets.exists() else ""
    except PrivateFileError as error:
        raise TrustError(str(error)) from error
    entries = {}
    for number, line in enumerate(text.splitlines(), start=1):
        mark, _, until = line.partition(" ")
        if len(mark) != 64 or not until.isdigit():
            raise TrustError(f"{tickets}:{number}: expected a hash and a time.")
        entries[mark] = float(until)
    return entries
