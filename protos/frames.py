"""Frames of the local socket between a command and its host's agent.

One connection carries many calls. A frame is a 12-byte header and a payload:

    call   uint32   chosen by the command, unique in the connection
    kind   uint8    one of the constants below
    spare  3 bytes  zero
    length uint32   of the payload, at most MAX_PAYLOAD

A command opens a call with CALL (one request, answers follow) or OPEN (a stream of requests); both payloads are
``pack_open(method, message)``. The gateway does not parse messages: it passes them to the master by gRPC and the
answers back. Flow control: each side may have WINDOW unconsumed MESSAGE frames of one call in flight; CREDIT grants
more. Only ``struct`` is imported here, so that a command starts fast.
"""

import struct

HEADER = struct.Struct("<IBxxxI")
MAX_PAYLOAD = 8 << 20
WINDOW = 64

CALL = 1  # command -> agent: method and the only request
OPEN = 2  # command -> agent: method and first request of a stream
MESSAGE = 3  # both ways: one more message
HALF_CLOSE = 4  # command -> agent: no more requests
CANCEL = 5  # command -> agent: drop the call
CREDIT = 6  # both ways: uint32, number of messages consumed
END = 7  # agent -> command: pack_end(status, text); the call is over

OK = 0
CANCELLED = 1
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
UNAUTHENTICATED = 16


class FrameError(Exception):
    """Protocol violation by the other side: the connection must be closed."""


def pack(call: int, kind: int, payload: bytes = b"") -> bytes:
    """One frame, ready to be sent."""
    return HEADER.pack(call, kind, len(payload)) + payload


def unpack_header(header: bytes) -> tuple[int, int, int]:
    """(call, kind, length) of a 12-byte header.

    Raises:
        FrameError: unknown kind or a payload over the limit.
    """
    call, kind, length = HEADER.unpack(header)
    if not CALL <= kind <= END or length > MAX_PAYLOAD:
        raise FrameError(f"bad frame: kind {kind}, {length} bytes")
    return call, kind, length


def pack_open(method: str, message: bytes) -> bytes:
    """Payload of CALL and OPEN; method is the full gRPC path, such as /lava.v1.JobService/List."""
    name = method.encode()
    return len(name).to_bytes(2, "little") + name + message


def unpack_open(payload: bytes) -> tuple[str, bytes]:
    """(method, message) of a CALL or OPEN payload.

    Raises:
        FrameError: truncated payload, or a method that is not ASCII.
    """
    size = int.from_bytes(payload[:2], "little")
    name = payload[2 : 2 + size]
    if len(payload) < 2 or len(name) != size or not name.isascii():
        raise FrameError("bad open frame")
    return name.decode(), payload[2 + size :]


def pack_end(status: int, text: str = "") -> bytes:
    """Payload of END: a gRPC status number and one sentence for the user."""
    return status.to_bytes(2, "little") + text.encode()


def unpack_end(payload: bytes) -> tuple[int, str]:
    """(status, text) of an END payload."""
    return int.from_bytes(payload[:2], "little"), payload[2:].decode(errors="replace")
