"""Tasks of a job on its hosts, run through this host's agent: their data, signals and exits in one loop.

Used by blaunch and lavarun. Invariants: what tasks write is passed on in the order it came, whole lines when there are
several tasks; a reader that is slow makes the tasks wait and never grows this process; signals overtake input that
nobody reads; when this process ends, however it ends, the agents kill what it started.
"""

import os
import select
import signal

from lavactl.connection import CREDIT_PORTION, Connection, LostError
from lavactl.errors import CommandError, OutputClosedError
from lavactl.io import encode
from lavactl.messages import TaskInput, TaskOutput, TaskStart
from protos import frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import BinaryIO

    from lavactl.io import Io

RUN = "/lava.local/Run"

# What a task gets when this process gets it. STOP, TSTP and CONT reach a job's tasks through their own agents.
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP)
# The tasks did not heed so many requests to end: leave, and let the agents kill them.
ENDING_SIGNALS_MAX = 3

# Input on its way to a task that it has not read; the agent holds twice as much before it makes us wait.
INPUT_AHEAD_MAX = 512 << 10
INPUT_CHUNK = 64 << 10
# Messages of the window that input leaves free, for signals and a rank's PMI answers.
WINDOW_RESERVE = 16
# More unwritten output than this, and the agent is not listened to until some of it is gone.
OUTPUT_WAITING_MAX = 1 << 20
LINE_MAX = 64 << 10
# A pipe that poll calls writable takes so much without blocking.
PIPE_WRITE = 4096

# Of the caller's environment, what means nothing to a shell elsewhere.
_OWN_VARIABLES = (b"PWD=", b"OLDPWD=", b"SHLVL=", b"_=")


class JobKey:
    """The job this process belongs to, and the hosts of its allocation, one entry for each slot."""

    def __init__(self, job: int, index: int, attempt: int, slots: list[str]) -> None:
        self.job = job
        self.index = index
        self.attempt = attempt
        self.slots = slots

    @property
    def hosts(self) -> list[str]:
        """Each host once, in the order of the allocation."""
        return list(dict.fromkeys(self.slots))


def job_around(io: "Io", command: str) -> JobKey:
    """The job whose process we are.

    Raises:
        CommandError: we are in none.
    """
    numbers = []
    for variable, default in (("LSB_JOBID", ""), ("LSB_JOBINDEX", "0")):
        text = io.environ.get(variable, default)
        if not (text.isascii() and text.isdigit()):
            raise CommandError(f"{command}: this command works only inside a job: {variable} is {text or 'not set'}.")
        numbers.append(int(text))
    slots = slots_now(io) or slots_of(io.environ.get("LSB_MCPU_HOSTS", "")) or io.environ.get("LSB_HOSTS", "").split()
    if not slots:
        raise CommandError(f"{command}: the hosts of the job are not known: LSB_MCPU_HOSTS is not set.")
    return JobKey(numbers[0], numbers[1], attempt_of(io.environ.get("LAVA_JOB_KEY", ""), numbers), slots)


def attempt_of(key: str, numbers: list[int]) -> int:
    """The attempt in JOB.INDEX.ATTEMPT, when it is of this job; else 0, which means the newest."""
    job, _, rest = key.partition(".")
    index, _, attempt = rest.partition(".")
    return int(attempt) if [job, index] == [str(number) for number in numbers] and attempt.isdecimal() else 0


def slots_now(io: "Io") -> list[str]:
    """Hosts slot by slot of a resizable job, from its host file: its variables are those of its start."""
    path = io.environ.get("LSB_DJOB_HOSTFILE", "") if io.environ.get("LSB_RESIZABLE") == "Y" else ""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().split()
    except OSError:
        return []


def slots_of(text: str) -> list[str]:
    """Hosts slot by slot from LSB_MCPU_HOSTS ("n001 2 n002 1"); empty when it is not of that form."""
    words = text.split()
    slots: list[str] = []
    for host, count in zip(words[::2], words[1::2], strict=False):
        if not (count.isascii() and count.isdigit()):
            return []
        slots += [host] * int(count)
    return slots if len(words) % 2 == 0 else []


