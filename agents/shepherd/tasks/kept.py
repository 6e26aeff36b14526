"""Kept tasks: processes beside a job that outlive the agent through which their client talks to them.

The shepherd owns a task's streams and the agent only relays them, over a socket of its own for each task. A client that
names a task by its token attaches to it and resumes where it left off. Invariants: a token starts one process, however
often it is sent; output and the exit status are kept until they are acknowledged; a task without a client is ended,
after the patience it was started with while an agent is connected, at once if its client is known to have left: TERM,
or HUP on a terminal, and KILL for all left ``KILL_AFTER_S`` later.
"""

import contextlib
import itertools
import os
import select
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from agents.shepherd import messages
from agents.shepherd.clock import NEVER
from agents.shepherd.messages import Message, pack, unpack
from agents.shepherd.process.descriptors import aside, raise_limit
from agents.shepherd.tasks import terminal
from agents.shepherd.tasks.streams import PMI, SIGNALS, STDERR, STDIN, STDOUT, Input, Output, StreamError

# Time after a task's end in which processes it left behind may still write.
LINGER_S = 1.0
KILL_AFTER_S = 2.0
SIGNAL_MAX = 64
TERM = int(signal.SIGTERM)
LOST = 9  # wait status of a task with an unknown end: it was killed
TOKENS_REMEMBERED = 4096  # of tasks that are over
# Serials of tasks whose streams the agent owns begin at 1.
FIRST_SERIAL = 1 << 32

Watch = Callable[[int, int, Callable[[int], None]], None]


class Order(NamedTuple):
    """Task to run or resume: message RUN_TASK without key and token."""

    connection: int  # raised with each connection of the client
    resume: bool  # it was started before
    gone: bool  # its client has left
    got: tuple[int, int, int]  # bytes received of output, error and PMI
    patience_s: float
    argv: tuple[bytes, ...]
    cwd: str
    environment: dict[bytes, bytes]
    no_input: bool
    pmi: bool
    umask: int  # -1 for the job's
    window: tuple[int, ...] = ()  # lines and columns of its terminal; empty for pipes
    runs: tuple[tuple[int, int, int], ...] = ()  # (role, index, run): one of these is to have it; empty: no task has


class Host(NamedTuple):
    """Interface of the attempt to its kept tasks."""

    spawn: Callable[[int, Order, list[int]], int]  # serial, order, descriptors -> process id; raises Refusal
    signal: Callable[[int, int], None]  # number, serial
    watch: Watch  # descriptor, poll events (0: none), callback for those that occur
    has_agent: Callable[[], bool]
    owner: tuple[int, int]  # user and group
    null: int
    hangup: int = TERM  # of a task without a terminal whose client has left


class Refusal(Exception):
    """Refusal of a task; the text is one sentence."""


