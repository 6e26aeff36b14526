"""Served commands seen from their agent, which a test plays: what is asked of the caller, and when it is left to it."""

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lavactl.errors import CommandError
from lavactl.served.__main__ import serve
from lavactl.served.bounds import Load, Part
from lavactl.served.caller import Caller, CallerNeeded, CommandLost
from lavactl.served.io import SETTINGS_MAX, Request, ServedIo, has_own_way
from lavactl.submit.submission import HEAD
from lavactl.text import render
from lavactl.wire import client as calls
from lavactl.wire.connection import Connection
from protos import cluster_pb2, frames, jobs_pb2, served

WAIT_S = 60.0
UNAVAILABLE = frames.pack_end(frames.UNAVAILABLE, "the master at m1 cannot be reached")
SUBMIT, LIST = "/lava.v1.JobService/Submit", "/lava.v1.JobService/List"


class Agent:
    """The agent's end of one command's connection."""

    def __init__(self) -> None:
        self.socket, self.theirs = socket.socketpair()
        self.socket.settimeout(WAIT_S)
        self.reader = self.socket.makefile("rb")
        self.environment = [b"LSF_ENVDIR=/nowhere", b"LAVA_SOCKET=/run/its.sock"]
        self.settings = [b"", b""]
        self.kinds = b""
        self.thread: threading.Thread | None = None
        self.connection: Connection | None = None

    def close(self) -> None:
        """Hang up, and wait for the command's end."""
        self.reader.close()
        self.socket.close()
        self.theirs.close()
        if self.connection is not None:
            self.connection.close()
        if self.thread is not None:
            self.thread.join(WAIT_S)
            assert not self.thread.is_alive()

    def request(self, *words: bytes) -> bytes:
        """The message with which the process hears of a command."""
        head = [b"ann", b"1000", served.VERSION, b"0", b"18", b"80", b"n" * 16, b"/home/ann", b"/run/its.sock"]
        return served.packed([*head, *self.settings, self.kinds, b"%d" % len(words), *words, *self.environment])

    def serve(self, *words: bytes) -> None:
        """Begin a command."""
        self.thread = threading.Thread(target=serve, args=(self.theirs.detach(),), daemon=True)
        self.thread.start()
        assert self.frame() == (1, frames.OPEN, frames.pack_open(served.SERVE, b""))
        self.say(1, frames.MESSAGE, self.request(*words))

    def io(self) -> ServedIo:
        """Surroundings of a command whose calls this test makes itself."""
        self.say(1, frames.MESSAGE, self.request(b"lsid"))
        self.connection = Connection("", self.theirs)
        caller = Caller(self.connection)
        assert self.frame()[1] == frames.OPEN
        request = Request(caller.request)
        caller.part = Part(Load(), request.uid)
        return ServedIo(caller, request, caller.part)

    def say(self, call: int, kind: int, payload: bytes = b"") -> None:
        """Send a frame."""
        self.socket.sendall(frames.pack(call, kind, payload))

    def frame(self) -> tuple[int, int, bytes]:
        """The next frame that is no credit, and not the end of a call that was answered enough."""
        while True:
            number, kind, length = frames.unpack_header(self.reader.read(frames.HEADER.size))
            payload = self.reader.read(length)
            if kind not in (frames.CREDIT, frames.CANCEL):
                return number, kind, payload

    def told(self) -> bytes:
        """The next message to the stub; files that it is asked for are not there."""
        while True:
            number, kind, payload = self.frame()
            assert (number, kind) == (1, frames.MESSAGE), frames.unpack_open(payload)
            if payload[:1] == served.ASK_KIND:
                self.say(1, frames.MESSAGE, b"--")
            elif payload[:1] == served.ASK_FILE:
                self.say(1, frames.MESSAGE, served.UNREADABLE)
            else:
                return payload

    def called(self, method: str) -> int:
        """Number of the next call to the master."""
        while True:
            number, kind, payload = self.frame()
            if kind == frames.CALL:
                assert frames.unpack_open(payload)[0] == method
                return number
            self.say(1, frames.MESSAGE, b"--")

    def end(self) -> None:
        """Confirm the last message."""
        self.say(1, frames.END, frames.pack_end(frames.OK))


