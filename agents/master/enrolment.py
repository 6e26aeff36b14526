"""Enrolment of this host: its stored certificate while it is valid, else a new one by a join ticket.

The private key is made here and never leaves. Key, certificate and authority live in one private file that is replaced
in one step, so no crash can leave a key without its certificate. A valid certificate is never dropped for a failed
renewal.
"""

import asyncio
import logging
import os
from pathlib import Path

import grpc
import grpc.aio

from protos import agents_pb2 as pb
from protos import agents_pb2_grpc
from protos.trust.authority import check_identity, is_near_expiry, key_pem, make_key, make_request, serial_of
from protos.trust.private import write_private
from protos.trust.roles import (
    MASTER_NAME,
    Identity,
    Kind,
    Role,
    TrustError,
    check_host_name,
    join_address,
    split_address,
)
from protos.trust.tickets import Ticket, read_ticket
from protos.trust.tls import aio_channel, channel_target, enrolment_channel_credentials, secure_channel

FILE_NAME = "agent.pem"
CALL_TIMEOUT_S = 10.0
# A host often boots before its master: it retries, at intervals from 0.2 s to 5 s.
_RETRY_S_MIN = 0.2
_RETRY_S_MAX = 5.0

_log = logging.getLogger(__name__)


class MasterUnreachable(TrustError):
    """No answer at the enrolment port yet; worth a retry."""


async def ensure_certificate(master: str, ticket_file: Path | None, host: str, state_dir: Path) -> Identity:
    """Return this host's identity, from `state_dir` or new; cheap with a valid one: called before each connection.

    `master` is HOST:PORT of the master's main port. Waits for a master that does not answer (bound it with
    `asyncio.timeout`); TrustError if no certificate can be had: a bad name, no ticket, a refused ticket.
    """
    role = Role(Kind.AGENT, check_host_name(host))
    path = state_dir / FILE_NAME
    ticket, complaint = _ticket(ticket_file)
    stored = _stored(path, role, ticket)
    if stored is None:
        if ticket is None:
            raise TrustError(
                f"Host {host} has no valid certificate in {state_dir} and no ticket to get one: {complaint}"
            )
        return await _enrol_patiently(master, ticket, host, path)
    if is_near_expiry(stored):
        return await _renewed(master, ticket, host, path, stored)
    return stored


def _ticket(file: Path | None) -> tuple[Ticket | None, str]:
    """Read the ticket; None with the reason on failure, since a host with a certificate may have lost its ticket."""
    if file is None:
        return None, "none was given."
    try:
        return read_ticket(file), ""
    except TrustError as error:
        return None, str(error)


def _stored(path: Path, role: Role, ticket: Ticket | None) -> Identity | None:
    """Load the stored identity if it is valid and of the ticket's cluster, if there is a ticket."""
    if not path.exists():
        return None
    try:
        identity = Identity.load_bundle(path)
        check_identity(identity, role)
    except TrustError as error:
        _log.warning("certificate=unusable host=%s reason=%r", role.host, str(error))
        return None
    if ticket is not None and ticket.ca_pem.encode().strip() != identity.ca_pem.strip():
        _log.warning("certificate=unusable host=%s reason='it is of another cluster than the ticket'", role.host)
        return None
    return identity


async def _renewed(master: str, ticket: Ticket | None, host: str, path: Path, stored: Identity) -> Identity:
    """Renew the identity by its certificate, or by ticket; keep the old one if neither works."""
    try:
        async with asyncio.timeout(CALL_TIMEOUT_S), await aio_channel(master, stored, MASTER_NAME) as channel:
            return await _ask(channel, "", host, path, stored.ca_pem)
    except (TrustError, TimeoutError) as error:
        _log.warning("certificate=not-renewed host=%s by=certificate reason=%r", host, str(error))
    if ticket is not None:
        try:
            return await _enrol(master, ticket, host, path)
        except TrustError as error:
            _log.warning("certificate=not-renewed host=%s by=ticket reason=%r", host, str(error))
    return stored


async def _enrol_patiently(master: str, ticket: Ticket, host: str, path: Path) -> Identity:
    """Enrol, retrying until the master answers."""
    pause_s = _RETRY_S_MIN
    while True:
        try:
            return await _enrol(master, ticket, host, path)
        except MasterUnreachable as error:
            _log.warning("enrolment=waiting host=%s reason=%r", host, str(error))
        await asyncio.sleep(pause_s)
        pause_s = min(1.5 * pause_s, _RETRY_S_MAX)


async def _enrol(master: str, ticket: Ticket, host: str, path: Path) -> Identity:
    """Enrol once by ticket."""
    # The ticket names the port; the master's host given to this agent may be more recent.
    address = join_address(split_address(master)[0], split_address(ticket.enrol)[1])
    try:
        target = await asyncio.to_thread(channel_target, address)
    except TrustError as error:
        raise MasterUnreachable(str(error)) from error
    credentials = enrolment_channel_credentials(ticket.ca_pem.encode())
    async with secure_channel(target, credentials, MASTER_NAME) as channel:
        return await _ask(channel, ticket.secret, host, path, ticket.ca_pem.encode())


async def _ask(channel: grpc.aio.Channel, secret: str, host: str, path: Path, ca_pem: bytes) -> Identity:
    """Make one call: a new key, its certificate, both stored."""
    key = make_key()
    request = pb.EnrolRequest(secret=secret, host=host, csr_pem=make_request(key, host))
    try:
        reply = await agents_pb2_grpc.EnrolmentServiceStub(channel).Enrol(request, timeout=CALL_TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        raise MasterUnreachable(f"The master cannot be asked for a certificate: {error.details()}.") from error
    if reply.error:
        raise TrustError(f"The master refuses host {host}: {reply.error}")
    identity = Identity(key_pem(key), reply.certificate_pem, ca_pem)
    check_identity(identity, Role(Kind.AGENT, host))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chmod(path.parent, 0o700)
    write_private(path, identity.bundle())
    _log.info("certificate=stored host=%s serial=%s", host, serial_of(reply.certificate_pem))
    return identity
