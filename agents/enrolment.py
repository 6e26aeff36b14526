"""How this host comes by its certificate: the stored one while it is good, else a new one by ticket.

The key is made here and never leaves. Key, certificate and authority live in one private file that is replaced in one
step, so no crash can leave a key without its certificate. A good certificate is never given up for a failed renewal.
"""

import asyncio
import logging
import os
from pathlib import Path

import grpc
import grpc.aio

from protos import agents_pb2 as pb
from protos import agents_pb2_grpc
from protos.authority import check_identity, is_near_expiry, key_pem, make_key, make_request, serial_of
from protos.private import write_private
from protos.tickets import Ticket, read_ticket
from protos.tls import (
    MASTER_NAME,
    Identity,
    Kind,
    Role,
    TrustError,
    aio_channel,
    channel_target,
    check_host_name,
    enrolment_channel_credentials,
    join_address,
    secure_channel,
    split_address,
)

FILE_NAME = "agent.pem"
CALL_TIMEOUT_S = 10.0
# A host often boots before its master: asking goes on, from every 0.2 s to every 5 s.
_RETRY_S_MIN = 0.2
_RETRY_S_MAX = 5.0

_log = logging.getLogger(__name__)


class MasterUnreachable(TrustError):
    """Nobody answers at the enrolment port yet; worth trying again."""


async def ensure_certificate(master: str, ticket_file: Path | None, host: str, state_dir: Path) -> Identity:
    """This host's identity, from `state_dir` or new; cheap when the stored one is good: call it before each connection.

    `master` is HOST:PORT of the master's main port. Waits for a master that does not answer (bound it with
    `asyncio.timeout`); TrustError when there is no way to a certificate: a bad name, no ticket, a ticket that is
    refused.
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
    """The ticket, or why there is none: a host that has its certificate may have lost it since."""
    if file is None:
        return None, "none was given."
    try:
        return read_ticket(file), ""
    except TrustError as error:
        return None, str(error)


def _stored(path: Path, role: Role, ticket: Ticket | None) -> Identity | None:
    """What is in the file, when it is good now and of the cluster that the ticket, if any, is for."""
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
    """A fresh identity by the certificate in hand, or by ticket; the old one when neither works."""
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
    """Ask until the master answers."""
    pause_s = _RETRY_S_MIN
    while True:
        try:
            return await _enrol(master, ticket, host, path)
        except MasterUnreachable as error:
            _log.warning("enrolment=waiting host=%s reason=%r", host, str(error))
        await asyncio.sleep(pause_s)
        pause_s = min(1.5 * pause_s, _RETRY_S_MAX)


async def _enrol(master: str, ticket: Ticket, host: str, path: Path) -> Identity:
    """One attempt by ticket."""
    # The ticket names the port; the master's host as this agent was told it may be nearer to the truth.
    address = join_address(split_address(master)[0], split_address(ticket.enrol)[1])
    try:
        target = await asyncio.to_thread(channel_target, address)
    except TrustError as error:
        raise MasterUnreachable(str(error)) from error
    credentials = enrolment_channel_credentials(ticket.ca_pem.encode())
    async with secure_channel(target, credentials, MASTER_NAME) as channel:
        return await _ask(channel, ticket.secret, host, path, ticket.ca_pem.encode())


async def _ask(channel: grpc.aio.Channel, secret: str, host: str, path: Path, ca_pem: bytes) -> Identity:
    """One call: a new key, its certificate, both stored."""
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
