"""Main loop of a shepherd: waits for an attempt, keeps it to its end, and waits again.

It is forked by the launcher, never executed. Invariants: it takes orders only over its own socket in the agent's
private directory, from its own user; the last order of a killed agent is still carried out, before the next agent's
connection is answered; without an agent its attempt goes on, and it exits when it has none; it never blocks but in its
own poll.
"""

import contextlib
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from agents.shepherd import messages
from agents.shepherd.attempt import ENDING, OVER
from agents.shepherd.attempt_of_tasks import WorkOfTasks
from agents.shepherd.checkpoints import CheckpointedWork
from agents.shepherd.clock import NEVER
from agents.shepherd.confinement.groups import Confinement, confinement
from agents.shepherd.confinement.hierarchy import Base
from agents.shepherd.lease import Lease
from agents.shepherd.messages import (
    ChangedLimits,
    JobSetup,
    Key,
    Message,
    Receiver,
    Status,
    fields_of,
    pack,
    unpack_setup,
)
from agents.shepherd.process import processes
from agents.shepherd.process.identity import Identity
from agents.shepherd.spool import LOG_SUFFIX, SOCKET_SUFFIX, ExitLog, OutputFile
from agents.shepherd.tasks.kept import Order
from agents.shepherd.tools import Tools

# Time that an attempt that is staged but not running is kept for the next agent.
HOLD_PATIENCE_S = 3600.0
# The agent that asked for this shepherd connects at once, unless it has died meanwhile.
CONNECT_PATIENCE_S = 10.0
LOOK_S = 1.0  # between two checks of its socket's file, while there is no agent
OUTBOX_MAX = 1000
CREDENTIALS = struct.Struct("iii")


class Place(NamedTuple):
    """Location of a shepherd. Sockets and logs are in ``directory``, unnamed outputs in ``outputs``."""

    slot: int
    base: Base
    directory: str
    outputs: str


