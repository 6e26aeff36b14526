"""Mutual TLS between daemons: credentials from an identity, and the role that a peer's certificate proves.

Addresses are resolved here, by the system's resolver, and dialled as numbers: gRPC's own resolver ignores /etc/hosts
when a name server is unreachable, and hangs.
"""

import asyncio
import socket
from collections.abc import Iterable, Mapping

import grpc
import grpc.aio

from protos.trust.roles import Identity, Role, TrustError, join_address, role_of_uri, split_address
from protos.wire import CHANNEL_OPTIONS


def server_credentials(identity: Identity) -> grpc.ServerCredentials:
    """Credentials for a port on which every client must show a certificate of the same authority."""
    pair = (identity.key_pem, identity.certificate_pem)
    return grpc.ssl_server_credentials([pair], root_certificates=identity.ca_pem, require_client_auth=True)


def enrolment_server_credentials(identity: Identity) -> grpc.ServerCredentials:
    """Credentials for the enrolment port: TLS without a client certificate, since the client has none yet."""
    return grpc.ssl_server_credentials([(identity.key_pem, identity.certificate_pem)])


def channel_credentials(identity: Identity) -> grpc.ChannelCredentials:
    """Credentials for dialling a port of `server_credentials`."""
    return grpc.ssl_channel_credentials(identity.ca_pem, identity.key_pem, identity.certificate_pem)


def enrolment_channel_credentials(ca_pem: bytes) -> grpc.ChannelCredentials:
    """Credentials for dialling the enrolment port with only the authority's certificate."""
    return grpc.ssl_channel_credentials(ca_pem)


def channel_target(address: str) -> str:
    """Numeric form of the address, resolved now (this may block); TrustError for an unknown name."""
    host, port = split_address(address)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        raise TrustError(f"The address of {host} cannot be found: {_reason(error)}.") from error
    number = found[0][4][0]
    return join_address(str(number), port)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def secure_channel(target: str, credentials: grpc.ChannelCredentials, server_name: str) -> grpc.aio.Channel:
    """Channel to a numeric address that accepts only a server whose certificate has `server_name`."""
    options = [
        *CHANNEL_OPTIONS,
        ("grpc.ssl_target_name_override", server_name),
        # A site's http_proxy is for the web; cluster traffic sent through it would fail in strange ways.
        ("grpc.enable_http_proxy", 0),
    ]
    return grpc.aio.secure_channel(target, credentials, options=options)


async def aio_channel(address: str, identity: Identity, server_name: str) -> grpc.aio.Channel:
    """Channel to HOST:PORT, resolved now, off the event loop; TrustError if that fails, later errors show in calls.

    `server_name` is MASTER_NAME or `agent_server_name(host)`. A host that changes its address needs a new channel, so
    make one for each connection attempt.
    """
    target = await asyncio.to_thread(channel_target, address)
    return secure_channel(target, channel_credentials(identity), server_name)


def peer_role(auth_context: Mapping[str, Iterable[bytes]]) -> Role:
    """Role in the peer certificate of a call (`context.auth_context()`); TrustError unless there is exactly one."""
    names = [name for name in auth_context.get("x509_subject_alternative_name", ()) if name.startswith(b"lava:")]
    if len(names) != 1:
        raise TrustError("The peer's certificate names no role in a lava cluster.")
    return role_of_uri(names[0].decode("utf-8", "replace"))
