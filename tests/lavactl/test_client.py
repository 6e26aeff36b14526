"""The client against a gateway with real frames over a real Unix socket."""

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lavactl.errors import CommandError
from lavactl.wire import messages
from lavactl.wire.client import NOT_RESPONDING, TRIES, Client
from lavactl.wire.connection import Connection, LostError
from protos import agents_pb2, common_pb2, frames, jobs_pb2
from tests.lavactl.scripted import Desk, FixedIo

WAIT_S = 60.0


class Peer:
    """One accepted connection, seen from the gateway."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.reader = connection.makefile("rb")

    def read(self) -> tuple[int, int, bytes]:
        """The next frame: (call, kind, payload)."""
        header = self.reader.read(frames.HEADER.size)
        if len(header) < frames.HEADER.size:
            raise EOFError
        call, kind, length = frames.unpack_header(header)
        return call, kind, self.reader.read(length)

    def call(self) -> tuple[int, str, bytes]:
        """The next opened call: (number, method, request)."""
        call, kind, payload = self.read()
        assert kind == frames.CALL
        return call, *frames.unpack_open(payload)

    def say(self, call: int, *messages: bytes, status: int | None = frames.OK, text: str = "") -> None:
        """Send answers, then the end unless ``status`` is None."""
        for message in messages:
            self.socket.sendall(frames.pack(call, frames.MESSAGE, message))
        if status is not None:
            self.socket.sendall(frames.pack(call, frames.END, frames.pack_end(status, text)))


class Gateway:
    """Listening socket whose connections are served in turn by the given functions."""

    def __init__(self, path: str, *turns: Callable[[Peer], None]) -> None:
        self.path = path
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(path)
        self._listener.listen()
        self.failures: list[BaseException] = []
        self._thread = threading.Thread(target=self._serve, args=(turns,), daemon=True)
        self._thread.start()

    def _serve(self, turns: tuple[Callable[[Peer], None], ...]) -> None:
        try:
            for turn in turns:
                connection, _ = self._listener.accept()
                connection.settimeout(WAIT_S)
                with connection:
                    peer = Peer(connection)
                    with peer.reader:
                        turn(peer)
        except (OSError, AssertionError, EOFError) as failure:
            self.failures.append(failure)

    def finish(self) -> None:
        """Wait until every function has run."""
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive(), "the gateway still waits for a connection"
        assert not self.failures

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(WAIT_S)


Start = Callable[..., Gateway]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts gateways and stops them at the end."""
    started: list[Gateway] = []

    def begin(*turns: Callable[[Peer], None]) -> Gateway:
        started.append(Gateway(os.fspath(tmp_path / "s"), *turns))
        return started[-1]

    yield begin
    for gateway in started:
        gateway.close()


@pytest.fixture
def io(desk: Desk, tmp_path: Path) -> FixedIo:
    """Surroundings with the test's socket."""
    desk.environ["LAVA_SOCKET"] = os.fspath(tmp_path / "s")
    desk.type("lsid")
    assert isinstance(desk.last_io, FixedIo)
    return desk.last_io


@pytest.fixture
def client(io: FixedIo) -> Iterator[Client]:
    """A client of the test's socket."""
    one = Client(io)
    yield one
    one.close()


def said(io: FixedIo) -> str:
    """Standard error so far."""
    stream = io.stderr
    assert stream is not None
    return stream.getvalue().decode()  # type: ignore[attr-defined,no-any-return]


def page(*jobs: int) -> bytes:
    """A page with these jobs."""
    return jobs_pb2.JobPage(jobs=[jobs_pb2.JobRecord(job=job) for job in jobs]).SerializeToString()


