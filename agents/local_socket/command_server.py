"""Commands of stubs, run by a resident process without privileges in the name of their callers.

Methods: ``/lava.local/Command``, called by a stub; ``/lava.local/Serve``, called by the serving process on a connection
that it was given, once for each command. Such a connection has one command at a time, and none in between; kept from
one to the next it saves a thread, a pair of sockets and five of eleven wake-ups. Invariants: the caller of a command is
who the kernel says that its stub is, on every call that is made for it; the serving process can make calls only on a
connection that has a command, in its caller's name, and only as long as its stub is there; all calls of a command have
ended before its connection has another one; nothing is done for a stub before it has said GO; a stub whose command
cannot be served is told so before that, and runs it itself.
"""

import asyncio
import contextlib
import logging
import math
import os
import socket
import subprocess
import sys
import time

from agents.local_socket.callers import CallFailed
from agents.local_socket.calls import NO_CALLER, Call, Served, Worker
from agents.local_socket.gateway import Connection, Gateway, LocalMethod
from protos import frames, served

LOG = logging.getLogger("lava.commands")

PROGRAM = "lavactl.served"
COMMANDS_MAX, COMMANDS_OF_USER = 64, 12  # at a time; further ones are their callers' to run
START_S = 30.0  # within which the process must be ready
AGAIN_S = (1.0, 60.0)  # pause before it is started again, doubled up to the second
GO_S = 10.0
REQUEST_MAX = 8 << 20  # bytes of what a command was started with; a larger one is its caller's to run
BEGIN_S = 3.0  # within which something must come from the process that has a command
LOOK_S = 0.25  # between two looks at a process from which nothing comes; one that is stopped is replaced
STOPPED = frozenset("tT")  # states of a process, as proc(5) has them
IDLE_MAX = 8  # connections kept for further commands; each is a thread of the process
LAST = (served.BECOME, served.LOST, served.DONE)
QUESTIONS = (served.ASK_KIND, served.ASK_FILE, served.ASK_INPUT)


