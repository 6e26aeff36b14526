"""Trust in certificates: those issued for a ticket, and those that are revoked.

The register of certificates and the list of tickets are files of the cluster directory that `lavactl` also writes, so
they are checked for changes at each query.
"""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from lavad.settings import Settings
from protos.trust import tickets
from protos.trust.authority import facts_of
from protos.trust.certificates import Certificate, Register
from protos.trust.roles import Kind, TrustError
from protos.trust.tls import peer_role

log = logging.getLogger(__name__)

REVOKED = "The certificate of {} is revoked; if the host is to join again, give it a new ticket and remove its old one."
IN_USE = "A host {} is connected: two hosts cannot have one name. If that one is to go: badmin hremove {}"
OWN_TICKET = (
    "{} is a master, login or administration host and joins only with a ticket of its own: "
    "lavactl init {} --new-ticket --host {}"
)
KNOWN = (
    "Host {0} has a valid certificate. If it lost it: badmin hremove {0}, and then a new ticket, "
    "or a ticket that replaces it: lavactl init {1} --new-ticket --host {0} --replace"
)
SPENT = "The ticket has been used, by {}; each host needs one of its own: lavactl init {} --new-ticket --host {}"
OFTEN = "Host {} has been given {} certificates within a day; there is another one tomorrow."
REMOVED = "The ticket was made before {} was removed; ask the master's administrator for a new one."

RENEWALS_MAX = 20  # of one host: each is a durable line of the register, for which all others wait
DAY_S = 86400.0


class Admission(NamedTuple):
    """Permission for one certificate: the ticket it uses, and the certificates it replaces."""

    ticket: str
    replaced: tuple[Certificate, ...]


class Trust:
    """Tickets and certificates of one cluster directory.

    Args:
            protected: hosts that join only with tickets that name them.
            is_connected: returns True if a host has a session now.
            is_known: returns True if the host belongs to the cluster, connected or not.
    """

    def __init__(
        self,
        directory: Path,
        protected: frozenset[str] = frozenset(),
        is_connected: Callable[[str], bool] = lambda host: False,
        is_known: Callable[[str], bool] = lambda host: False,
    ) -> None:
        self.directory = directory
        self.register = Register(directory)
        self._protected = protected
        self._is_connected = is_connected
        self._is_known = is_known

    # -- joining

    def admit(self, secret: str, host: str) -> Admission:
        """Return the permission for a certificate.

        Raises:
                TrustError: the ticket does not allow it; the text says what would.
        """
        self.register.refresh()
        mark, entry = tickets.check(self.directory / "tickets", secret, host=host)
        used_by = self.register.hosts_of_ticket(mark)
        is_own = bool(entry.host)
        if not is_own and host in self._protected:
            raise TrustError(OWN_TICKET.format(host, self.directory, host))
        if is_own and entry.made < self.register.host_revoked_at(host):
            raise TrustError(REMOVED.format(host))
        if not is_own and host not in used_by and len(used_by) >= entry.uses:
            raise TrustError(SPENT.format(", ".join(sorted(used_by)), self.directory, host))
        if self._is_connected(host):
            raise TrustError(IN_USE.format(host, host))
        return self._admission(mark, entry, host)

    def _admission(self, mark: str, entry: tickets.Entry, host: str) -> Admission:
        """Grant the ticket; certificates never used give way to a new one, since the answer with them was lost."""
        now = time.time()
        valid = [one for one in self.register.of_host(host) if one.is_valid(now)]
        lost = [one for one in valid if one.ticket == mark and not one.used_at]
        is_free = len(valid) == len(lost) and (bool(entry.host) or bool(valid) or not self._is_known(host))
        is_spent = any(one.ticket == mark and one.used_at for one in self.register.of_host(host))
        if not entry.replaces and (not is_free or is_spent):
            if is_free:
                raise TrustError(SPENT.format(host, self.directory, host))
            raise TrustError(KNOWN.format(host, self.directory))
        return Admission(mark, tuple(valid))

    def check_renewal(self, host: str) -> None:
        """Refuse a host that renews its certificate too often.

        Raises:
            TrustError: it got ``RENEWALS_MAX`` certificates within a day.
        """
        self.register.refresh()
        since = time.time() - DAY_S
        lately = sum(one.issued_at > since for one in self.register.of_host(host))
        if lately >= RENEWALS_MAX:
            raise TrustError(OFTEN.format(host, lately))

    def note_issued(self, host: str, certificate_pem: bytes, admission: Admission | None = None) -> None:
        """Register a certificate before it is handed out, and revoke those that it replaces."""
        facts, mark = facts_of(certificate_pem), admission.ticket if admission is not None else ""
        self.register.note_issued(Certificate(facts.serial, host, facts.issued_at, facts.expires_at, mark))
        for one in admission.replaced if admission is not None else ():
            self.register.revoke(one, "replaced")

    # -- verification

    def why_refused(self, context: Any) -> str:
        """Return why the certificate of a call is refused; empty if it is accepted, or if there is none."""
        shown = _shown(context)
        if shown is None:
            return ""
        host, pem = shown
        self.register.refresh()
        facts = facts_of(pem)
        return REVOKED.format(host) if self.register.is_revoked(facts.serial, host, facts.issued_at) else ""

    def note_session(self, context: Any) -> str:
        """Register that the certificate of a call is in use; return its serial number."""
        shown = _shown(context)
        if shown is None:
            return ""
        host, pem = shown
        facts = facts_of(pem)
        known = self.register.find(facts.serial)
        if known is None or not known.used_at:
            self.register.note_used(Certificate(facts.serial, host, facts.issued_at, facts.expires_at), time.time())
        return facts.serial

    def is_serial_revoked(self, serial: str) -> bool:
        """True if the certificate of a session has been revoked since the session began."""
        known = self.register.find(serial)
        return known is not None and bool(known.revoked_at)

    def revoke_host(self, host: str, by: str) -> None:
        """Revoke every certificate and ticket of a host; durable on return."""
        self.register.revoke_host(host, by)
        log.warning("certificates=revoked host=%s by=%s", host, by)

    def revoked(self) -> list[str]:
        """Return the serial numbers that agents need to refuse each other's revoked certificates."""
        return self.register.revoked(time.time())


def of_settings(settings: Settings, is_connected: Callable[[str], bool], is_known: Callable[[str], bool]) -> Trust:
    """Build the trust of a cluster; its master, login and administration hosts are protected."""
    listed = frozenset(settings.extra.get("LAVA_LOGIN_HOSTS", "").split())
    protected = listed | settings.administration_hosts | {settings.master_host}
    return Trust(settings.directory, protected, is_connected, is_known)


def _shown(context: Any) -> tuple[str, bytes] | None:
    """Return the host and certificate of a calling agent; None for any other caller."""
    auth = context.auth_context()
    try:
        role = peer_role(auth)
    except TrustError:
        return None
    pem = next(iter(auth.get("x509_pem_cert", ())), b"")
    return (role.host, bytes(pem)) if role.kind is Kind.AGENT and pem else None
