"""Many calls over one connection, so many at once: their answers as they arrive.

A command with a thousand questions then costs its agent one connection and, at a time, a bounded number of calls.
"""

from lavactl.wire.connection import CREDIT_PORTION, CallError, Connection
from protos import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def overlapping(
    connection: Connection, method: str, requests: "Sequence[bytes]", at_once: int
) -> "Iterator[tuple[int, bytes | CallError | None]]":
    """Answers to calls with one request each: number of the request, and an answer; at its end None, or its failure.

    Raises:
        LostError: the connection was lost.
    """
    waiting = iter(enumerate(requests))
    number_of: dict[int, int] = {}
    owed: dict[int, int] = {}

    def start() -> None:
        for number, request in waiting:
            call = connection.start(method, request)
            number_of[call], owed[call] = number, 0
            return

    for _ in range(at_once):
        start()
    while number_of:
        call, kind, payload = connection.receive(None)
        if call not in number_of:
            continue
        if kind == frames.MESSAGE:
            yield number_of[call], payload
            owed[call] += 1
            if owed[call] == CREDIT_PORTION:
                connection.credit(call, owed[call])
                owed[call] = 0
        elif kind == frames.END:
            status, text = frames.unpack_end(payload)
            number = number_of.pop(call)
            start()
            yield number, None if status == frames.OK else CallError(status, text)