class CommandServer:
    """Serving process of this host, and the commands that it runs. ``gateway`` is set once it exists."""

    def __init__(self) -> None:
        self.gateway: Gateway | None = None
        self._control: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._commands: dict[Served, int] = {}  # the caller's uid
        self._workers: dict[Worker, asyncio.Task[None]] = {}  # connections of the process, and what serves them
        self._idle: list[Worker] = []  # those that wait for a command
        self._keeping: asyncio.Task[None] | None = None

    def table(self) -> dict[str, LocalMethod]:
        """Return the methods by full name, for ``Gateway``."""
        return {served.COMMAND: self.command, served.SERVE: self.serve}

    def start(self) -> None:
        """Start the process unless that was done, and start it again whenever it has ended."""
        if self._keeping is None:
            self._keeping = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """End the process."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        workers = list(self._workers.values())
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    # -- calls

    async def command(self, call: Call) -> None:
        """Run the command of a stub. The process reads it while the stub hears that it may go on.

        Raises:
            CallFailed: RESOURCE_EXHAUSTED or UNAVAILABLE before GO: the stub runs it itself.
        """
        one = Served(call, await call.receive() or b"")
        if len(one.request) > REQUEST_MAX:
            raise CallFailed(frames.RESOURCE_EXHAUSTED, "the command was started with too much to be served")
        control = self._room(call.caller.uid)
        self._commands[one] = call.caller.uid
        worker = None
        try:
            worker = self._given(one, control)
            await asyncio.sleep(0)  # first the process begins to read it: that takes longer than the stub's GO
            await call.send(served.ACCEPTED)
            async with asyncio.timeout(GO_S):
                if await call.receive() != served.GO:
                    return
            if one.last.is_set():  # its process has ended while nothing could be done yet
                await call.send(served.BECOME)
                return
            one.gone.set()
            await self._end_of(one, worker)
        except TimeoutError:
            raise CallFailed(frames.DEADLINE_EXCEEDED, "the command did not say that it goes on") from None
        finally:
            del self._commands[one]
            if worker is not None and not one.is_over:
                worker.cancel()  # the command was given to its connection alone

    def _given(self, one: Served, control: socket.socket) -> "asyncio.Task[None] | None":
        """Give the process a command, on an idle connection or on a new one; return what serves that.

        None if it has not heard of the command.
        """
        assert self.gateway is not None
        if self._idle:
            worker = self._idle.pop()
            worker.give(one)
            return self._workers[worker]
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            try:
                socket.send_fds(control, [b"command"], [theirs.fileno()])
            except OSError:
                ours.close()
                return None
        worker = Worker()
        worker.give(one)
        connection = Connection(self.gateway, NO_CALLER, worker)
        task = self._workers[worker] = asyncio.create_task(self._serve_worker(connection, worker, ours))
        return task

    async def _serve_worker(self, connection: Connection, worker: Worker, ours: socket.socket) -> None:
        try:
            await connection.serve(ours)
        finally:
            del self._workers[worker]
            if worker.command is not None:
                worker.command.finish(is_over=False)

    async def _end_of(self, one: Served, worker: "asyncio.Task[None] | None") -> None:
        """Wait for the end of a command that the stub wants to be run."""
        if worker is not None:
            await self._comes(one.first, BEGIN_S)
            if one.has_begun:
                await self._comes(one.last, None)
            if one.is_over:
                return
            worker.cancel()  # before the stub hears of it: so that the command cannot be run twice
            await asyncio.gather(worker, return_exceptions=True)
        if not one.is_over:  # without a beginning nothing was done
            await one.stub.send(served.LOST if one.has_begun else served.BECOME)

    async def _comes(self, event: asyncio.Event, limit_s: float | None) -> None:
        """Wait for something of the process within a time, or until its end; end a process that is stopped."""
        ends_at = time.monotonic() + limit_s if limit_s is not None else math.inf
        while not event.is_set() and time.monotonic() < ends_at:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await event.wait()
                    return
            if self._is_stopped():
                self._replace()

    def _is_stopped(self) -> bool:
        if self._process is None:
            return False
        try:
            with open(f"/proc/{self._process.pid}/stat", encoding="ascii", errors="replace") as file:
                return file.read().rpartition(")")[2].split()[0] in STOPPED
        except (OSError, IndexError):
            return False

    def _replace(self) -> None:
        """End the process: the next one is started, and meanwhile commands are their callers' to run."""
        if self._process is not None:
            LOG.warning("event=command_server_stopped pid=%d", self._process.pid)
            self._process.kill()
            self._control = self._process = None

    async def serve(self, call: Call) -> None:
        """Carry messages between the serving process and the stub of the command that its connection is given."""
        worker = call.worker
        if worker is None or worker.is_asked:
            raise CallFailed(frames.PERMISSION_DENIED, f"{served.SERVE} is not for users")
        worker.is_asked = True
        try:
            await call.receive()  # the opening message, which is empty
            await self._carry(call, await self._next_of(worker))
            worker.take_back()
            await worker.end_others(call)
        finally:
            worker.is_asked = False

    async def _next_of(self, worker: Worker) -> Served:
        """Wait for the next command of a connection."""
        if worker.command is None:
            self._idle.append(worker)
            if len(self._idle) > IDLE_MAX:
                self._workers[self._idle[0]].cancel()
        try:
            await worker.given.wait()
        finally:
            if worker in self._idle:
                self._idle.remove(worker)
        assert worker.command is not None
        return worker.command

    async def _carry(self, call: Call, one: Served) -> None:
        """Carry messages up to the last one."""
        caller = one.stub.caller
        await call.send(served.packed([caller.user.encode(), str(caller.uid).encode()]) + one.request)
        one.request = b""  # an environment may have megabytes, and commands may wait for long
        downward: asyncio.Task[None] | None = None  # with the first question: most commands have none
        try:
            while (message := await call.receive()) is not None:
                await one.gone.wait()
                if downward is None and message[:1] in QUESTIONS:
                    downward = asyncio.create_task(self._answers(one, call))
                if message[:1] in LAST:
                    await one.stub.send_last(message)
                    one.finish(is_over=True)
                    await asyncio.sleep(0)  # first the stub has its last message, then the process hears so
                    return
                # What comes right before the last message goes with it: the stub wakes up once.
                await (one.stub.send_last if call.next_message()[:1] in LAST else one.stub.send)(message)
        finally:
            if downward is not None:
                downward.cancel()
                await asyncio.gather(downward, return_exceptions=True)

    @staticmethod
    async def _answers(one: Served, call: Call) -> None:
        while (message := await one.stub.receive()) is not None:
            await call.send(message)

    def _room(self, uid: int) -> socket.socket:
        if self._control is None:
            self.start()  # with the first stub: hosts where no commands are typed have no such process
            raise CallFailed(frames.UNAVAILABLE, "this host serves no commands now")
        running = list(self._commands.values())
        if len(running) >= COMMANDS_MAX or running.count(uid) >= COMMANDS_OF_USER:
            raise CallFailed(frames.RESOURCE_EXHAUSTED, "this host serves too many commands now")
        return self._control

    # -- the process

    async def _keep(self) -> None:
        pause_s = AGAIN_S[0]
        while True:
            began = time.monotonic()
            try:
                await self._live()
            except OSError as error:
                LOG.warning("event=command_server_not_started reason=%r", str(error))
            if time.monotonic() - began > AGAIN_S[1]:
                pause_s = AGAIN_S[0]
            LOG.warning("event=command_server_ended again_s=%g", pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(AGAIN_S[1], 2 * pause_s)

    async def _live(self) -> None:
        """Start the process and wait for its end."""
        assert self.gateway is not None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            ours.setblocking(False)
            with theirs:
                process = await _started(theirs.fileno(), self.gateway.path)
            self._process = process
            try:
                await self._hand_over(ours, process.pid)
            except TimeoutError:
                LOG.warning("event=command_server_not_ready pid=%d reason='it was silent'", process.pid)
            finally:
                self._control = self._process = None
                process.kill()
                process.wait()

    async def _hand_over(self, control: socket.socket, pid: int) -> None:
        """Let the process have commands, once it is ready, until its end."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(START_S):
            if await loop.sock_recv(control, 16) != served.READY:
                LOG.warning("event=command_server_not_ready pid=%d reason='it ended'", pid)
                return
        self._control = control
        LOG.info("event=command_server_ready pid=%d", pid)
        await loop.sock_recv(control, 16)  # nothing comes: its end does


async def _started(control: int, path: str) -> "subprocess.Popen[bytes]":
    """Start the process; one whose start is cancelled is ended."""
    starting = asyncio.ensure_future(asyncio.to_thread(_start, control, path))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        process = await starting
        process.kill()
        process.wait()
        raise


def _start(control: int, path: str) -> "subprocess.Popen[bytes]":
    """Start the process with its socket, and nothing else of this one's."""
    keep = {name: os.environ[name] for name in ("PATH", "TZ") if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", PROGRAM, str(control), path],
        env={**keep, "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        cwd="/",
        pass_fds=(control,),
        start_new_session=True,
    )