class KeptTask:
    """One task: its streams, its end, and the connection to its client, if there is one.

    ``changed`` is called with it when `KeptTasks.tick` may have work on it.
    """

    def __init__(self, token: bytes, serial: int, host: Host, changed: "Callable[[KeptTask], None]") -> None:
        self.token = token
        self.serial = serial
        self.connection = -1
        self.pid = 0
        self.status: int | None = None
        self.until = self.linger_at = self.kill_at = NEVER
        self.is_gone = False  # its client has left
        self.is_done = False  # its end has been received
        self._host = host
        self._changed = changed
        self._patience_s = 0.0
        self._hangup = host.hangup
        self._outputs: dict[int, Output] = {}
        self._inputs: dict[int, Input] = {}
        self._calls: list[tuple[Output | Input, Callable[[int], None]]] = []
        self._signals = 0
        self._channel: socket.socket | None = None
        self._waiting: list[bytes] = []
        self._end_sent = False

    # -- life

    def start(self, order: Order) -> None:
        """Open the streams and start the process.

        Raises:
            Refusal: it cannot be started.
        """
        self._patience_s = order.patience_s
        theirs: list[int] = []
        try:
            self._open_streams(order, theirs)
        except OSError as error:
            for descriptor in theirs:
                os.close(descriptor)
            self.close()
            what = "terminal" if order.window else "pipes"
            raise Refusal(f"The task's {what} cannot be opened: {error.strerror}.") from None
        try:
            self.pid = self._host.spawn(self.serial, order, theirs)
        except BaseException:
            self.close()
            raise
        self._calls = [(one, self._reader(one)) for one in self._outputs.values()]
        self._calls += [(one, self._writer(stream)) for stream, one in self._inputs.items()]
        self._follow()

    def _open_streams(self, order: Order, theirs: list[int]) -> None:
        """Open the streams; the task's ends are added to ``theirs``, in the order of their numbers."""
        if order.window:
            theirs += self._open_terminal(order.window)
            return
        theirs.append(os.dup(self._host.null) if order.no_input else self._give())
        theirs.append(self._take(STDOUT))
        theirs.append(self._take(STDERR))
        if order.pmi:
            theirs.append(self._open_pmi())

    def _open_terminal(self, window: tuple[int, ...]) -> tuple[int, int, int]:
        ours, theirs = terminal.open_pair()
        self._hangup = int(signal.SIGHUP)
        self._outputs[STDOUT] = Output(aside(ours), self._unwatch)
        self._inputs[STDIN] = terminal.TerminalInput(aside(os.dup(self._outputs[STDOUT].descriptor)), self._unwatch)
        self._owned(theirs)
        terminal.resize(theirs, *window[:2])
        return theirs, os.dup(theirs), os.dup(theirs)

    def _give(self) -> int:
        """Make the pipe to the task; return the task's end."""
        theirs, ours = os.pipe()
        self._inputs[STDIN] = Input(aside(ours), self._unwatch)
        return self._owned(theirs)

    def _take(self, stream: int) -> int:
        ours, theirs = os.pipe()
        self._outputs[stream] = Output(aside(ours), self._unwatch)
        return self._owned(theirs)

    def _open_pmi(self) -> int:
        ours, theirs = socket.socketpair()
        self._inputs[PMI] = Input(aside(os.dup(ours.fileno())), self._unwatch)
        self._outputs[PMI] = Output(aside(ours.detach()), self._unwatch)
        return theirs.detach()

    def _owned(self, descriptor: int) -> int:
        """Let the user open the pipe by name (/dev/stdout); it belongs to root otherwise."""
        if os.geteuid() == 0:
            with contextlib.suppress(OSError):  # in a user namespace the id may not exist
                os.fchown(descriptor, *self._host.owner)
        return descriptor

    def ended(self, status: int, now: float) -> None:
        """Note the end of the first process."""
        self.status = status
        self.linger_at = now + LINGER_S
        self._changed(self)
        self._push()

    def linger_over(self) -> None:
        """Stop waiting for output, even if other processes hold the pipes."""
        self.linger_at = NEVER
        for output in self._outputs.values():
            output.finish()
        self._push()

    def close(self) -> None:
        """Report the end, as far as that is possible at once, and close everything, since the job is over here."""
        if self.pid:
            self.status = LOST if self.status is None else self.status
            self.linger_over()
        self.detach()
        for stream in (*self._outputs.values(), *self._inputs.values()):
            stream.close()

    def end(self, now: float) -> None:
        """Ask the task to end after its client has left."""
        if self.is_gone:
            return
        self.is_gone = True
        self.until = NEVER
        if self.status is None:
            self._host.signal(self._hangup, self.serial)
            self._host.signal(int(signal.SIGCONT), self.serial)
            self.kill_at = now + KILL_AFTER_S
        self._changed(self)

    def kill(self) -> None:
        """Kill what is left of the task after it was asked to end."""
        self.kill_at = NEVER
        self._host.signal(int(signal.SIGKILL), self.serial)

    @property
    def is_over(self) -> bool:
        """True if nothing of it needs to be kept."""
        return self.is_done or (self.is_gone and self.status is not None and self.kill_at == NEVER)

    @property
    def next_at(self) -> float:
        """Monotonic time of its next work."""
        return 0.0 if self.is_over else min(self.until, self.linger_at, self.kill_at)

    # -- the client

    def attach(self, channel: socket.socket, connection: int, got: tuple[int, int, int]) -> None:
        """Resume with this connection, which has received ``got`` of each output; the previous one is closed.

        Raises:
            StreamError: the connection needs data that is no longer kept.
        """
        for stream, place in zip((STDOUT, STDERR, PMI), got, strict=True):
            if stream in self._outputs:
                self._outputs[stream].resume(place)
        self.detach()
        channel = socket.socket(fileno=aside(channel.detach()))
        channel.setblocking(False)
        self._channel, self.connection, self.until, self._end_sent = channel, connection, NEVER, False
        places = [self._inputs[stream].taken if stream in self._inputs else 0 for stream in (STDIN, PMI)]
        self._waiting = [pack(messages.TASK_RUNS, self.pid, *places, self._signals)]
        self._push()

    def detach(self) -> None:
        """Close the connection; the client may return."""
        if self._channel is not None:
            self._unwatch(self._channel.fileno())
            self._channel.close()
            self._channel = None
            self._waiting = []
            self.be_patient(time.monotonic())

    def be_patient(self, now: float) -> None:
        """Start the time within which the client must return."""
        if self._channel is None and not self.is_gone:
            self.until = now + self._patience_s
            self._changed(self)

    # -- streams

    def _unwatch(self, descriptor: int) -> None:
        self._host.watch(descriptor, 0, _ignore)

    def _follow(self) -> None:
        """Poll the descriptors that have work."""
        for one, call in self._calls:
            if one.is_open:
                self._host.watch(one.descriptor, one.events, call)
        if self._channel is not None:
            events = select.POLLIN | (select.POLLOUT if self._has_to_say else 0)
            self._host.watch(self._channel.fileno(), events, self._on_channel)

    @property
    def _has_to_say(self) -> bool:
        unsent = any(output.has_unsent for output in self._outputs.values())
        return bool(self._waiting) or unsent or (self._is_heard_out and not self._end_sent)

    @property
    def _is_heard_out(self) -> bool:
        return self.status is not None and all(output.is_sent for output in self._outputs.values())

    def _reader(self, output: Output) -> Callable[[int], None]:
        def read(_events: int) -> None:
            if output.wants_more:
                output.read()
            self._push()

        return read

    def _writer(self, stream: int) -> Callable[[int], None]:
        def write(_events: int) -> None:
            self._change(stream, self._inputs[stream].write)
            self._push()

        return write

    def _change(self, stream: int, act: Callable[[], None]) -> None:
        """Change an input, and report the bytes the task has taken."""
        before = self._inputs[stream].taken
        act()
        if self._inputs[stream].taken != before:
            self._waiting.append(pack(messages.TAKEN, stream, self._inputs[stream].taken))

    def _push(self) -> None:
        """Send as much as the connection accepts now."""
        if self._channel is None:
            self._waiting.clear()
        else:
            try:
                self._send_all(self._channel)
            except BlockingIOError:
                pass  # it is polled until it accepts more
            except OSError:
                self.detach()
        self._follow()

    def _send_all(self, channel: socket.socket) -> None:
        while self._waiting:
            messages.send(channel, self._waiting[0])
            del self._waiting[0]
        some = True
        while some:  # a piece of each in turn: none waits for the end of another
            some = False
            for stream, output in self._outputs.items():
                if piece := output.unsent():
                    messages.send(channel, pack(messages.DATA, stream, output.sent, piece))
                    output.sent += len(piece)
                    some = True
        if self._is_heard_out and not self._end_sent:
            messages.send(channel, pack(messages.TASK_OVER, self.status))
            self._end_sent = True

    def _on_channel(self, events: int) -> None:
        if events & ~select.POLLOUT:
            self._hear()
        self._push()

    def _hear(self) -> None:
        if self._channel is None:
            return
        try:
            data = self._channel.recv(messages.INLINE_MAX + 1)
            if data:
                self._take_message(unpack(data))
            else:
                self.detach()
        except BlockingIOError:
            return
        except ConnectionResetError:  # it closed with unread data, which is kept
            self.detach()
        except (OSError, ValueError, EOFError, TypeError, KeyError, StreamError) as error:
            print(f"event=task_connection_broken serial={self.serial} error={error!r}", file=sys.stderr)
            self.detach()

    def _take_message(self, message: Message) -> None:
        kind = message[0]
        if kind == messages.DATA:
            self._take_input(*message[1:])
        elif kind == messages.GOT:
            self._outputs[message[1]].acknowledge(message[2])
        elif kind == messages.END_OF_INPUT and STDIN in self._inputs:
            self._change(STDIN, self._inputs[STDIN].end)
        elif kind == messages.WINDOW:
            self._resize(*message[1:3])
        elif kind == messages.GONE:
            self.end(time.monotonic())
        elif kind == messages.DONE and self.status is not None:
            self.is_done = True
            self._changed(self)

    def _resize(self, lines: int, columns: int) -> None:
        """Set the size of the terminal; without one, and after the task's end, it means nothing."""
        ours = self._inputs.get(STDIN)
        if isinstance(ours, terminal.TerminalInput) and ours.is_open:
            terminal.resize(ours.descriptor, lines, columns)

    def _take_input(self, stream: int, place: int, data: bytes) -> None:
        if stream == SIGNALS:
            for number in data[max(0, self._signals - place) :]:
                if 0 < number <= SIGNAL_MAX:
                    self._host.signal(number, self.serial)
            self._signals = max(self._signals, place + len(data))
            self._waiting.append(pack(messages.TAKEN, SIGNALS, self._signals))
        elif stream in self._inputs:
            self._change(stream, lambda: self._inputs[stream].accept(place, data))


