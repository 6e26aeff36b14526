"""Attempts of a host that run their tasks as plain processes of this test, without shepherds."""

import asyncio
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from agents.ranks.interfaces import PMI_DESCRIPTOR, KeptRequest, Key, Run, TaskRefused, TaskRequest
from agents.shepherd.tasks.kept import Host, KeptTasks, Order, Refusal
from protos.common_pb2 import HostShare

# Redirects the socket, whatever its number, to the one that PMI_FD names, as a shepherd does.
_WITH_PMI = f'n=$1; shift; eval "exec {PMI_DESCRIPTOR}<&$n $n<&-"; exec "$@"'


@dataclass(slots=True)
class Held:
    """An attempt held by a fake host."""

    key: Key
    allocation: Sequence[HostShare]
    uid: int = field(default_factory=os.getuid)
    gid: int = field(default_factory=os.getgid)
    groups: tuple[int, ...] = ()
    user: str = "someone"
    output_path: str = ""
    error_path: str = ""
    environment: dict[bytes, bytes] = field(default_factory=dict)


class Handle:
    """A started process, waited for by its descriptor."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = loop.create_future()
        self._descriptor = os.pidfd_open(process.pid)
        loop.add_reader(self._descriptor, self._reap)

    def signal(self, number: int) -> None:
        """To the process group."""
        assert type(number) is int, "the real one sends it as a plain number"
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return

    def kill(self) -> None:
        """Kill the process and collect it, though the loop may end before it hears of that."""
        self.signal(int(signal.SIGKILL))
        self._process.wait()

    async def wait(self) -> int:
        """Wait for the raw wait status."""
        return await asyncio.shield(self._ended)

    def _reap(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)
        code = self._process.wait()
        self._ended.set_result(code << 8 if code >= 0 else -code)

    def when_ended(self, call: Callable[[int], object]) -> None:
        """Call back with the raw wait status."""
        self._ended.add_done_callback(lambda ended: call(ended.result()))


def _spawn(
    argv: list[bytes], request: TaskRequest, environment: dict[bytes, bytes], keep: tuple[int, ...]
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        argv,
        stdin=request.stdin_fd,
        stdout=request.stdout_fd,
        stderr=request.stderr_fd,
        pass_fds=keep,
        cwd=request.cwd or None,
        env=environment,
        start_new_session=True,
    )


class Shepherd:
    """The part of a shepherd that keeps tasks, on the loop of this test; its processes are those of `FakeAttempts`."""

    def __init__(self, attempts: "FakeAttempts", key: Key) -> None:
        self._attempts = attempts
        self._key = key
        self._watched: dict[int, int] = {}
        self._null = os.open(os.devnull, os.O_RDWR)
        self._loop = asyncio.get_running_loop()
        self._by_serial: dict[int, Handle] = {}
        owner = (os.getuid(), os.getgid())
        self.kept = KeptTasks(Host(self._spawn, self._signal, self._watch, lambda: True, owner, self._null))
        self._ticking = asyncio.ensure_future(self._tick())

    async def _tick(self) -> None:
        while True:
            self.kept.tick(time.monotonic())
            await asyncio.sleep(0.01)

    def _watch(self, descriptor: int, events: int, call: Callable[[int], None]) -> None:
        before = self._watched.pop(descriptor, 0)
        if before & select.POLLIN:
            self._loop.remove_reader(descriptor)
        if before & select.POLLOUT:
            self._loop.remove_writer(descriptor)
        if events:
            self._watched[descriptor] = events
        if events & select.POLLIN:
            self._loop.add_reader(descriptor, call, select.POLLIN)
        if events & select.POLLOUT:
            self._loop.add_writer(descriptor, call, select.POLLOUT)

    def _signal(self, number: int, serial: int) -> None:
        self._by_serial[serial].signal(number)

    def _spawn(self, serial: int, order: Order, descriptors: list[int]) -> int:
        environment = tuple(b"%s=%s" % pair for pair in order.environment.items())
        request = TaskRequest(order.argv, order.cwd, environment, *descriptors[:3], *descriptors[3:])
        try:
            handle = self._by_serial[serial] = self._attempts.spawn(self._key, request)
        except TaskRefused as refused:
            raise Refusal(str(refused)) from None
        finally:
            for descriptor in descriptors:
                os.close(descriptor)
        handle.when_ended(lambda status: self.kept.ended(serial, status))
        return handle.pid

    def close(self) -> None:
        """The attempt is over."""
        self._ticking.cancel()
        self.kept.close()
        os.close(self._null)


class FakeAttempts:
    """The attempts of one fake host; ``handles`` are the tasks it started, oldest first."""

    def __init__(self) -> None:
        self.patience_s = 30.0
        self.keeps_tasks = True  # as shepherds of this version do
        self.shepherds: dict[Key, Shepherd] = {}
        self.held: list[Held] = []
        self.handles: list[Handle] = []
        self.requests: list[TaskRequest] = []

    def find(self, job: int, index: int, attempt: int = 0) -> Held | None:
        """The attempt, or the newest of that job."""
        found = [held for held in self.held if held.key[:2] == (job, index) and attempt in (0, held.key[2])]
        return max(found, key=lambda held: held.key[2], default=None)

    async def place(self, key: Key, environment: Sequence[bytes]) -> tuple[Run, ...]:
        """None: these are no jobs of tasks."""
        return ()

    def open_task(self, key: Key, request: KeptRequest) -> socket.socket | None:
        """A connection to the task's keeper."""
        if not self.keeps_tasks:
            return None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        pairs = (one.partition(b"=") for one in request.environment)
        order = Order(
            request.connection, request.resume, request.gone, request.got, self.patience_s, request.argv, request.cwd,
            {name: value for name, _, value in pairs}, request.no_input, request.pmi, request.umask,
        )  # fmt: skip
        if key not in self.shepherds:
            self.shepherds[key] = Shepherd(self, key)
        self.shepherds[key].kept.run(request.token, order, theirs)
        return ours

    async def run_task(self, key: Key, request: TaskRequest) -> Handle:
        """Start the process."""
        return self.spawn(key, request)

    def spawn(self, key: Key, request: TaskRequest) -> Handle:
        """Start a process with the descriptors of the request, which stay the caller's."""
        held = self.find(*key)
        if held is None:
            raise TaskRefused(f"job <{key[0]}> does not run here")
        environment = {b"PATH": os.environb[b"PATH"], **held.environment}
        environment.update((name, value) for name, _, value in (one.partition(b"=") for one in request.environment))
        argv = list(request.argv)
        keep: tuple[int, ...] = ()
        if request.pmi_fd is not None:
            keep = (request.pmi_fd,)
            argv = [b"/bin/bash", b"-c", _WITH_PMI.encode(), b"pmi", b"%d" % request.pmi_fd, *argv]
        try:
            process = _spawn(argv, request, environment, keep)
        except OSError as error:
            raise TaskRefused(f"cannot start: {error}") from error
        self.requests.append(request)
        self.handles.append(Handle(process))
        return self.handles[-1]

    def kill_all(self) -> None:
        """Kill processes left by a failed test."""
        for shepherd in self.shepherds.values():
            shepherd.close()
        self.shepherds.clear()
        for handle in self.handles:
            handle.kill()