def exit_code(status: int) -> int:
    """What a shell would call this raw wait status."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


class Task:
    """One task as its caller knows it."""

    def __init__(self, number: int, host: str) -> None:
        self.number = number  # from 0, in the order of starting
        self.host = host
        self.call = 0
        self.started = False
        self.ended = False
        self.code = 0  # once ended
        self.error = ""  # why it could not be started, or was lost
        self.status: int | None = None  # raw wait status, None when it is not known
        self.input_left = 0  # bytes sent and not yet taken
        self.input_sent = 0
        self.owed = 0
        self.window = frames.WINDOW - 1
        self.backlog: list[TaskInput] = []
        self.lines = {1: bytearray(), 2: bytearray()}


class Outlet:
    """Standard output or error: takes bytes at once and writes them as the reader lets it."""

    def __init__(self, stream: "BinaryIO | None") -> None:
        self._stream = stream
        self._waiting = bytearray()
        self.descriptor = -1
        self._chunk = PIPE_WRITE
        if stream is not None and (descriptor := descriptor_of(stream)) is not None:
            import stat

            stream.flush()
            self.descriptor = descriptor
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                self._chunk = 1 << 20

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, data: bytes) -> None:
        """Take bytes; those for a stream with no descriptor are written now, those for none at all are dropped."""
        if self.descriptor >= 0:
            self._waiting += data
        elif self._stream is not None:
            self._stream.write(data)

    def push(self) -> None:
        """Write one piece; the descriptor is ready.

        Raises:
            OutputClosedError: the reader has gone.
            CommandError: it cannot be written.
        """
        try:
            del self._waiting[: os.write(self.descriptor, memoryview(self._waiting)[: self._chunk])]
        except BlockingIOError:
            return
        except BrokenPipeError:
            raise OutputClosedError from None
        except OSError as error:
            raise CommandError(f"Cannot write the output: {error.strerror}.") from None


class Tasks:
    """Starts tasks and stays with them. ``on_end`` and ``on_pmi`` are told what happens and may signal tasks.

    Args:
        by_line: there are several tasks, so that their output is mixed by whole lines.
    """

    def __init__(self, io: "Io", connection: Connection, job: JobKey, *, by_line: bool) -> None:
        self.job = job
        self.tasks: list[Task] = []
        self.on_end: Callable[[Task], None] = lambda task: None
        self.on_pmi: Callable[[Task, bytes], None] = lambda task, data: None
        self.deadline: float | None = None  # by io.monotonic: leave then, whatever still runs
        self._io = io
        self._connection = connection
        self._by_line = by_line
        self._by_call: dict[int, Task] = {}
        self._outlets = {1: Outlet(io.stdout), 2: Outlet(io.stderr)}
        self._input_task: Task | None = None
        self._input = -1
        self._ending_signals = 0
        self._left = 0  # signal number we left by

    def start(self, host: str, start: TaskStart) -> Task:
        """Ask for a task on a host; ``start`` says what, the job is filled in."""
        task = Task(len(self.tasks), host)
        self.tasks.append(task)
        start.host = host
        start.key.job, start.key.index, start.key.attempt = self.job.job, self.job.index, self.job.attempt
        task.call = self._connection.start(RUN, TaskInput(start=start).SerializeToString(), more=True)
        self._by_call[task.call] = task
        return task

    def feed(self, task: Task) -> None:
        """This task gets our standard input."""
        try:
            descriptor = descriptor_of(self._io.stdin)
        except CommandError:  # it is closed
            descriptor = None
        if descriptor is None:
            self.send(task, TaskInput(end_of_input=True))
        else:
            self._input_task, self._input = task, descriptor

    def send(self, task: Task, message: TaskInput) -> None:
        """Tell a task something, as soon as the window allows."""
        if task.ended:
            return
        if task.window <= 0:
            task.backlog.append(message)
            return
        task.window -= 1
        self._connection.send(task.call, message.SerializeToString())

    def signal(self, number: int) -> None:
        """Send a signal to every task that has not ended."""
        for task in self._by_call.values():
            self.send(task, TaskInput(signal=number))

    def note(self, text: str) -> None:
        """One line on standard error, in turn with what the tasks write there."""
        self._outlets[2].put(encode(text + "\n"))

    def run(self) -> int:
        """Until every task has ended and its output is written; the signal that made us leave before, or 0.

        Raises:
            LostError: this host's agent has gone. OutputClosedError, CommandError: the output cannot be written.
        """
        with Signals() as signals:
            while self._by_call and not self._left:
                self._turn(signals)
        while any(self._outlets.values()):
            self._write_ready(select.poll(), None)
        return self._left

    def _turn(self, signals: "Signals") -> None:
        poll = select.poll()
        poll.register(signals.descriptor, select.POLLIN)
        timeout_ms = None
        if self.deadline is not None:
            timeout_ms = max(0, int((self.deadline - self._io.monotonic()) * 1000) + 1)
        if max(map(len, self._outlets.values())) < OUTPUT_WAITING_MAX:
            poll.register(self._connection.fileno(), select.POLLIN)
            if self._connection.has_frame():
                timeout_ms = 0
        if self._may_read_input():
            poll.register(self._input, select.POLLIN)
        ready = self._write_ready(poll, timeout_ms)
        for number in signals.taken() if signals.descriptor in ready else ():
            self._signalled(number)
        if self._connection.fileno() in ready:
            self._handle(*self._connection.receive(None))
        while self._connection.has_frame() and max(map(len, self._outlets.values())) < OUTPUT_WAITING_MAX:
            self._handle(*self._connection.receive(None))
        if self._input >= 0 and self._input in ready:
            self._read_input()
        if self.deadline is not None and self._io.monotonic() >= self.deadline:
            self._left = signal.SIGTERM

    def _write_ready(self, poll: "select.poll", timeout_ms: int | None) -> set[int]:
        """Wait for what is registered and for outlets that have something; write; the descriptors that are ready."""
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
        if task is None or self._input < 0 or not task.started:
            return False
        return task.input_left < INPUT_AHEAD_MAX and task.window > WINDOW_RESERVE

    def _read_input(self) -> None:
        task = self._input_task
        assert task is not None, "only read for a task"
        try:
            data = os.read(self._input, INPUT_CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # a terminal that went away has no more to say
        if not data:
            self._input = -1
            self.send(task, TaskInput(end_of_input=True))
            return
        task.input_sent += len(data)
        task.input_left += len(data)
        self.send(task, TaskInput(data=data))

    def _signalled(self, number: int) -> None:
        self._ending_signals += number in ENDING
        if self._ending_signals >= ENDING_SIGNALS_MAX:
            self._left = number
        else:
            self.signal(number)

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
                if task.owed >= CREDIT_PORTION and not task.ended:
                    self._connection.credit(call, task.owed)
                    task.owed = 0
            case frames.CREDIT:
                task.window += int.from_bytes(payload[:4], "little")
                while task.backlog and task.window > 0:
                    self.send(task, task.backlog.pop(0))
            case frames.END:
                self._over(task, *frames.unpack_end(payload))

    def _said(self, task: Task, output: TaskOutput) -> None:
        if output.out:
            self._pass_on(task, 1, output.out)
        if output.err:
            self._pass_on(task, 2, output.err)
        if output.pmi:
            self.on_pmi(task, output.pmi)
        if output.taken:
            task.input_left = task.input_sent - output.taken
        if output.started:
            task.started = True
        if output.error:
            task.error = output.error
        if output.ended:
            task.status = output.status

    def _over(self, task: Task, status: int, text: str) -> None:
        """The call is over, so is the task; its status came before, or it is not known."""
        del self._by_call[task.call]
        task.ended = True
        for stream in (1, 2):
            self._outlets[stream].put(bytes(task.lines[stream]))
        if task.status is not None:
            task.code = exit_code(task.status)
        else:
            task.code = 255
            task.error = task.error or text or f"the agent ended the task without a reason (status {status})"
        if self._input_task is task:
            self._input = -1
        self.on_end(task)

    def _pass_on(self, task: Task, stream: int, data: bytes) -> None:
        if not self._by_line:
            self._outlets[stream].put(data)
            return
        partial = task.lines[stream]
        partial += data
        end = len(partial) if len(partial) > LINE_MAX else partial.rfind(b"\n") + 1
        if end:
            self._outlets[stream].put(bytes(partial[:end]))
            del partial[:end]


class Signals:
    """Turns the forwarded signals into something poll can wait for, while it is entered."""

    def __enter__(self) -> "Signals":
        self.descriptor, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before = {number: signal.signal(number, self._nothing) for number in FORWARDED if self._wanted(number)}
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self.descriptor)
        os.close(self._write)

    def taken(self) -> list[int]:
        """Signals that came since the last time."""
        try:
            return [number for number in os.read(self.descriptor, 512) if number in self._before]
        except BlockingIOError:
            return []

    @staticmethod
    def _wanted(number: int) -> bool:
        """What our starter made us ignore (nohup, a shell's background) stays ignored."""
        return signal.getsignal(number) is not signal.SIG_IGN

    @staticmethod
    def _nothing(number: int, frame: "FrameType | None") -> None:
        """Only the wake-up matters."""


def descriptor_of(stream: "BinaryIO") -> int | None:
    """The descriptor behind a stream; None for one that lives in memory."""
    import io

    try:
        return stream.fileno()
    except io.UnsupportedOperation:
        return None


def carried_environment(io: "Io") -> list[bytes]:
    """Our environment for a task elsewhere; its host's agent leaves out what belongs to hosts."""
    return [entry for entry in io.raw_environ if not entry.startswith(_OWN_VARIABLES)]


def connect(io: "Io", command: str) -> Connection:
    """The connection to this host's agent.

    Raises:
        CommandError: there is none.
    """
    from lavactl.settings import socket_path

    path = socket_path(io.environ)
    try:
        return Connection(path)
    except OSError as error:
        raise CommandError(f"{command}: the agent of this host does not answer at {path}: {error.strerror}.") from None
