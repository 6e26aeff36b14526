"""What passes between the master and its writer process: frames of a length and marshalled plain values.

Marshal is read only from a private socket pair between two processes of one installation and one interpreter.
Towards the writer: first the settings (URL, seconds to wait for the lock, path of the mark file), then packed batches
(``batch.Batch.pack``), one at a time, or a mark to raise the database to (the word RAISE, then term, batch, next job).
From it: tuples that begin with one of the words below.
"""

import marshal
from typing import Any

READY = "ready"  # cluster id, term, last batch, next job, warnings, what the mark file says
RAISE = "raise"
REFUSED = "refused"  # sentence: it could not open the database, and ends
DONE = "done"  # number of the batch that is durable
STUCK = "stuck"  # sentence: the batch can't be committed now; it is tried again
RAISED = "raised"  # sentence: why the mark was not raised; empty: it was
LOST = "lost"  # sentence: no batch can be committed any more, and it ends

HEAD_BYTES = 8


def frame(payload: bytes) -> bytes:
    """The payload with its length before it."""
    return len(payload).to_bytes(HEAD_BYTES, "little") + payload


def message(*values: Any) -> bytes:
    """A message from the writer as a frame."""
    return frame(marshal.dumps(values))


class Unframer:
    """Takes bytes as they come and gives back whole payloads."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that these bytes complete."""
        buffer = self._buffer
        buffer += data
        whole = []
        while len(buffer) >= HEAD_BYTES:
            end = HEAD_BYTES + int.from_bytes(buffer[:HEAD_BYTES], "little")
            if len(buffer) < end:
                break
            whole.append(bytes(buffer[HEAD_BYTES:end]))
            del buffer[:end]
        return whole
