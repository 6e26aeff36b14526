"""Tasks of a job on its hosts, run through this host's agent: their data, signals and exits in one loop.

Used by blaunch and lavarun. Invariants: output of tasks is passed on in order of arrival, by whole lines if there are
several tasks; a slow reader blocks the tasks and never grows this process; signals overtake unread input; when this
process ends in any way, the agents kill the tasks it started. A broken connection, to this host's agent or from there
to another, is reopened and the tasks are resumed, since their shepherds keep them.
"""

import os
import select
import signal
import time

from lavactl.errors import CommandError
from lavactl.io import encode
from lavactl.settings import socket_path
from lavactl.tasks.task import INPUT_CHUNK, PAUSE_S, PMI, SIGNALS, STDERR, STDIN, STDOUT, Task
from lavactl.tasks.terminal_ends import FORWARDED, Outlet, Signals, descriptor_of
from lavactl.wire.connection import CREDIT_PORTION, Connection, LostError
from lavactl.wire.messages import TaskInput, TaskOutput, TaskStart
from protos import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from lavactl.io import Io
    from lavactl.tasks.surrounding_job import JobKey

RUN = "/lava.local/Run"

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP)
# After this many ignored requests to end, leave and let the agents kill the tasks.
ENDING_SIGNALS_MAX = 3

# Bytes of input sent ahead of a task's reading; its host buffers more before it blocks us.
INPUT_AHEAD_MAX = 512 << 10
# Messages of the window kept free of input, for signals and PMI answers.
WINDOW_RESERVE = 16
# With more unwritten output than this, frames of the agent are not read until some is written.
OUTPUT_WAITING_MAX = 1 << 20
LINE_MAX = 64 << 10

# Time to wait for an agent that is being restarted, before the first task; once tasks run, there is no limit.
CONNECT_S = 20.0
# Time during which the start of a task is repeated, when the agent of its host breaks off.
START_S = 10.0
AGAIN_FIRST_S, AGAIN_MAX_S = PAUSE_S, 1.0
# Statuses for which a repeated call would fail again.
FINAL = (
    *(frames.INVALID_ARGUMENT, frames.NOT_FOUND, frames.PERMISSION_DENIED, frames.UNIMPLEMENTED),
    frames.UNAUTHENTICATED,
)

# Variables of the caller's environment that mean nothing to a shell on another host.
_OWN_VARIABLES = (b"PWD=", b"OLDPWD=", b"SHLVL=", b"_=")