def test_several_calls_share_one_connection(start: Start, client: Client) -> None:
    """Method names and requests arrive as sent; the connection is kept."""

    def turn(peer: Peer) -> None:
        call, method, request = peer.call()
        assert method == "/lava.v1.JobService/List"
        assert jobs_pb2.ListJobsRequest.FromString(request).details
        peer.say(call, page(1, 2), page(3))
        call, method, _ = peer.call()
        assert method == "/lava.v1.ClusterService/Info"
        peer.say(call, b"\x0a\x02c1")

    gateway = start(turn)
    pages = list(client.list_jobs(jobs_pb2.ListJobsRequest(details=True)))
    assert [job.job for one in pages for job in one.jobs] == [1, 2, 3]
    assert client.info().cluster == "c1"
    gateway.finish()


def test_answers_beyond_the_window_are_credited(start: Start, client: Client) -> None:
    """The gateway may have 64 answers in flight; the client credits them as it consumes."""

    def turn(peer: Peer) -> None:
        call, _, _ = peer.call()
        credit = frames.WINDOW
        for number in range(200):
            while not credit:
                same, kind, payload = peer.read()
                assert (same, kind) == (call, frames.CREDIT)
                credit += int.from_bytes(payload, "little")
            peer.say(call, page(number + 1), status=None)
            credit -= 1
        peer.say(call)

    gateway = start(turn)
    assert len(list(client.list_jobs(jobs_pb2.ListJobsRequest()))) == 200
    gateway.finish()


def test_a_submission_is_repeated_with_its_id_after_a_lost_connection(
    start: Start, io: FixedIo, client: Client
) -> None:
    """Never two jobs: the same request id, marked as a retry."""
    seen: list[jobs_pb2.SubmitItem] = []

    def note(peer: Peer) -> int:
        call, _, request = peer.call()
        seen.extend(jobs_pb2.SubmitBatch.FromString(request).items)
        return call

    def cut(peer: Peer) -> None:
        note(peer)

    def answer(peer: Peer) -> None:
        result = jobs_pb2.SubmitResult(request_id=seen[0].request_id, job=7)
        peer.say(note(peer), jobs_pb2.SubmitReplies(results=[result]).SerializeToString())

    gateway = start(cut, answer)
    item = jobs_pb2.SubmitItem(request_id=b"0123456789abcdef", spec=jobs_pb2.JobSpec(command="x"))
    assert client.submit(item).job == 7
    gateway.finish()
    assert [(one.request_id, one.retry) for one in seen] == [(item.request_id, False), (item.request_id, True)]
    assert said(io) == NOT_RESPONDING + "\n"


def test_an_absent_master_is_waited_for(start: Start, io: FixedIo, client: Client) -> None:
    """lsf.md 1.0: `still trying` on stderr, then the answer."""

    def turn(peer: Peer) -> None:
        call, _, _ = peer.call()
        peer.say(call, status=frames.UNAVAILABLE, text="the master at m1:7000 cannot be reached")
        call, _, _ = peer.call()
        peer.say(call, page(1))

    gateway = start(turn)
    assert len(list(client.list_jobs(jobs_pb2.ListJobsRequest()))) == 1
    gateway.finish()
    assert said(io) == NOT_RESPONDING + "\n"
    assert io.slept == [0.2]


def test_a_host_out_of_reach_is_named(start: Start, io: FixedIo, client: Client) -> None:
    """bpeek said that the batch system did not respond, although only the job's host was cut off."""
    far = "the agent of n2 at 10.88.0.2:46589 cannot be reached: no connection within 10 seconds"

    def turn(peer: Peer) -> None:
        call, _, _ = peer.call()
        peer.say(call, status=frames.UNAVAILABLE, text=far)
        call, _, _ = peer.call()
        peer.say(call, chunk(b"written"))

    gateway = start(turn)
    assert [part.data for part in client.peek(jobs_pb2.PeekRequest())] == [b"written"]
    gateway.finish()
    assert said(io) == f"{far} ... still trying\n"


def test_waiting_is_bounded(start: Start, io: FixedIo) -> None:
    """LSB_NTRIES bounds the tries; the error names the cause."""

    def turn(peer: Peer) -> None:
        for _ in range(3):
            call, _, _ = peer.call()
            peer.say(call, status=frames.UNAVAILABLE, text="the master at m1:7000 cannot be reached")

    io.environ = {**io.environ, "LSB_NTRIES": "3"}
    gateway = start(turn)
    client = Client(io)
    with pytest.raises(CommandError) as caught:
        client.info()
    client.close()
    gateway.finish()
    assert str(caught.value) == "The batch system does not answer: the master at m1:7000 cannot be reached."


