"""Enrolment of hosts: a join ticket (or the certificate it already has) gets a host a certificate for its own name.

The private key never leaves the host; the role is always that of an agent, whatever the request asks for. On the
enrolment port, where clients have no certificate, only a ticket is accepted. On the master's main port a host may renew
its own certificate with the present one, and no other host's. `trust` decides which tickets admit which hosts.
"""

import asyncio
import logging
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from lavad.api.interceptor import Guard
from lavad.api.trust import Trust
from lavad.audit import TRAIL
from protos import agents_pb2 as pb
from protos import agents_pb2_grpc
from protos.trust import tickets
from protos.trust.authority import Authority, check_identity, is_near_expiry, serial_of
from protos.trust.roles import Identity, Kind, Role, TrustError, check_host_name, split_address
from protos.trust.tls import channel_target, enrolment_server_credentials, peer_role
from protos.wire import SERVER_OPTIONS

_log = logging.getLogger(__name__)

# A request is a secret, a name and a signing request; the port is open to unknown clients, so nothing larger is read.
_MESSAGE_BYTES_MAX = 32 << 10
_CALLS_MAX = 64
# Audit lines of refused calls.
PERIOD_S = 60.0
LINES_MAX = 5  # of each address in a period
ADDRESSES_MAX = 100  # in a period; all others share the lines of one
OTHERS = "others"


class _Refusals:
    """Audit lines of refused calls, of which each address gets few in a period: anyone may call."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}  # address -> refusals in this period

    def note(self, peer: str, what: str, why: str) -> None:
        """Write a line, or only count it."""
        address = peer.rpartition(":")[0]
        if address not in self._counts and len(self._counts) >= ADDRESSES_MAX:
            address = OTHERS
        if not self._counts:
            asyncio.get_running_loop().call_later(PERIOD_S, self._end_period)
        self._counts[address] = self._counts.get(address, 0) + 1
        if self._counts[address] <= LINES_MAX:
            TRAIL.note("-", peer, "enrol", what, why)

    def _end_period(self) -> None:
        counts, self._counts = self._counts, {}
        for address, count in counts.items():
            if count > LINES_MAX:
                TRAIL.note("-", address, "enrol", f"left_out={count - LINES_MAX}", "as those before")


class Enrolment(agents_pb2_grpc.EnrolmentServiceServicer):
    """Enrolment service of both ports; ``trust`` is the cluster directory made by `lavactl init`."""

    def __init__(self, trust: Trust) -> None:
        """Load the cluster's certificate authority; TrustError if it is there and cannot be used."""
        self._authority = None if tickets.why_none_joins(trust.directory) else Authority.load(trust.directory / "ca")
        self._trust = trust
        self._refusals = _Refusals()

    async def Enrol(self, request: pb.EnrolRequest, context: grpc.aio.ServicerContext[Any, Any]) -> pb.EnrolReply:
        """Issue a certificate for the host in the request, or say why not."""
        try:
            host = check_host_name(request.host)
            admission = None
            if _shows_certificate_of(host, context):  # which the guard has checked: it renews itself
                self._trust.check_renewal(host)
            else:
                admission = self._trust.admit(request.secret, host)
            authority = self._present_authority()
            certificate = authority.sign(request.csr_pem, Role(Kind.AGENT, host))
            self._trust.note_issued(host, certificate, admission)
        except TrustError as error:
            self._refusals.note(str(context.peer()), f"name={request.host[:64]!r}", str(error))
            return pb.EnrolReply(error=str(error))
        TRAIL.note("-", str(context.peer()), "enrol", f"name={host!r} serial={serial_of(certificate)}")
        return pb.EnrolReply(certificate_pem=certificate, ca_pem=authority.certificate_pem)

    def _present_authority(self) -> Authority:
        """Return the authority, also one whose key was put back while the master runs; TrustError without one."""
        if self._authority is None:
            if lost := tickets.why_none_joins(self._trust.directory):
                raise TrustError(lost)
            self._authority = Authority.load(self._trust.directory / "ca")
        return self._authority


def _shows_certificate_of(host: str, context: grpc.aio.ServicerContext[Any, Any]) -> bool:
    try:
        return peer_role(context.auth_context()) == Role(Kind.AGENT, host)
    except TrustError:
        return False


def register(server: grpc.aio.Server, trust: Trust) -> None:
    """Add certificate renewal to the main port's server."""
    agents_pb2_grpc.add_EnrolmentServiceServicer_to_server(Enrolment(trust), server)


async def start_enrolment_server(trust: Trust, identity: Identity, listen: str) -> grpc.aio.Server:
    """Start the server on ADDR:PORT for hosts that have only a ticket; TrustError if the address cannot be used."""
    split_address(listen)
    # If an option is given twice, gRPC takes the first.
    options = [("grpc.max_receive_message_length", _MESSAGE_BYTES_MAX), *SERVER_OPTIONS]
    server = grpc.aio.server(interceptors=[Guard(trust)], options=options, maximum_concurrent_rpcs=_CALLS_MAX)
    register(server, trust)
    try:
        server.add_secure_port(channel_target(listen), enrolment_server_credentials(identity))
    except RuntimeError as error:
        raise TrustError(f"The enrolment port {listen} cannot be opened; is another program using it?") from error
    await server.start()
    return server


def master_identity(directory: Path) -> Identity:
    """Return the master's identity from the cluster directory, renewing its certificate near expiry.

    TrustError if the files are missing, open to others, or not for the master.
    """
    identity = Identity.load(directory, "master")
    if is_near_expiry(identity) and not tickets.why_none_joins(directory):
        identity = _renewed(identity, directory)
    check_identity(identity, Role(Kind.MASTER))
    return identity


def _renewed(identity: Identity, directory: Path) -> Identity:
    key = serialization.load_pem_private_key(identity.key_pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TrustError(f"{directory / 'master.key'} is not of the kind that lava makes.")
    certificate = Authority.load(directory / "ca").certify(key.public_key(), Role(Kind.MASTER))
    # The key stays the same, so a crash between any two steps leaves a matching pair.
    temporary = directory / ".master.pem.new"
    temporary.write_bytes(certificate)
    temporary.replace(directory / "master.pem")
    _log.info("certificate=renewed role=master serial=%s", serial_of(certificate))
    return Identity(identity.key_pem, certificate, identity.ca_pem)
