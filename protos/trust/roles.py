"""Roles of daemons and what proves them: names in certificates, identities, and addresses to reach daemons at.

The identity of a peer comes from its certificate alone, never from a message. A certificate names one role in one URI
(`lava://master/lavad` or `lava://agent/HOST`) and the DNS name that clients expect of it, so TLS itself refuses a
server in the wrong role. Commands use this without a connection of their own, and so without gRPC.
"""

import re
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from protos.trust.private import PrivateFileError, read_private

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