def test_an_agent_being_restarted_is_waited_for(io: FixedIo, client: Client, tmp_path: Path) -> None:
    """A socket that refuses connections is a killed agent's: bounded tries, then one sentence."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(tmp_path / "s"))
    with pytest.raises(CommandError, match="does not answer: no agent of this host listens on"):
        client.info()
    assert len(io.slept) == TRIES - 1


def test_a_refusal_is_a_sentence(start: Start, client: Client) -> None:
    """The master's refusal reaches the user as one sentence without control characters, and is not retried."""

    def turn(peer: Peer) -> None:
        call, _, _ = peer.call()
        peer.say(call, status=frames.PERMISSION_DENIED, text="user permission\n denied\x1b[2J")

    gateway = start(turn)
    with pytest.raises(CommandError, match=r"^User permission denied\\e\[2J\.$"):
        client.info()
    gateway.finish()


def test_a_plain_signal_is_not_sent_twice(start: Start, client: Client) -> None:
    """After a lost connection the delivery of USR1 is unknown: that is reported, and the signal not repeated."""

    def cut(peer: Peer) -> None:
        peer.call()

    gateway = start(cut)
    with pytest.raises(CommandError, match="whether the request was carried out is not known"):
        client.signal(jobs_pb2.SignalRequest(action=jobs_pb2.SEND, signal=10))
    gateway.finish()


def test_a_listing_cut_short_is_a_failure(start: Start, client: Client) -> None:
    """Half a list is not shown as the whole."""

    def cut(peer: Peer) -> None:
        call, _, _ = peer.call()
        peer.say(call, page(1), status=None)

    gateway = start(cut)
    pages = client.list_jobs(jobs_pb2.ListJobsRequest())
    assert [job.job for job in next(pages).jobs] == [1]
    with pytest.raises(CommandError, match="cut short"):
        next(pages)
    gateway.finish()


def test_a_watch_goes_on_after_a_lost_connection(start: Start, client: Client) -> None:
    """bsub -K outlives a restart of the agent or master."""

    def change(state: int) -> bytes:
        return jobs_pb2.JobChange(job=1, state=state).SerializeToString()  # type: ignore[arg-type]

    def cut(peer: Peer) -> None:
        call, _, _ = peer.call()
        peer.say(call, change(common_pb2.PEND), status=None)

    def rest(peer: Peer) -> None:
        call, method, request = peer.call()
        assert method == "/lava.v1.JobService/Watch"
        assert jobs_pb2.WatchRequest.FromString(request).refs[0].job == 1
        peer.say(call, change(common_pb2.RUN), change(common_pb2.DONE))

    gateway = start(cut, rest)
    changes = list(client.watch([common_pb2.JobRef(job=1)]))
    gateway.finish()
    assert [one.state for one in changes] == [common_pb2.PEND, common_pb2.RUN, common_pb2.DONE]


def test_stopping_early_cancels_the_call(start: Start, io: FixedIo) -> None:
    """Unwanted answers are not sent."""

    def turn(peer: Peer) -> None:
        call, _, _ = peer.call()
        peer.say(call, b"one", status=None)
        assert peer.read() == (call, frames.CANCEL, b"")
        peer.say(call, status=frames.CANCELLED)
        call, _, _ = peer.call()
        peer.say(call, b"two")

    gateway = start(turn)
    connection = Connection(gateway.path)
    first = connection.answers("/x", b"", WAIT_S)
    assert next(first) == b"one"
    first.close()  # type: ignore[attr-defined]
    assert list(connection.answers("/y", b"", WAIT_S)) == [b"two"]
    connection.close()
    gateway.finish()


