"""Mutual TLS between daemons: credentials from an identity, and the role that a peer's certificate proves.

The identity of a peer comes from its certificate alone, never from a message. A certificate names one role in one URI
(`lava://master/lavad` or `lava://agent/HOST`) and the DNS name that clients expect of it, so TLS itself refuses a
server in the wrong role. Addresses are resolved here, by the system's resolver, and dialled as numbers: gRPC's own
resolver ignores /etc/hosts when a name server is unreachable, and hangs.
"""

import asyncio
import re
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import grpc
import grpc.aio

from protos.trust.private import PrivateFileError, read_private
from protos.wire import CHANNEL_OPTIONS

MASTER_NAME = "lavad"
MASTER_URI = "lava://master/lavad"
AGENT_URI_PREFIX = "lava://agent/"
AGENT_NAME_SUFFIX = ".agent.lava"

_HOST_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_PEM_BLOCK = re.compile(rb"-----BEGIN ([A-Z ]+)-----.+?-----END \1-----\n?", re.DOTALL)


class TrustError(Exception):
    """Invalid key, certificate, address or peer; the message is one sentence."""


class Kind(Enum):
    """Kind of a daemon."""

    MASTER = "master"
    AGENT = "agent"


@dataclass(frozen=True, slots=True)
class Role:
    """Role that a certificate gives its holder; `host` is empty for the master."""

    kind: Kind
    host: str = ""


@dataclass(frozen=True, slots=True)
class Identity:
    """A daemon's private key, the certificate for it, and the one authority it trusts; all PEM."""

    key_pem: bytes = field(repr=False)
    certificate_pem: bytes
    ca_pem: bytes

    @classmethod
    def load(cls, directory: Path, name: str) -> "Identity":
        """Load NAME.key, NAME.pem and ca/ca.pem; TrustError if one is missing or the key is readable to others."""
        try:
            key = read_private(directory / f"{name}.key")
            return cls(key, _read(directory / f"{name}.pem"), _read(directory / "ca" / "ca.pem"))
        except PrivateFileError as error:
            raise TrustError(str(error)) from error

    @classmethod
    def load_bundle(cls, path: Path) -> "Identity":
        """Load one private file with the key, its certificate and the authority's."""
        try:
            content = read_private(path)
        except PrivateFileError as error:
            raise TrustError(str(error)) from error
        blocks = [(match[1], match[0]) for match in _PEM_BLOCK.finditer(content)]
        keys = [text for label, text in blocks if label.endswith(b"PRIVATE KEY")]
        certificates = [text for label, text in blocks if label == b"CERTIFICATE"]
        if len(keys) != 1 or len(certificates) != 2:
            raise TrustError(f"{path} does not hold one key, its certificate and the authority's.")
        return cls(keys[0], certificates[0], certificates[1])

    def bundle(self) -> bytes:
        """Content of the file that `load_bundle` reads."""
        return self.key_pem + self.certificate_pem + self.ca_pem


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TrustError(f"{path}: {error.strerror}.") from error


def check_host_name(name: str) -> str:
    """The name itself, if it is valid for a host (it becomes part of paths and certificates); TrustError otherwise."""
    if not _HOST_NAME.fullmatch(name) or name in (".", ".."):
        raise TrustError(
            f"{name!r} cannot name a host: expected 1 to 64 letters, digits, dots, dashes and underscores, "
            "and not '.' or '..'."
        )
    return name


def agent_server_name(host: str) -> str:
    """DNS name in the certificate of this host's agent."""
    return check_host_name(host) + AGENT_NAME_SUFFIX


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


def split_address(address: str) -> tuple[str, int]:
    """Host and port of HOST:PORT or [V6]:PORT; TrustError for any other text."""
    host, _, port = address.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        host = ""
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise TrustError(f"{address!r} is not an address: expected HOST:PORT.")
    return host, int(port)


def join_address(host: str, port: int) -> str:
    """HOST:PORT, with brackets around an IPv6 number."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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


def role_of_uri(uri: str) -> Role:
    """Role that a certificate's URI names; TrustError for any other URI."""
    if uri == MASTER_URI:
        return Role(Kind.MASTER)
    if uri.startswith(AGENT_URI_PREFIX):
        return Role(Kind.AGENT, check_host_name(uri.removeprefix(AGENT_URI_PREFIX)))
    raise TrustError(f"The peer's certificate names an unknown role, {uri!r}.")


def uri_of_role(role: Role) -> str:
    """URI in a certificate for this role."""
    return MASTER_URI if role.kind is Kind.MASTER else AGENT_URI_PREFIX + check_host_name(role.host)


def server_name_of_role(role: Role) -> str:
    """DNS name in a certificate for this role."""
    return MASTER_NAME if role.kind is Kind.MASTER else agent_server_name(role.host)
