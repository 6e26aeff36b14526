"""One process elsewhere with this process's streams: losses of its agent, signals, what the user is told."""

import io as memory
import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from lavactl.io import Io
from lavactl.tasks import session, tasks
from lavactl.tasks.interactive import OWN, PIPES, InteractiveJob
from lavactl.tasks.session import Session
from lavactl.tasks.surrounding_job import JobKey
from lavactl.tasks.task import Task
from lavactl.wire import messages
from lavactl.wire.messages import TaskOutput, TaskStart
from protos import common_pb2, frames, jobs_pb2

LOST = "the agent of n2 cannot be reached"
LEAVES = "; trying again, Ctrl-C leaves"
ENDED = TaskOutput(ended=True)
BROKEN_OFF = (frames.UNAVAILABLE, LOST)
Answer = TaskOutput | tuple[int, str]


class Agent:
    """This host's agent: to each call in turn it gives the next answers.

    After the end of a call it stays; with the last call in progress it goes, and does not come back.
    """

    def __init__(self, path: Path, *calls: Sequence[Answer]) -> None:
        self._calls = list(calls)
        self._stays = not isinstance(calls[-1][-1], TaskOutput)
        self._has_left = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with self._listener:
            connection, _ = self._listener.accept()
            with connection, connection.makefile("rb") as heard:
                while self._calls and (header := heard.read(frames.HEADER.size)):
                    call, kind, length = frames.unpack_header(header)
                    heard.read(length)
                    if kind == frames.OPEN:
                        connection.sendall(b"".join(_frame(call, one) for one in self._calls.pop(0)))
                if self._stays:
                    self._has_left.wait()

    def end(self) -> None:
        """Its client has left."""
        self._has_left.set()
        self._thread.join()


def _frame(call: int, answer: Answer) -> bytes:
    if isinstance(answer, TaskOutput):
        return frames.pack(call, frames.MESSAGE, answer.SerializeToString())
    return frames.pack(call, frames.END, frames.pack_end(*answer))


def started(patience_s: float = 300.0) -> TaskOutput:
    """The answer that the process runs, and outlives the connection."""
    return TaskOutput(started=True, kept=True, patience_s=patience_s)


class User:
    """A user whose command passes on the streams of a process, and what it tells him."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "agent.sock"
        self.told: list[str] = []

    def attach(self, *calls: Sequence[Answer], host: str = "n2", resume: bool = True) -> tuple[Task, int]:
        """The process and the signal that ended the command, against an agent with these answers."""
        agent = Agent(self._path, *calls)
        surroundings = Io(memory.BytesIO(), memory.BytesIO(), memory.BytesIO(), [b"LAVA_SOCKET=%s" % bytes(self._path)])
        streams = Session(surroundings, "bsub", JobKey(1, 0, 1, [host]), None, self.told.append)
        streams.deadline = surroundings.monotonic() + 120.0  # of a test that fails
        try:
            return streams.pass_on(host, TaskStart(resume=resume), OWN if resume else b"")
        finally:
            agent.end()


@pytest.fixture
def user(tmp_path: Path) -> User:
    return User(tmp_path)


@pytest.mark.parametrize(("host", "again"), [("n2", "Connected to n2 again"), ("", "Connected again")])
def test_a_job_that_is_there_is_asked_for_again(
    user: User, monkeypatch: pytest.MonkeyPatch, host: str, again: str
) -> None:
    """Its agent restarts before bsub was first connected to it: the job waits for its client, and so does bsub."""
    monkeypatch.setattr(tasks, "START_S", 0.0)
    task, left = user.attach([BROKEN_OFF], [BROKEN_OFF], [started(), ENDED, (frames.OK, "")], host=host)
    assert (task.status, task.error, left) == (0, "", 0)
    assert user.told == [f"T{LOST[1:]}{LEAVES}", again]


def test_a_process_that_was_not_started_is_not_waited_for(user: User) -> None:
    """A start by `lavactl attach` on a host that is away: the agent of this host has tried for long."""
    task, _ = user.attach([BROKEN_OFF], resume=False)
    assert (task.status, task.error, user.told) == (None, LOST, [])


@pytest.mark.parametrize("answers", [[started(0.0), BROKEN_OFF], [started(0.0)], [started(0.2)]])
def test_the_patience_of_its_agent_bounds_the_wait(
    user: User, monkeypatch: pytest.MonkeyPatch, answers: list[Answer]
) -> None:
    """LAVA_TASK_PATIENCE, 0 included, whichever agent is away: that of the process or that of this host."""
    monkeypatch.setattr(session, "PATIENCE_S", 0.2)  # this host's agent may go before it has told its own
    task, left = user.attach(answers)
    assert (task.status, left) == (None, 0)
    assert task.error == LOST or task.error.startswith("the agent of this host does not answer: ")


class Waiting:
    """The master, as it is for a bsub whose job waits: the terminal hangs up meanwhile."""

    def __init__(self) -> None:
        self.signalled: list[Any] = []

    def watch(self, _refs: Any) -> Iterator[jobs_pb2.JobChange]:
        os.kill(os.getpid(), signal.SIGHUP)
        yield jobs_pb2.JobChange(state=common_pb2.EXIT, exit_status=3 << 8, hosts=["n2"])

    def signal(self, request: Any) -> None:
        self.signalled.append(request)

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(("ignored", "killed"), [(True, 0), (False, 1)])
def test_nohup_keeps_a_job_that_waits(ignored: bool, killed: int) -> None:
    """A signal that the parent of bsub ignores stays ignored; else the job is ended with its bsub."""
    master: Any = Waiting()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    try:
        job = InteractiveJob(1, PIPES, quiet=True, io=Io(stderr=memory.BytesIO(), raw_environ=[], client=master))
        if ignored:
            assert job.run() == 3
        else:
            with pytest.raises(KeyboardInterrupt):  # it hangs up for ever: a second time it leaves
                job.run()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert len(master.signalled) == killed
    assert all(one.action == messages.TERMINATE for one in master.signalled)