def test_a_call_that_has_ended_is_not_cancelled(start: Start) -> None:
    """Its END came with the answer; what belongs to another call is kept for that."""

    def turn(peer: Peer) -> None:
        other, _, _ = peer.call()
        call, _, _ = peer.call()
        later = frames.pack(other, frames.MESSAGE, b"later"), frames.pack(call, frames.END, frames.pack_end(frames.OK))
        peer.socket.sendall(b"".join((frames.pack(call, frames.MESSAGE, b"one"), *later)))
        assert peer.call()[1] == "/z"

    gateway = start(turn)
    connection = Connection(gateway.path)
    other = connection.start("/x", b"")
    connection._parked[other] = []
    answers = connection.answers("/y", b"", WAIT_S)
    assert next(answers) == b"one"
    answers.close()  # type: ignore[attr-defined]
    connection.start("/z", b"")
    assert connection.frame_of(other, WAIT_S) == (frames.MESSAGE, b"later")
    connection.close()
    gateway.finish()


def test_overlapping_calls_do_not_take_each_others_frames(start: Start) -> None:
    """bjobs -pl explains a page during the listing: the listing's frames that arrive meanwhile are kept."""

    def turn(peer: Peer) -> None:
        listing, _, _ = peer.call()
        peer.say(listing, b"page 1", status=None)
        inner, _, _ = peer.call()
        peer.say(listing, b"page 2")
        peer.say(inner, b"why")

    gateway = start(turn)
    connection = Connection(gateway.path)
    pages = connection.answers("/list", b"", WAIT_S)
    assert next(pages) == b"page 1"
    assert list(connection.answers("/explain", b"", WAIT_S)) == [b"why"]
    assert list(pages) == [b"page 2"]
    connection.close()
    gateway.finish()


def test_a_stream_of_requests(start: Start) -> None:
    """OPEN, further messages, half close; answers come as frames."""

    def turn(peer: Peer) -> None:
        call, kind, payload = peer.read()
        assert kind == frames.OPEN
        assert frames.unpack_open(payload) == ("/x", b"first")
        assert peer.read() == (call, frames.MESSAGE, b"second")
        assert peer.read() == (call, frames.HALF_CLOSE, b"")
        peer.say(call, b"a", b"b")

    gateway = start(turn)
    connection = Connection(gateway.path)
    call = connection.start("/x", b"first", more=True)
    connection.send(call, b"second")
    connection.half_close(call)
    assert connection.receive(WAIT_S) == (call, frames.MESSAGE, b"a")
    assert connection.receive(WAIT_S) == (call, frames.MESSAGE, b"b")
    assert connection.receive(WAIT_S)[1] == frames.END
    with pytest.raises(LostError):
        connection.receive(WAIT_S)
    connection.close()
    gateway.finish()


def test_silence_and_garbage_are_lost_connections(start: Start) -> None:
    """A silent peer, or one with another protocol, is not waited for."""

    def garbage(peer: Peer) -> None:
        peer.socket.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        peer.reader.read()

    def silence(peer: Peer) -> None:
        peer.reader.read()

    gateway = start(garbage, silence)
    for expected in ("bad frame", "no answer"):
        connection = Connection(gateway.path)
        with pytest.raises(LostError, match=expected):
            connection.receive(0.05)
        connection.close()
    gateway.finish()


def test_a_job_too_large_for_the_wire(client: Client) -> None:
    """The size is reported before any byte is sent."""
    spec = jobs_pb2.JobSpec(command="x" * (9 << 20))
    with pytest.raises(CommandError, match="9 MiB"):
        client.submit(jobs_pb2.SubmitItem(request_id=bytes(16), spec=spec))