def exit_code(status: int) -> int:
    """Exit code as a shell derives it from this raw wait status."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


class Tasks:
    """Starts tasks and passes on their data until they end. ``on_end`` and ``on_pmi`` are callbacks that may signal
    tasks.

    Args:
        by_line: several tasks run, so their output is merged by whole lines.
        method: of this host's agent.
    """

    caught: tuple[int, ...] = FORWARDED

    def __init__(self, io: "Io", connection: Connection, job: "JobKey", *, by_line: bool, method: str = RUN) -> None:
        self.job = job
        self.tasks: list[Task] = []
        self.on_end: Callable[[Task], None] = lambda task: None
        self.on_pmi: Callable[[Task, bytes], None] = lambda task, data: None
        self.deadline: float | None = None  # by io.monotonic: leave then, even if tasks still run
        self._io = io
        self._connection: Connection | None = connection
        self._path = connection.path
        self._by_line = by_line
        self._method = method
        self._by_call: dict[int, Task] = {}
        self._apart: set[Task] = set()  # without a call: to be requested again
        self._retry_at = 0.0
        self._pause_s = AGAIN_FIRST_S
        self._outlets = {STDOUT: Outlet(io.stdout), STDERR: Outlet(io.stderr)}
        self._input_task: Task | None = None
        self._input = -1
        self._ending_signals = 0
        self._left = 0  # signal number by which we left

    def start(self, host: str, start: TaskStart, token: bytes = b"", size: tuple[int, int] = (0, 0)) -> Task:
        """Start a task on a host; ``start`` describes it, the job is filled in.

        Args:
            token: of a task that is there.
            size: lines and columns of its terminal, if it has one.
        """
        start.key.job, start.key.index, start.key.attempt = self.job.job, self.job.index, self.job.attempt
        task = Task(len(self.tasks), host, start, token)
        task.window_size = size
        self.tasks.append(task)
        self._open(task)
        return task

    def feed(self, task: Task) -> None:
        """Connect our standard input to this task."""
        try:
            descriptor = descriptor_of(self._io.stdin)
        except CommandError:  # standard input is closed
            descriptor = None
        if descriptor is None:
            self._tell(task, [task.end_of_input()])
        else:
            self._input_task, self._input = task, descriptor

    def answer(self, task: Task, data: bytes) -> None:
        """Send data to a rank's PMI descriptor."""
        self._tell(task, task.said(PMI, data))

    def signal(self, number: int) -> None:
        """Send a signal to every task that has not ended."""
        for task in self._unfinished():
            self._tell(task, task.said(SIGNALS, bytes([number])))

    def note(self, text: str) -> None:
        """Write one line to standard error, in order with the tasks' output there."""
        self._outlets[STDERR].put(encode(text + "\n"))

    def run(self) -> int:
        """Run until every task has ended and its output is written; the signal that made us leave early, or 0.

        Raises:
            LostError: this host's agent has gone, with tasks that do not outlive it.
            OutputClosedError, CommandError: the output cannot be written.
        """
        with Signals(self.caught) as signals:
            while (self._by_call or self._apart) and not self._left:
                self._turn(signals)
        while any(self._outlets.values()) and not self._drops_output():
            self._write_ready(select.poll(), None)
        return self._left

    def _drops_output(self) -> bool:
        """True if output that waits for its reader is dropped at the end."""
        return False

    def _unfinished(self) -> list[Task]:
        return [*self._by_call.values(), *self._apart]

    # -- one turn

    def _turn(self, signals: Signals) -> None:
        poll = select.poll()
        poll.register(signals.descriptor, select.POLLIN)
        timeout_ms = self._timeout_ms()
        connection = self._connection if self._has_room() else None
        if connection is not None:
            poll.register(connection.fileno(), select.POLLIN)
            if connection.has_frame():
                timeout_ms = 0
        if self._may_read_input():
            poll.register(self._input, select.POLLIN)
        ready = self._write_ready(poll, timeout_ms)
        for number in signals.taken():  # also of one that came just now: before the input that was typed after it
            self._signalled(number)
        if connection is not None and connection is self._connection:
            self._listen(connection, connection.fileno() in ready)
        if self._input >= 0 and self._input in ready:
            self._read_input()
        if self._apart:
            self._go_on_with_those_apart()
        if self.deadline is not None and self._io.monotonic() >= self.deadline:
            self._left = signal.SIGTERM

    def _timeout_ms(self) -> int | None:
        moments = [] if self.deadline is None else [self.deadline]
        if self._connection is None:
            moments.append(self._retry_at)
        else:
            moments += [task.retry_at for task in self._apart]
        if not moments:
            return None
        return max(0, int((min(moments) - self._io.monotonic()) * 1000) + 1)

    def _has_room(self) -> bool:
        return max(map(len, self._outlets.values())) < OUTPUT_WAITING_MAX

    def _listen(self, connection: Connection, is_ready: bool) -> None:
        try:
            if is_ready:
                self._handle(*connection.receive(None))
            while connection is self._connection and connection.has_frame() and self._has_room():
                self._handle(*connection.receive(None))
        except LostError as error:
            self._lose(error)

    def _write_ready(self, poll: "select.poll", timeout_ms: int | None) -> set[int]:
        """Poll the registered descriptors and outlets with output, and write; the set of ready descriptors."""
        for outlet in self._outlets.values():
            if outlet:
                poll.register(outlet.descriptor, select.POLLOUT)
        ready = {descriptor for descriptor, _ in poll.poll(timeout_ms)}
        for outlet in self._outlets.values():
            if outlet and outlet.descriptor in ready:
                outlet.push()
        return ready

    def _may_read_input(self) -> bool:
        task = self._input_task
        if task is None or self._input < 0 or not task.started or task.is_resuming or not task.call:
            return False
        return len(task.inputs[STDIN].waiting) < INPUT_AHEAD_MAX and task.window > WINDOW_RESERVE

    def _read_input(self) -> None:
        task = self._input_task
        assert task is not None, "only read for a task"
        try:
            data = os.read(self._input, INPUT_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # a terminal that hung up: end of input
        if data:
            self._tell(task, task.said(STDIN, data))
        else:
            self._input = -1
            self._tell(task, [task.end_of_input()])

    def _signalled(self, number: int) -> None:
        self._ending_signals += number in ENDING
        if self._ending_signals >= ENDING_SIGNALS_MAX:
            self._left = number
        else:
            self.signal(number)

    # -- connections

    def _open(self, task: Task) -> None:
        """Start or resume a task on the present connection; without one, put it off."""
        if self._connection is None:
            self._apart.add(task)
            return
        self._apart.discard(task)
        try:
            task.call = self._connection.start(self._method, task.opening().SerializeToString(), more=True)
            self._by_call[task.call] = task
        except LostError as error:
            self._apart.add(task)
            self._lose(error)

    def _lose(self, error: LostError) -> None:
        """Close the lost connection and schedule a retry, unless running tasks ended with it.

        Raises:
            LostError: tasks ended with it.
        """
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if any(task.started and not task.is_kept for task in self._by_call.values()):
            raise error
        calls, self._by_call = self._by_call, {}
        for task in calls.values():
            task.call = 0
            if task.status is None:
                self._apart.add(task)
            else:
                self._conclude(task, "")
        self._retry_at = self._io.monotonic() + self._pause_s
        self._pause_s = min(AGAIN_MAX_S, 2 * self._pause_s)

    def _go_on_with_those_apart(self) -> None:
        now = self._io.monotonic()
        if self._connection is None and now >= self._retry_at:
            try:
                self._connection = Connection(self._path)
            except OSError as error:
                self._lose(LostError(str(error)))
        if self._connection is not None:
            for task in sorted(self._apart, key=lambda one: one.number):
                if now >= task.retry_at:
                    self._open(task)

    def _broke_off(self, task: Task, status: int, text: str) -> bool:
        """Handle a call that ended before its task; True if the task is to be requested again."""
        now = self._io.monotonic()
        if status in FINAL or status == frames.OK or (task.started and not task.is_kept):
            return False
        task.lose(now)
        # For an unreachable host, this host's agent has already retried for long.
        is_out_of_reach = not task.started and not task.was_there and "cannot be reached" in text
        if is_out_of_reach or self._is_out_of_patience(task, now):
            return False
        task.retry_at = now + task.pause_s
        task.pause_s = min(AGAIN_MAX_S, 2 * task.pause_s)
        self._apart.add(task)
        return True

    def _is_out_of_patience(self, task: Task, now: float) -> bool:
        return task.lost_at is not None and now - task.lost_at >= self._patience(task)

    def _patience(self, task: Task) -> float:
        """Seconds that the agent of a task's host may be away."""
        return task.patience_s if task.started else START_S

    # -- messages

    def _tell(self, task: Task, messages: "Iterable[TaskInput]") -> None:
        """Send messages to a task as the window allows; without a connection they are sent on its resumption."""
        for message in messages:
            if task.call and not task.is_resuming and not task.ended:
                self._send(task, message)

    def _send(self, task: Task, message: TaskInput) -> None:
        if task.window <= 0:
            task.backlog.append(message)
            return
        task.window -= 1
        self._write(lambda connection: connection.send(task.call, message.SerializeToString()))

    def _write(self, act: "Callable[[Connection], None]") -> None:
        if self._connection is not None:
            try:
                act(self._connection)
            except LostError as error:
                self._lose(error)

    def _handle(self, call: int, kind: int, payload: bytes) -> None:
        task = self._by_call.get(call)
        if task is None:
            if kind == frames.END:
                raise LostError(frames.unpack_end(payload)[1])
            return
        match kind:
            case frames.MESSAGE:
                self._said(task, TaskOutput.FromString(payload))
                task.owed += 1
                if task.owed >= CREDIT_PORTION and task.call == call:
                    owed, task.owed = task.owed, 0
                    self._write(lambda connection: connection.credit(call, owed))
            case frames.CREDIT:
                task.window += int.from_bytes(payload[:4], "little")
                while task.backlog and task.window > 0:
                    self._send(task, task.backlog.pop(0))
                self._acknowledge(task)
            case frames.END:
                self._over(task, *frames.unpack_end(payload))

    def _said(self, task: Task, output: TaskOutput) -> None:
        if output.started:
            self._runs(task, output)
        task.inputs[STDIN].took(output.taken)
        task.inputs[PMI].took(output.taken_pmi)
        task.inputs[SIGNALS].took(output.taken_signals)
        if output.started and task.is_resuming:
            task.is_resuming = False
            self._tell(task, task.not_taken())
        if output.out:
            self._pass_on(task, STDOUT, task.came(STDOUT, output.offset, output.out))
        if output.err:
            self._pass_on(task, STDERR, task.came(STDERR, output.offset, output.err))
        if output.pmi and (pmi := task.came(PMI, output.offset, output.pmi)):
            self.on_pmi(task, pmi)
        if output.error:
            task.error = output.error
        if output.ended:
            task.status = output.status
            if task.is_kept:
                self._tell(task, [TaskInput(done=True)])
        else:
            self._acknowledge(task)

    def _runs(self, task: Task, output: TaskOutput) -> None:
        task.started, task.is_kept = True, output.kept
        task.patience_s, task.lost_at = output.patience_s, None
        self._pause_s = AGAIN_FIRST_S

    def _acknowledge(self, task: Task) -> None:
        if task.is_kept and task.window > 0 and (message := task.acknowledgement()) is not None:
            self._tell(task, [message])

    def _over(self, task: Task, status: int, text: str) -> None:
        """End a call, and its task unless only the connection to it was lost."""
        del self._by_call[task.call]
        task.call = 0
        if task.status is not None or task.error or not self._broke_off(task, status, text):
            self._conclude(task, text or f"the agent ended the task without a reason (status {status})")

    def _conclude(self, task: Task, text: str) -> None:
        """End a task; its exit status has come before, or is unknown."""
        task.ended = True
        for stream in (STDOUT, STDERR):
            self.deliver(task, stream, bytes(task.lines[stream]))
        if task.status is not None:
            task.code = exit_code(task.status)
        else:
            task.code = 255
            task.error = task.error or text
        if self._input_task is task:
            self._input = -1
        self.on_end(task)

    def _pass_on(self, task: Task, stream: int, data: bytes) -> None:
        if not self._by_line:
            self.deliver(task, stream, data)
            return
        partial = task.lines[stream]
        partial += data
        end = len(partial) if len(partial) > LINE_MAX else partial.rfind(b"\n") + 1
        if end:
            self.deliver(task, stream, bytes(partial[:end]))
            del partial[:end]

    def deliver(self, task: Task, stream: int, data: bytes) -> None:
        """Write output of a task, whole lines of it if there are several tasks."""
        self._outlets[stream].put(data)


def carried_environment(io: "Io") -> list[bytes]:
    """Our environment for a task on another host; its agent drops variables that belong to one host."""
    return [entry for entry in io.raw_environ if not entry.startswith(_OWN_VARIABLES)]


def places_of(hosts: list[str]) -> "Iterator[tuple[int, int]]":
    """(number among the tasks of its host, their count) for each task: the agent assigns GPUs by these."""
    on_host: dict[str, int] = {}
    for host in hosts:
        on_host[host] = on_host.get(host, 0) + 1
    seen = dict.fromkeys(on_host, 0)
    for host in hosts:
        seen[host] += 1
        yield seen[host], on_host[host]


def connect(io: "Io", command: str) -> Connection:
    """Connection to this host's agent; an agent that is being restarted is waited for.

    Raises:
        CommandError: no agent answers.
    """
    path = socket_path(io.environ)
    give_up_at = io.monotonic() + CONNECT_S
    while True:
        try:
            return Connection(path)
        except (FileNotFoundError, ConnectionRefusedError, BlockingIOError) as error:
            if io.monotonic() >= give_up_at:
                raise _no_agent(command, path, error) from None
        except OSError as error:
            raise _no_agent(command, path, error) from None
        time.sleep(AGAIN_FIRST_S)


def _no_agent(command: str, path: str, error: OSError) -> CommandError:
    return CommandError(f"{command}: the agent of this host does not answer at {path}: {error.strerror}.")
