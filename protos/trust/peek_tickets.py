"""Tickets of the master for one job on one host, checked by that host's agent: to read its output, or to attach to it.

A third kind allows to copy one file of a job (bsub -f): its ``host`` is the host's name with user, mode and path.

A ticket is 73 bytes: a version byte (1), the time it expires (seconds since the epoch, unsigned, 8 bytes, big-endian)
and an Ed25519 signature over its purpose (``lava-peek-1``, ``lava-attach-1``, ``lava-copy-1``), a zero byte, job (8
bytes), index (4), attempt (4), the expiry (8) and the host's name (UTF-8, the rest). The master draws a key pair at
each start and sends the public half as 32 raw bytes in ``Welcome.ticket_key``. A ticket is bound to its key and host
and lives for at most ``LIFE_S``, so a stolen one is of little use, and neither side stores tickets.
"""

import struct

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

LIFE_S = 60.0
# Tolerated difference between the clocks of master and agents.
SKEW_S = 60.0

_VERSION = 1
_HEAD = struct.Struct(">BQ")
_BODY = struct.Struct(">QIIQ")
PEEK, ATTACH, COPY = b"lava-peek-1\0", b"lava-attach-1\0", b"lava-copy-1\0"
_SIGNATURE_BYTES = 64

Key = tuple[int, int, int]


def new_key() -> Ed25519PrivateKey:
    """New signing key for one run of a master."""
    return Ed25519PrivateKey.generate()


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    """Public half for the agents, as ``Welcome.ticket_key`` carries it."""
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def file_of(host: str, user: str, uid: int, mode: str, path: str) -> str:
    """Subject of a ticket to copy, in the place of the host's name alone."""
    return "\0".join((host, user, str(uid), mode, path))


def sign(private_key: Ed25519PrivateKey, key: Key, host: str, expires: float, purpose: bytes = PEEK) -> bytes:
    """Ticket for the attempt ``key`` = (job, index, attempt) on ``host``, valid until ``expires`` (epoch seconds)."""
    moment = int(expires)
    return _HEAD.pack(_VERSION, moment) + private_key.sign(_message(purpose, key, host, moment))


def check(public_key: bytes, ticket: bytes, key: Key, host: str, now: float, purpose: bytes = PEEK) -> bool:
    """True if ``ticket`` was signed by the master for this purpose, attempt and host, and has not expired."""
    if len(public_key) != 32 or len(ticket) != _HEAD.size + _SIGNATURE_BYTES:
        return False
    version, expires = _HEAD.unpack_from(ticket)
    if version != _VERSION or not now - SKEW_S <= expires <= now + LIFE_S + SKEW_S:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(
            ticket[_HEAD.size :], _message(purpose, key, host, expires)
        )
    except InvalidSignature:
        return False
    return True


def _message(purpose: bytes, key: Key, host: str, expires: int) -> bytes:
    return purpose + _BODY.pack(*key, expires) + host.encode()