def test_many_outputs_are_read_over_one_connection(start: Start, client: Client) -> None:
    """A few calls at a time, each next one when another has ended; a failure is told of its own request alone."""
    open_at_once: list[int] = []

    def serve(peer: Peer) -> None:
        calls: list[int] = []
        for number in range(40):
            while len(calls) < min(12, 40 - number):
                call, method, _ = peer.call()
                assert method == "/lava.local/Peek"
                calls.append(call)
            open_at_once.append(len(calls))
            call = calls.pop()
            if call == 7:
                peer.say(call, status=frames.NOT_FOUND, text="no such task")
            else:
                peer.say(call, agents_pb2.TailChunk(data=b"%d" % call).SerializeToString())

    begun = start(serve)
    requests = [messages.PeekRequest() for _ in range(40)]
    said = list(client.peek_many(requests, 12))
    begun.finish()
    assert max(open_at_once) == 12
    failures = [number for number, answer in said if isinstance(answer, str)]
    assert sorted([*failures, *(number for number, answer in said if answer is None)]) == list(range(40))
    assert [answer for _, answer in said if isinstance(answer, str)] == ["No such task."]
    assert len(said) == 40 + 39


def outputs(client: Client, tasks: int) -> dict[int, str]:
    """All that is said of each of so many tasks; what they wrote between quotes."""
    found = dict.fromkeys(range(tasks), "")
    for number, answer in client.peek_many([messages.PeekRequest() for _ in range(tasks)], 12):
        found[number] += "." if answer is None else answer if isinstance(answer, str) else repr(answer.data)[1:]
    return found


def chunk(data: bytes) -> bytes:
    """A part of a task's output."""
    return agents_pb2.TailChunk(data=data).SerializeToString()


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of a fraction of a second."""
    monkeypatch.setattr("lavactl.wire.client.ANSWER_S", WAIT_S)
    monkeypatch.setattr("lavactl.wire.client.PAUSES_S", (0.01,))


def test_one_of_many_outputs_is_asked_for_again(start: Start, client: Client, io: FixedIo, hurry: None) -> None:
    """Its host is away for a moment; meanwhile the others go on, and the user is told once."""

    def serve(peer: Peer) -> None:
        first, second, third = peer.call()[0], peer.call()[0], peer.call()[0]
        peer.say(third, chunk(b"third "), status=None)
        peer.say(first, status=frames.UNAVAILABLE, text="no route")
        peer.say(second, status=frames.UNAVAILABLE, text="no route")
        again = [peer.call()[0], peer.call()[0]]
        peer.say(third, chunk(b"still"))
        for call in again:
            peer.say(call, chunk(b"now"))

    begun = start(serve)
    assert outputs(client, 3) == {0: "'now'.", 1: "'now'.", 2: "'third ''still'."}
    begun.finish()
    assert said(io).count(NOT_RESPONDING) == 1


def test_many_outputs_over_a_connection_that_is_lost(
    start: Start, client: Client, hurry: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs that had begun are cut short, and say so; the rest is asked for again. Silence counts as a loss."""
    monkeypatch.setattr("lavactl.wire.client.ANSWER_S", 1.0)

    def lose(peer: Peer) -> None:
        first, second, _ = peer.call()[0], peer.call()[0], peer.call()[0]
        peer.say(first, chunk(b"all"))
        peer.say(second, chunk(b"half"), status=None)

    def stay_silent(peer: Peer) -> None:
        peer.call()
        peer.reader.read()

    def answer(peer: Peer) -> None:
        peer.say(peer.call()[0], chunk(b"at last"))

    begun = start(lose, stay_silent, answer)
    found = outputs(client, 3)
    begun.finish()
    assert (found[0], found[2]) == ("'all'.", "'at last'.")
    assert found[1].startswith("'half'The answer was cut short: the connection to the agent of this host was lost")


def test_one_of_many_outputs_is_given_up(start: Start, io: FixedIo, desk: Desk, hurry: None) -> None:
    """After LSB_NTRIES tries it has its sentence; the others have been shown."""
    desk.environ["LSB_NTRIES"] = "3"
    desk.type("lsid")
    assert desk.last_io is not None

    def serve(peer: Peer) -> None:
        peer.say(peer.call()[0], chunk(b"one"))
        for _ in range(3):
            peer.say(peer.call()[0], status=frames.UNAVAILABLE, text="no route")

    begun = start(serve)
    client = Client(desk.last_io)
    assert outputs(client, 2) == {0: "'one'.", 1: "The batch system does not answer: no route."}
    client.close()
    begun.finish()
