"""Calls of the kernel that a command's connection makes: each one of a served command is paid by every ``bsub``."""

from lavactl.wire.connection import Connection
from protos import frames

LARGE = 1 << 20


class Counting:
    """Socket that has all answers at once, and keeps what is asked of it."""

    def __init__(self, answers: bytes) -> None:
        self.answers = answers
        self.sizes: list[int] = []
        self.times: list[float | None] = []
        self.timeout_s: float | None = None

    def gettimeout(self) -> float | None:
        """As set."""
        return self.timeout_s

    def settimeout(self, timeout_s: float | None) -> None:
        """Note it: it is a call of the kernel."""
        self.times.append(timeout_s)
        self.timeout_s = timeout_s

    def recv(self, size: int) -> bytes:
        """Take from the answers."""
        self.sizes.append(size)
        found, self.answers = self.answers[:size], self.answers[size:]
        return found

    def send(self, data: bytes, flags: int) -> int:
        """Take all."""
        return len(data)


def _answer(call: int, *payloads: bytes) -> bytes:
    whole = [frames.pack(call, frames.MESSAGE, payload) for payload in payloads]
    return b"".join([*whole, frames.pack(call, frames.END, frames.pack_end(frames.OK, ""))])


def test_small_answers_need_little_memory_and_no_time_is_set_twice() -> None:
    """A large piece of memory is mapped and unmapped for each read, and a time is a call of its own."""
    socket = Counting(_answer(1, b"first") + _answer(2, b"second"))
    connection = Connection("", socket)  # type: ignore[arg-type]
    assert list(connection.answers("/m", b"", None)) == [b"first"]
    assert list(connection.answers("/m", b"", None)) == [b"second"]
    assert socket.times == []
    assert len(socket.sizes) == 1
    assert max(socket.sizes) <= 1 << 16


def test_a_large_answer_comes_in_large_pieces() -> None:
    """A list of 100,000 jobs would take ten times as many reads in small ones."""
    socket = Counting(_answer(1, bytes(LARGE)))
    connection = Connection("", socket)  # type: ignore[arg-type]
    assert list(connection.answers("/m", b"", 60.0)) == [bytes(LARGE)]
    assert socket.times == [60.0]
    assert len(socket.sizes) <= 8
