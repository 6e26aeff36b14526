"""Protocol between the master and its writer process: frames of a length and marshalled plain values.

Marshal is read only from a private socket pair between two processes of one installation and one interpreter. To the
writer: first the settings (URL, seconds to wait for the lock, path of the mark file), then packed batches
(``batch.Batch.pack``), one at a time, or a mark to raise the database to (the word RAISE, then term, batch, next job).
From the writer: tuples that begin with one of the words below.
"""

import marshal
from typing import Any

READY = "ready"  # cluster id, term, last batch, next job, warnings, mark of the mark file
RAISE = "raise"
REFUSED = "refused"  # sentence: it could not open the database, and ends
DONE = "done"  # number of the durable batch
STUCK = "stuck"  # sentence: the batch can't be committed now; the writer retries
RAISED = "raised"  # sentence: why the mark was not raised; empty on success
LOST = "lost"  # sentence: no batch can be committed any more, and the writer ends

HEAD_BYTES = 8


def frame(payload: bytes) -> bytes:
    """Frame a payload: its length, then its bytes."""
    return len(payload).to_bytes(HEAD_BYTES, "little") + payload


def message(*values: Any) -> bytes:
    """Frame a message of the writer."""
    return frame(marshal.dumps(values))


class Unframer:
    """Reassembly of payloads from a byte stream."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads that these bytes complete."""
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