def _ignore(_events: int) -> None:
    """Ignore events of a descriptor that is no longer polled."""


class KeptTasks:
    """Kept tasks of an attempt on this host, by token."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tasks: dict[bytes, KeptTask] = {}
        self._by_serial: dict[int, KeptTask] = {}
        self._over: deque[bytes] = deque(maxlen=TOKENS_REMEMBERED)
        self._changed: set[KeptTask] = set()  # those with timed work
        self._serials = itertools.count(FIRST_SERIAL)

    def __bool__(self) -> bool:
        return bool(self._tasks)

    def run(self, token: bytes, order: Order, channel: socket.socket) -> None:
        """Start the task of this token, or attach to it; on failure tell the connection why, and close it."""
        try:
            task = self._tasks.get(token)
            if task is None:
                task = self._begin(token, order)
            elif order.gone:
                task.end(time.monotonic())
                raise Refusal("The task is being ended.")
            elif order.connection <= task.connection:
                raise Refusal("The task has been attached to anew.")
            task.attach(channel, order.connection, order.got)
        except (Refusal, StreamError) as refusal:
            with contextlib.suppress(OSError):  # the client has left
                messages.send(channel, pack(messages.NOT_THERE, str(refusal)))
            channel.close()

    def _begin(self, token: bytes, order: Order) -> KeptTask:
        if token in self._over:
            raise Refusal("The task is over.")
        if order.gone:
            self._over.append(token)  # if its start is still on its way, it comes too late
        if order.gone or order.resume:
            raise Refusal("The task is not there any more.")
        if not self._tasks:
            raise_limit()
        return self.begin(token, order, self._host)

    def begin(self, token: bytes, order: Order, host: Host) -> KeptTask:
        """Start the task of this token before any client has come.

        Raises:
            Refusal: it cannot be started.
        """
        task = KeptTask(token, next(self._serials), host, self._changed.add)
        task.start(order)
        self._tasks[token] = self._by_serial[task.serial] = task
        return task

    def ended(self, serial: int, status: int) -> bool:
        """Note the end of a task's first process; return False if it is none of these."""
        task = self._by_serial.get(serial)
        if task is not None:
            task.ended(status, time.monotonic())
        return task is not None

    def agent_came(self) -> None:
        """Restart the patience of all tasks, since an agent is connected again."""
        for task in self._tasks.values():
            task.be_patient(time.monotonic())

    @property
    def next_at(self) -> float:
        """Monotonic time of the next `tick` with work."""
        return min((task.next_at for task in self._changed), default=NEVER)

    def tick(self, now: float) -> None:
        """Carry out due work, and forget tasks that are over."""
        for task in [task for task in self._changed if now >= task.next_at]:
            self._do_due(task, now)
        self._changed.difference_update([task for task in self._changed if task.next_at == NEVER])

    def _do_due(self, task: KeptTask, now: float) -> None:
        if now >= task.linger_at:
            task.linger_over()
        if now >= task.kill_at:
            task.kill()
        if now >= task.until:
            if self._host.has_agent():
                task.end(now)
            else:
                task.be_patient(now)
        if task.is_over:
            self._forget(task)

    def _forget(self, task: KeptTask) -> None:
        task.close()
        del self._tasks[task.token], self._by_serial[task.serial]
        self._changed.discard(task)
        self._over.append(task.token)

    def close(self) -> None:
        """Close all tasks, since the attempt is over here."""
        for task in list(self._tasks.values()):
            self._forget(task)