class Shepherd:
    """Event loop: orders, ends of processes, and timers."""

    def __init__(self, place: Place, listener: socket.socket) -> None:
        self._place = place
        self._listener = listener
        self._watched: dict[int, tuple[int, Callable[[int], None]]] = {}
        listener.setblocking(False)
        self._connection: socket.socket | None = None
        self._receiver = Receiver()
        self._outbox: list[bytes] = []
        self._setups: dict[int, JobSetup] = {}
        self._work: CheckpointedWork | None = None
        self._leaving = False
        self._patience_until = time.monotonic() + CONNECT_PATIENCE_S
        self._look_at = NEVER
        self._wake_reader = _wake_pipe()
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        self._poll.register(self._wake_reader, select.POLLIN)
        self._confinement: Confinement = confinement(place.base, place.slot)
        self._confinement.join()
        self._tools = Tools(
            self._confinement,
            Identity(self._confinement.entrances),
            ExitLog(f"{place.directory}/{place.slot}{LOG_SUFFIX}"),
            OutputFile(f"{place.outputs}/{place.slot}"),
            Lease(place.directory),
            os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC),
            self._send,
            self._send_optional,
            self._watch,
            lambda: self._connection is not None,
        )

    def run(self) -> None:
        """Serve until there is neither an attempt nor an agent."""
        while not self._leaving:
            for descriptor, events in self._poll.poll(self._timeout_ms()):
                if self._connection is not None and descriptor == self._connection.fileno():
                    self._on_connection(events)
                elif descriptor == self._wake_reader:
                    os.read(self._wake_reader, 4096)
                    self._reap()
                elif descriptor == self._listener.fileno():
                    self._accept()
                elif descriptor in self._watched:
                    self._watched[descriptor][1](events)
            self._after_events()
        self._leave()

    def _watch(self, descriptor: int, events: int, call: Callable[[int], None]) -> None:
        """Call back with the poll events of a descriptor; without events, stop polling it."""
        known = self._watched.get(descriptor)
        if events:
            self._watched[descriptor] = (events, call)
            if known is None or known[0] != events:
                self._poll.register(descriptor, events)
        elif known is not None:
            del self._watched[descriptor]
            self._poll.unregister(descriptor)

    def _timeout_ms(self) -> float | None:
        due = min(self._patience_until, self._look_at)
        if self._work is not None:
            due = min(due, self._work.next_at)
        # A millisecond more: poll counts whole ones, and waking too early is waking twice.
        return None if due == NEVER else max(0.0, due - time.monotonic()) * 1000 + 1

    def _after_events(self) -> None:
        now = time.monotonic()
        if self._work is not None:
            self._work.tick(now)
            if self._work.phase == ENDING:
                self._reap()
            self._drop_work_when_over()
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            self._restore_files()
        if now >= self._patience_until:
            self._leaving = True

    def _restore_files(self) -> None:
        """Restore deleted files of the agent's directory: the next agent needs the socket and the log."""
        place, name = self._place, f"{self._place.slot}{SOCKET_SUFFIX}"
        if self._work is None or os.path.exists(f"{place.directory}/{name}"):
            return
        try:
            for directory in (place.directory, place.outputs):
                os.makedirs(directory, exist_ok=True)
            self._tools.log.restore()
            self._tools.lease.restore(place.directory)
            listener = listen_at(place.directory, name)
        except OSError as error:  # retried soon
            print(f"event=files_not_restored slot={place.slot} error={error.strerror!r}", file=sys.stderr)
            return
        self._poll.unregister(self._listener)
        self._listener.close()
        self._listener = listener
        self._poll.register(listener, select.POLLIN)

    def _reap(self) -> None:
        children = True
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                children = False
                break
            if not pid:
                break
            if self._work is not None:
                self._work.reaped(pid, status, usage)
        if self._work is not None:
            self._work.settle(children)
            self._drop_work_when_over()

    def _drop_work_when_over(self) -> None:
        if self._work is not None and self._work.phase == OVER:
            self._work = None
            self._leaving = self._connection is None

    # -- the agent

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        _, uid, _ = CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
        if uid not in (0, os.geteuid()):
            connection.close()
            return
        self._drain()
        connection.setblocking(False)
        self._connection = connection
        self._leaving = False
        self._poll.register(connection, select.POLLIN)
        self._patience_until = self._look_at = NEVER
        if self._work is not None:
            self._work.beside.kept.agent_came()
        self._outbox = [self._status()]
        self._flush()

    def _status(self) -> bytes:
        if self._work is not None:
            return self._work.status()
        return pack(messages.STATUS, *Status(None, messages.PROTOCOL, os.getpid()))

    def _drain(self) -> None:
        """Carry out the remaining orders of the previous agent; then its connection is closed."""
        while self._connection is not None:
            try:
                self._receive()
            except BlockingIOError:
                self._disconnect()

    def _on_connection(self, events: int) -> None:
        if events & select.POLLOUT:
            self._flush()
        if events & ~select.POLLOUT:
            with contextlib.suppress(BlockingIOError):  # the event was for a replaced connection
                self._receive()

    def _receive(self) -> None:
        assert self._connection is not None
        try:
            received = self._receiver.receive(self._connection)
        except BlockingIOError:
            raise
        except (OSError, ValueError, EOFError, TypeError) as error:
            print(f"event=connection_broken slot={self._place.slot} error={error!r}", file=sys.stderr)
            received = None
        if received is None:
            self._disconnect()
        else:
            self._handle(*received)

    def _disconnect(self) -> None:
        """Close the connection of a lost or replaced agent; the attempt goes on."""
        assert self._connection is not None
        self._poll.unregister(self._connection)
        self._connection.close()
        self._connection = None
        self._outbox = []
        self._look_at = time.monotonic()
        if self._work is None:
            self._leaving = True
        elif not self._work.busy:
            self._patience_until = time.monotonic() + HOLD_PATIENCE_S

    def _handle(self, message: Message, descriptors: list[int]) -> None:
        kind = message[0]
        if kind == messages.RETIRE:
            self._leaving = self._work is None
            return
        key: Key = message[1:4]
        if kind == messages.PING:
            self._send(pack(messages.PONG, *key))
        elif kind == messages.HOLD:
            self._hold(key, *message[4:])
        elif self._work is None or self._work.key != key:
            for descriptor in descriptors:
                os.close(descriptor)
            self._not_here(kind, key, message)
        else:
            self._order(self._work, kind, message[4:], descriptors)
            self._drop_work_when_over()

    def _hold(self, key: Key, number: int, setup: bytes | None, forget: bool, launch: bool, rotate: bool) -> None:
        if self._work is not None:
            if self._work.key != key:
                self._send(pack(messages.REFUSED, *key, "the place is taken"))
            return
        if rotate:
            self._rotate_log()
        if forget:
            self._setups.clear()
        if setup is not None:
            self._setups[number] = unpack_setup(setup)
        try:
            job = self._setups[number]
            self._work = work = (WorkOfTasks if job.role_names else CheckpointedWork)(key, job, self._tools)
        except OSError as error:  # its limits cannot be set
            self._send(pack(messages.REFUSED, *key, f"the limits of the job cannot be set: {error.strerror}"))
            return
        work.stage(launch)
        self._drop_work_when_over()

    def _rotate_log(self) -> None:
        try:
            self._tools.log.rotate()
        except OSError as error:  # no space for another file: the present one stays in use
            print(f"event=log_not_rotated slot={self._place.slot} error={error.strerror!r}", file=sys.stderr)

    def _order(self, work: CheckpointedWork, kind: int, fields: Message, descriptors: list[int]) -> None:
        if kind == messages.LAUNCH:
            work.launch()
        elif kind == messages.TASK:
            serial, argv, cwd, environment, *runs = fields
            work.task(serial, argv, cwd, environment, descriptors, runs[0] if runs else ())
        elif kind == messages.RUN_TASK and descriptors:  # none: too many, and the agent sees the end
            token, *order = fields
            work.beside.kept.run(token, Order(*order[: len(Order._fields)]), socket.socket(fileno=descriptors[0]))
        elif kind == messages.SIGNAL:
            work.signal(*fields)
        elif kind == messages.LIMITS:
            work.limit(fields_of(ChangedLimits, fields))
        elif kind == messages.RELEASE:
            work.release(*fields)
        elif kind == messages.REVOKE:
            work.revoke(*fields)
        elif kind == messages.COUNT:
            work.count()
        elif kind == messages.LOOK:
            work.look()
        elif kind == messages.COUNTED:
            work.counted(*fields)
        elif kind == messages.NOTIFY:
            work.give_notice(*fields)
        elif kind == messages.ASK_TIME:
            work.tell_time()
        elif kind == messages.CHECKPOINT:
            work.checkpoint(*fields[:3])
        elif isinstance(work, WorkOfTasks):
            work.order(kind, fields)

    def _not_here(self, kind: int, key: Key, message: Message) -> None:
        """Answer an order for an attempt that has just ended: it crossed with the report."""
        if kind == messages.TASK:
            self._send(pack(messages.TASK_STARTED, *key, message[4], 0, "The job has ended on this host."))
        elif kind == messages.RELEASE:
            self._send(pack(messages.RELEASED, *key))

    def _send(self, message: bytes) -> None:
        if self._connection is None:
            return  # the log has all that matters
        if self._outbox:
            self._outbox.append(message)
            del self._outbox[:-OUTBOX_MAX]
            return
        try:
            messages.send(self._connection, message)
        except BlockingIOError:
            self._outbox.append(message)
            self._poll.modify(self._connection, select.POLLIN | select.POLLOUT)
        except OSError:
            return  # `_receive` will notice the end

    def _send_optional(self, message: bytes) -> None:
        if not self._outbox:
            self._send(message)

    def _flush(self) -> None:
        waiting, self._outbox = self._outbox, []
        if self._connection is not None:
            self._poll.modify(self._connection, select.POLLIN)
        for message in waiting:
            self._send(message)

    def _leave(self) -> None:
        for path in (
            f"{self._place.directory}/{self._place.slot}{SOCKET_SUFFIX}",
            f"{self._place.outputs}/{self._place.slot}",
        ):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        try:
            self._confinement.leave()
        except OSError as error:
            print(f"event=group_left_behind slot={self._place.slot} error={error!r}", file=sys.stderr)


def listen_at(directory: str, name: str) -> socket.socket:
    """Make a listening socket of that name; OSError if that fails."""
    at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        listener.bind(f"/proc/self/fd/{at}/{name}")  # a socket's path may not be longer than 107 bytes
        listener.listen(4)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    finally:
        os.close(at)
    return listener


def _wake_pipe() -> int:
    """Make a pipe that becomes readable whenever a child ends: signals wake the poll without a race."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _woken)
    return reader


def _woken(_number: int, _frame: object) -> None:
    """Ignore the signal: the wake-up itself travels through the pipe."""


def run(place: Place, listener: socket.socket) -> None:
    """Run a shepherd to its end. The caller has just been forked and ends after this."""
    processes.become_subreaper()
    signal.signal(signal.SIGXCPU, signal.SIG_IGN)  # see start.BEARABLE
    try:
        shepherd = Shepherd(place, listener)
    except FileNotFoundError as error:  # the agent is being shut down, and its control groups are gone
        print(f"event=shepherd_not_begun slot={place.slot} missing={error.filename}", file=sys.stderr)
        return
    shepherd.run()