@pytest.fixture
def agent() -> Iterator[Agent]:
    """An agent, whose command leaves no exception of its thread behind."""
    broken: list[threading.ExceptHookArgs] = []
    before, threading.excepthook = threading.excepthook, broken.append
    made = Agent()
    yield made
    made.close()
    threading.excepthook = before
    assert not broken


def test_settings_are_read_by_the_caller(agent: Agent) -> None:
    """A directory that the environment names may be open to the caller alone, and lie where only the caller sees it."""
    agent.environment = [b"LSF_ENVDIR=own"]
    agent.serve(b"bjobs")
    limit = SETTINGS_MAX.to_bytes(4, "little")
    assert agent.frame()[2] == served.ASK_FILE + limit + b"own/lsf.conf"
    agent.say(1, frames.MESSAGE, served.READ + b'LSB_BJOBS_FORMAT="nonsense"\n')
    assert b"nonsense" in agent.told()


def test_each_file_of_settings_is_asked_for_once(agent: Agent) -> None:
    """Several settings of one command are from one reading."""
    io = agent.io()
    for content in (b"A=1\n", b"B=2\n"):
        agent.say(1, frames.MESSAGE, served.READ + content)
    assert [io.setting(name) for name in "ABC"] == ["1", "2", None]
    assert [agent.frame()[2][5:] for _ in range(2)] == [b"/nowhere/lsf.conf", b"/run/its.lsf/lsf.conf"]


