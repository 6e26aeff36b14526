"""Revoked certificates of peers, as the master last sent them.

Kept in a file, so that an agent that starts while its master is away refuses them, too.
"""

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from protos.trust.authority import facts_of
from protos.trust.certificates import Revoked
from protos.trust.private import PrivateFileError, read_private, write_private
from protos.trust.roles import TrustError

FILE_NAME = "revoked"

LOG = logging.getLogger("lava.peers")


class Revocations:
    """Revoked certificates, stored in a directory of the agent's own."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self._marks: tuple[str, ...] = ()
        self._revoked = Revoked()

    def load(self) -> None:
        """Load the list of the last agent."""
        if not self._path.exists():
            return
        try:
            self._marks = tuple(read_private(self._path).decode("ascii", "replace").split())
            self._revoked = Revoked(self._marks)
        except (PrivateFileError, ValueError) as error:
            LOG.warning("event=revocations_unreadable reason=%r", str(error))

    def take(self, marks: Iterable[str]) -> None:
        """Replace the list by the master's newest."""
        newest = tuple(marks)
        if newest == self._marks:
            return
        self._marks, self._revoked = newest, Revoked(newest)
        try:
            write_private(self._path, "".join(f"{mark}\n" for mark in newest).encode("ascii", "replace"))
        except OSError as error:
            LOG.warning("event=revocations_not_kept reason=%r", str(error))

    def why_refused(self, host: str, auth_context: Any) -> str:
        """Return the reason to refuse a peer of that name; empty for none."""
        pem = next(iter(auth_context.get("x509_pem_cert", ())), b"")
        try:
            facts = facts_of(bytes(pem))
        except TrustError as error:
            return str(error)
        if self._revoked.covers(facts.serial, host, facts.issued_at):
            return f"the certificate of {host} is revoked"
        return ""
