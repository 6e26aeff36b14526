"""Calls of the kernel, and of Python, that a command makes: each one of a served command is paid by every ``bsub``."""

import sys
from pathlib import Path

import pytest

from lavactl.served.__main__ import _serve
from lavactl.served.caller import Caller
from lavactl.served.io import ServedIo
from lavactl.wire.connection import Connection
from protos import frames, jobs_pb2, served

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


class Answering(Counting):
    """Socket of an agent that gives its connection one command, and takes its submission."""

    def __init__(self, request: bytes) -> None:
        super().__init__(b"")
        self.request = request
        self.last = b""

    def send(self, data: bytes, flags: int) -> int:
        """Answer at once."""
        self.last = bytes(data)
        call, kind, _ = frames.unpack_header(self.last[: frames.HEADER.size])
        result = jobs_pb2.SubmitResult(job=7, queue="normal")
        if kind == frames.OPEN:
            self.answers += frames.pack(call, frames.MESSAGE, self.request)
        elif kind == frames.CALL:
            self.answers += _answer(call, jobs_pb2.SubmitReplies(results=[result]).SerializeToString())
        else:
            self.answers += _answer(call)
        return len(data)


def test_calls_of_python_for_each_bsub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The submission is packed once, and the environment is looked through a few times, not once for each question."""
    (tmp_path / "its.lsf").mkdir()
    (tmp_path / "its.lsf" / "lsf.conf").write_text("")
    monkeypatch.setattr(ServedIo, "own_copy", f"{tmp_path}/its.lsf/lsf.conf")
    environment = [b"VARIABLE_%d=value" % number for number in range(50)]
    environment += [f"LAVA_SOCKET={tmp_path}/its.sock".encode()]
    head = [b"ann", b"1000", served.VERSION, b"0", b"18", b"80", b"n" * 16, b"/home/ann", b"/run/its.sock"]
    words = [b"4", b"bsub", b"-H", b"sleep", b"1"]
    request = served.packed([*head, b"/etc/lsf.conf", served.READ, b"?--", *words, *environment])
    socket, calls = Answering(request), 0
    connection = Connection("", socket)  # type: ignore[arg-type]

    def count(frame: object, what: str, argument: object) -> None:
        nonlocal calls
        calls += what in ("call", "c_call")

    assert _serve(Caller(connection))  # the first one imports modules
    sys.setprofile(count)
    try:
        assert _serve(Caller(connection))
    finally:
        sys.setprofile(None)
    output = frames.pack(3, frames.MESSAGE, served.OUTPUT + b"Job <7> is submitted to queue <normal>.\n")
    assert socket.last == output + frames.pack(3, frames.MESSAGE, served.DONE + b"\0")
    assert calls < 2200