def test_sent_settings_and_the_agent_s_own_copy_are_not_asked_for(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question costs four messages; the agent's copy of the master's settings is for all users of the host."""
    (tmp_path / "its.lsf").mkdir()
    (tmp_path / "its.lsf" / "lsf.conf").write_text("B=2\n")
    monkeypatch.setattr(ServedIo, "own_copy", f"{tmp_path}/its.lsf/lsf.conf")
    agent.environment = [b"LSF_ENVDIR=own", f"LAVA_SOCKET={tmp_path}/its.sock".encode()]
    agent.settings = [b"own/lsf.conf", served.READ + b"A=1\n"]
    io = agent.io()
    assert [io.setting(name) for name in "ABC"] == ["1", "2", None]


def test_the_program_of_a_job_is_not_sent_whole(agent: Agent, tmp_path: Path) -> None:
    """Its beginning tells it from a script."""
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF\0" + bytes(1 << 20))
    program.chmod(0o755)
    agent.settings = [b"/nowhere/lsf.conf", served.READ + b"LSB_BSUB_PARSE_SCRIPT=Y\n"]
    agent.serve(b"bsub", str(program).encode())
    limit = HEAD.to_bytes(4, "little")
    assert agent.frame()[2] == served.ASK_KIND + limit + str(program).encode()
    agent.say(1, frames.MESSAGE, b"x" + served.READ + program.read_bytes()[:HEAD])
    assert agent.called(SUBMIT)


@pytest.fixture
def settled(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """An agent with a copy of the master's settings, and a caller that has sent its own."""
    (tmp_path / "its.lsf").mkdir()
    (tmp_path / "its.lsf" / "lsf.conf").write_text("")
    monkeypatch.setattr(ServedIo, "own_copy", f"{tmp_path}/its.lsf/lsf.conf")
    agent.environment = [f"LAVA_SOCKET={tmp_path}/its.sock".encode()]
    agent.settings = [b"/etc/lsf.conf", served.READ]
    return agent


@pytest.mark.parametrize("is_always", [False, True])
def test_nothing_is_asked_for_that_the_request_has(is_always: bool, settled: Agent) -> None:
    """A program of the machine's, and an output file that is no directory: the submission is the first message.

    It is no script where all commands are looked into (LSB_BSUB_PARSE_SCRIPT=Y), either.
    """
    agent = settled
    agent.environment += [b"LSB_BSUB_PARSE_SCRIPT=Y"] * is_always
    agent.kinds = b"?-b"
    agent.serve(b"bsub", b"-o", b"out", b"/bin/true")
    number, kind, payload = agent.frame()
    assert kind == frames.CALL, payload
    assert number > 1
    assert frames.unpack_open(payload)[0] == SUBMIT


def test_an_output_file_elsewhere_is_asked_for(settled: Agent) -> None:
    """The request tells of a word as the caller's directory has it, and -cwd names another."""
    agent = settled
    agent.kinds = b"?-?-b"
    agent.serve(b"bsub", b"-o", b"out", b"-cwd", b"sub", b"/bin/true")
    assert agent.frame()[2] == served.ASK_KIND + bytes(4) + b"/home/ann/sub/out"
    agent.say(1, frames.MESSAGE, b"d" + served.UNREADABLE)
    assert agent.called(SUBMIT)


def test_a_very_large_file_of_settings_is_left_to_the_caller(agent: Agent) -> None:
    """Content that does not fit an answer is not cut."""
    agent.serve(b"bjobs")
    agent.frame()
    agent.say(1, frames.MESSAGE, served.READ + bytes(SETTINGS_MAX))
    assert agent.told() == served.BECOME
    agent.end()


def test_the_caller_s_socket_is_known(agent: Agent) -> None:
    """The copy of the master's settings lies beside the socket that the stub has found; jobs do not inherit it."""
    agent.environment = []
    io = agent.io()
    assert io.environ["LAVA_SOCKET"] == "/run/its.sock"
    assert io.raw_environ == []


def test_a_first_call_that_fails_is_the_caller_s_to_repeat(agent: Agent) -> None:
    """Nothing was done yet, so nothing is printed here."""
    agent.serve(b"bsub", b"true")
    agent.say(agent.called(SUBMIT), frames.END, UNAVAILABLE)
    assert agent.told() == served.BECOME
    agent.end()


def test_the_last_output_goes_with_the_end(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """One write: the agent, and its stub, wake up once for both."""
    written: list[bytes] = []
    put = Connection._put

    def noting(connection: Connection, data: bytes) -> None:
        written.append(data)
        put(connection, data)

    monkeypatch.setattr(Connection, "_put", noting)
    agent.serve(b"bsub", b"true")
    number = agent.called(SUBMIT)
    result = jobs_pb2.SubmitResult(job=7, queue="normal")
    agent.say(number, frames.MESSAGE, jobs_pb2.SubmitReplies(results=[result]).SerializeToString())
    agent.say(number, frames.END, frames.pack_end(frames.OK))
    output = served.OUTPUT + b"Job <7> is submitted to queue <normal>.\n"
    assert [agent.told() for _ in range(2)] == [output, served.DONE + b"\0"]
    agent.end()
    assert frames.pack(1, frames.MESSAGE, output) + frames.pack(1, frames.MESSAGE, served.DONE + b"\0") in written


def test_a_single_try_is_made_here(agent: Agent) -> None:
    """With LSB_NTRIES=1 the caller would try no more often."""
    agent.environment.append(b"LSB_NTRIES=1")
    agent.serve(b"bsub", b"true")
    agent.say(agent.called(SUBMIT), frames.END, UNAVAILABLE)
    assert b"The batch system does not answer" in agent.told()
    assert agent.told() == served.DONE + b"\xff"
    agent.end()


def test_calls_after_an_answer_are_repeated_here(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole command would make the answered calls again; the number of tries is the whole command's."""
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    agent.environment.append(b"LSB_NTRIES=3")
    io = agent.io()
    reply = cluster_pb2.InfoReply(cluster="c1").SerializeToString()
    agent.say(2, frames.MESSAGE, reply)
    assert io.client().info().cluster == "c1"
    agent.say(3, frames.END, UNAVAILABLE)
    agent.say(4, frames.MESSAGE, reply)
    assert io.client().info().cluster == "c1"
    assert slept == [calls.PAUSES_S[0]]
    for number in (5, 6, 7):
        agent.say(number, frames.END, UNAVAILABLE)
    with pytest.raises(CommandError, match="The batch system does not answer"):
        io.client().info()
    assert slept == [calls.PAUSES_S[0], *calls.PAUSES_S[:2]]


def test_silence_of_the_agent_ends_the_command(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """No other connection leads to the cluster: the caller hears that its end is not known, and may begin anew."""
    io = agent.io()
    defaults = calls.Client._stream.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "silence_s", 0.01)
    with pytest.raises(CommandLost):
        io.client().info()


def test_a_submission_that_waits_is_the_caller_s(agent: Agent) -> None:
    """One that is refused for now would keep a place for minutes."""
    agent.serve(b"bsub", b"true")
    number = agent.called(SUBMIT)
    refused = jobs_pb2.SubmitResult(error="the queue is full", retry_later=True, retry_s=60)
    agent.say(number, frames.MESSAGE, jobs_pb2.SubmitReplies(results=[refused]).SerializeToString())
    agent.say(number, frames.END, frames.pack_end(frames.OK))
    assert agent.told() == served.BECOME
    agent.end()


@pytest.mark.parametrize("kind", [b"x", b"-"])
def test_programs_of_the_site_are_run_by_the_caller(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: bytes
) -> None:
    """An esub runs with the caller's rights, so in the whole command; a site without one is served as before."""
    copy = tmp_path / "its.lsf" / "lsf.conf"
    copy.parent.mkdir()
    copy.write_text("LSF_SERVERDIR=/site/etc\n")
    monkeypatch.setattr(ServedIo, "own_copy", str(copy))
    agent.environment = [b"LSF_ENVDIR=/nowhere", f"LAVA_SOCKET={tmp_path}/its.sock".encode()]
    agent.serve(b"bsub", b"-o", b"/dev/null", b"true")
    while (message := agent.frame())[1] == frames.MESSAGE and message[2][:1] in (served.ASK_KIND, served.ASK_FILE):
        is_esub = message[2].endswith(b"/site/etc/esub")
        asked_kind = message[2][:1] == served.ASK_KIND
        agent.say(1, frames.MESSAGE, (kind if is_esub else b"-") + b"-" if asked_kind else served.UNREADABLE)
    if kind == b"x":
        assert message[2] == served.BECOME
    else:
        assert frames.unpack_open(message[2])[0] == SUBMIT


def test_what_was_shown_is_not_shown_again(agent: Agent) -> None:
    """A command of whose output a part was sent is lost rather than begun anew."""
    io = agent.io()
    io.print("line")
    io.flush()
    with pytest.raises(CommandLost):
        io._caller.become()


def test_overlapping_calls_are_left_to_the_caller(agent: Agent) -> None:
    """At once, not when the first answer is asked for."""
    with pytest.raises(CallerNeeded):
        agent.io().client().peek_many([], 1)


@pytest.mark.parametrize("words", [(b"bjobs",), (b"bjobs", b"-nonsense")])
def test_a_caller_that_has_gone_ends_its_command(agent: Agent, words: tuple[bytes, ...]) -> None:
    """Quietly, whether it waits for an answer or has an error to say."""
    agent.serve(*words)
    agent.socket.shutdown(socket.SHUT_RDWR)
    assert agent.thread is not None
    agent.thread.join(WAIT_S)
    assert not agent.thread.is_alive()


@pytest.mark.parametrize(
    ("environment", "zone", "own"),
    [
        ([], None, False),
        ([b"TZ="], None, True),
        ([], b"", True),
        ([b"TZ="], b"", False),
        ([b"TZ=UTC0"], b"UTC0", False),
        ([b"TZ=UTC0"], None, True),
        ([b"TZDIR=/own"], None, True),
        ([b"LANG=C"], None, False),
        ([b"LANG=de_DE"], None, True),
        ([b"LC_ALL=", b"LANG=de_DE.UTF-8"], None, False),
    ],
)
def test_another_time_zone_or_writing_is_the_caller_s(environment: list[bytes], zone: bytes | None, own: bool) -> None:
    """An empty TZ is UTC, one that is not set is the host's."""
    assert has_own_way(environment, zone) is own


def test_kept_minutes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that serves for months sees each minute of them."""
    monkeypatch.setattr(render, "_minutes", {})
    monkeypatch.setattr(render, "MINUTES_MAX", 10)
    texts = [render.short_time(60.0 * minute) for minute in range(25)]
    assert len(set(texts)) == 25
    assert len(render._minutes) <= 10
