"""What agent and shepherd say to each other: one marshalled tuple a message, over a SOCK_SEQPACKET socket.

Marshal, because it is in the interpreter itself and costs a microsecond; both ends are the same user and every
message begins with its kind. An agent talks to shepherds of other versions that it finds (decision 0014): kinds and
fields keep their numbers and places, new fields come last and have a default, and are read with `fields_of`. A message
too long for the socket travels as a file in memory. Descriptors ride along as SCM_RIGHTS.
"""

import array
import marshal
import os
import socket
from typing import Any, NamedTuple, TypeVar

PROTOCOL = 4
KEEPS_TASKS = 2  # the protocol from which on a shepherd knows RUN_TASK
ANSWERS = 3  # and PING
NAMES_HOSTS = 4  # and the hosts in COUNTED
INLINE_MAX = 60_000  # bytes of one message on the socket; longer ones go by memfd
DESCRIPTORS_MAX = 8
# Plain numbers: joining enum members anew costs more than the call they are for.
SEND_FLAGS = int(socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
RECEIVE_FLAGS = int(socket.MSG_CMSG_CLOEXEC)
FORMAT = 4  # marshal's, readable by every Python since 3.4

Key = tuple[int, int, int]  # job, index, attempt
Message = tuple[Any, ...]
Fields = TypeVar("Fields", "Status", "Finish")

# Agent to shepherd. Every message but RETIRE goes on with the key.
HOLD = 1  # spec number, spec bytes or None when sent before, forget other specs, launch now, rotate the log
LAUNCH = 2
TASK = 3  # serial, argv, cwd, environment
SIGNAL = 4  # signal (0: the terminate sequence), reason, task serial (0: the whole job), causes of a suspension
RELEASE = 5  # why: empty, or TAKEN_DOWN
BY_FILE = 6  # the message is in the descriptor that comes with it
RETIRE = 7  # exit when idle
LIMITS = 8  # version, run limit in seconds, deadline, memory limit in MiB
COUNT = 10  # say USED now
COUNTED = 11  # the answer to COUNT_OTHERS: (host, fields of a Used) of those that said it, the others, a limit reached,
# then the job's hosts as its report names them, and those that it had given up
RUN_TASK = 9  # token, then the fields of a kept.Order; the descriptor is the task's own connection
PING = 12  # answered at once with PONG

TAKEN_DOWN = "taken down"  # the host ends all its jobs

# Shepherd to agent. STATUS opens each connection and bears a key, or None when idle.
STATUS = 16  # the fields of a Status
STAGED = 17
REFUSED = 18  # reason: the host's fault, nothing was started
STARTED = 19  # process id, time, output, error descriptor
FINISHED = 20  # then the rest of a Finish
RELEASED = 21  # the fields of a Used
TASK_STARTED = 22  # serial, process id (0: could not), why not
TASK_ENDED = 23  # serial, wait status
USAGE = 24  # cpu_s, memory, memory_max, swap, pids, process groups, threads, the fields of a Used
USED = 25  # the fields of a Used, the limit that was reached here or empty
COUNT_OTHERS = 26  # what have the job's other hosts used? Its report waits for COUNTED, for a while
LIMIT_REACHED = 27  # reason: a limit that holds for each host, reached where the job's command does not run
PONG = 28

# On the connection of a kept task, without a key. Both ways:
DATA = 40  # stream, place of the first byte, bytes
# Agent to shepherd:
END_OF_INPUT = 41
GOT = 42  # stream, place: all before it has arrived
DONE = 43  # the end has been heard
GONE = 44  # its client has ended
# Shepherd to agent:
TASK_RUNS = 48  # process id, places up to which input, PMI input and signals were taken
NOT_THERE = 49  # why it cannot be started or attached to
TAKEN = 50  # stream, place
TASK_OVER = 51  # wait status; all output went before

# In the exit log only: a process of the attempt is about to be started.
STARTING = 32


class Program(NamedTuple):
    """What to execute. ``text`` is what /bin/sh gets where the program cannot be executed by itself; empty: nothing."""

    path: str
    argv: tuple[str, ...]
    text: str = ""


class Companion(NamedTuple):
    """A task that is started at launch: one of a role whose command runs once for each task."""

    task: int
    program: Program
    environment: dict[bytes, bytes]


class JobSetup(NamedTuple):
    """All that a shepherd must know of a job on this host.

    The same for every element of an array. Paths may hold %J and %I.
    """

    user: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    environment: dict[bytes, bytes]
    name: str
    cwd: str
    program: Program | None  # None: the command does not run on this host
    companions: tuple[Companion, ...]
    input: str
    output: str  # empty: a file of the spool
    error: str  # empty: joins output
    output_overwrite: bool
    error_overwrite: bool
    output_dir: str
    umask: int
    nice: int
    rlimits: tuple[tuple[str, int], ...]
    memory_limit_mib: int  # 0: none
    run_limit_s: float  # 0: none
    deadline: float  # seconds since the epoch, 0: none
    terminate_interval_s: float
    usage_interval_s: float
    pre_exec: str
    post_exec: str
    report: tuple[Any, ...] | None  # fields of a report.Heading; None: no job report
    cpus: tuple[int, ...] = ()  # every process of the job is bound to these; empty: to none
    nodes: tuple[int, ...] = ()  # memory nodes, where the job says how it is bound to them
    memory_policy: str = ""  # localonly, localprefer
    # The MPS control program, the directory for its attempts' directories, the devices; empty: no MPS
    mps: tuple[str, ...] = ()
    controls: tuple[tuple[str, int, str], ...] = ()  # the queue's: kind, signal (0: none), command
    lease_s: float = 0.0  # the attempt is ended when the host has not heard the master for so long; 0: it is not
    is_wide: bool = False  # it has, or may get, other hosts
    processes_max: int = 0  # processes and threads of the job on this host; 0: no bound
    kept_output_mib: int = 8  # of what goes to no file
    denied_devices: tuple[str, ...] = ()  # GPUs of others on this host, as MAJOR:MINOR
    own_devices: tuple[str, ...] = ()

    def pack(self) -> bytes:
        """As bytes for a HOLD message."""
        companions = tuple((one.task, tuple(one.program), one.environment) for one in self.companions)
        program = None if self.program is None else tuple(self.program)
        return marshal.dumps(tuple(self._replace(program=program, companions=companions)), FORMAT)  # type: ignore[arg-type]


def unpack_setup(data: bytes) -> JobSetup:
    """The opposite of `JobSetup.pack`."""
    setup = JobSetup._make(marshal.loads(data))
    companions = tuple(Companion(task, Program._make(program), env) for task, program, env in setup.companions)
    program = None if setup.program is None else Program._make(setup.program)
    return setup._replace(program=program, companions=companions)


class Status(NamedTuple):
    """What a shepherd holds: message STATUS without its kind."""

    key: Key | None
    protocol: int
    pid: int  # its own
    launched: bool = False
    job_pid: int = 0
    job_started: float = 0.0
    output: int = -1  # descriptors of the job's files, -1: none
    error: int = -1


def fields_of(kind: type[Fields], message: Message) -> Fields:
    """A tuple from a message of any version: fields it lacks have their defaults, those not known here are left out."""
    return kind(*message[: len(kind._fields)])


class Used(NamedTuple):
    """What an attempt has used on one host from its beginning there, or on several."""

    cpu_s: float = 0.0
    user_s: float = 0.0  # of that in user mode
    system_s: float = 0.0
    memory_mib_max: int = 0
    memory_mib_mean: float = 0.0
    swap_mib_max: int = 0
    processes_max: int = 0
    threads_max: int = 0
    seconds: float = 0.0  # for how long it was measured

    def plus(self, other: "Used") -> "Used":
        """On both hosts. The largest of each is taken for the same moment: the sum is the most there can have been."""
        sums = [mine + others for mine, others in zip(self[:-1], other[:-1], strict=True)]
        return Used._make([*sums, self.seconds])


class Finish(NamedTuple):
    """The end of an attempt on this host: message FINISHED without its kind, and the body of an exit record.

    The figures are of this host; ``others`` has those of the attempt's other hosts as far as they were told,
    ``missing`` the names of the rest. A record of an earlier version ends before ``user_s``.
    """

    job: int
    element: int  # of the array, 0 if it is none
    attempt: int
    status: int  # raw wait status
    time: float
    cpu_s: float
    memory_mib_max: int
    memory_mib_mean: float
    processes_max: int
    reason: str
    detail: str
    pid: int
    started: float  # 0: never
    released: bool  # nothing of the attempt is left
    user_s: float = 0.0
    system_s: float = 0.0
    swap_mib_max: int = 0
    threads_max: int = 0
    seconds: float = 0.0
    others: tuple[tuple[str, tuple[float, ...]], ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def used(self) -> Used:
        """On this host."""
        return Used(
            self.cpu_s, self.user_s, self.system_s, self.memory_mib_max, self.memory_mib_mean, self.swap_mib_max,
            self.processes_max, self.threads_max, self.seconds,
        )  # fmt: skip

    @property
    def whole(self) -> Used:
        """On all hosts that are known."""
        total = self.used
        for _, fields in self.others:
            total = total.plus(Used(*fields))  # type: ignore[arg-type]
        return total

    @property
    def key(self) -> Key:
        """(job, index, attempt)"""
        return (self.job, self.element, self.attempt)


def pack(*fields: Any) -> bytes:
    """One message or record; the first field is its kind."""
    return marshal.dumps(fields, FORMAT)


def unpack(data: bytes | memoryview) -> Message:
    """The fields of a message.

    Raises:
        ValueError, EOFError, TypeError: not a message.
    """
    message = marshal.loads(data)
    if not isinstance(message, tuple):
        raise TypeError("not a message")
    return message


def send(sock: socket.socket, data: bytes, descriptors: tuple[int, ...] = ()) -> None:
    """Send a packed message without waiting; BlockingIOError when the other side does not read."""
    if len(data) > INLINE_MAX:
        spilled = os.memfd_create("message", os.MFD_CLOEXEC)
        try:
            write_all(spilled, data)
            _send_with(sock, pack(BY_FILE), (spilled, *descriptors))
        finally:
            os.close(spilled)
    elif descriptors:
        _send_with(sock, data, descriptors)
    else:
        sock.send(data, SEND_FLAGS)


def _send_with(sock: socket.socket, data: bytes, descriptors: tuple[int, ...]) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    sock.sendmsg([data], rights, SEND_FLAGS)


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, however many calls it takes."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


class Receiver:
    """Reads messages into one buffer of its own."""

    def __init__(self) -> None:
        self._buffer = bytearray(INLINE_MAX + 1)
        self._view = memoryview(self._buffer)
        self._ancillary = socket.CMSG_SPACE(4 * (DESCRIPTORS_MAX + 1))

    def receive(self, sock: socket.socket) -> tuple[Message, list[int]] | None:
        """The next message and its descriptors (close-on-exec), or None at the end of the connection.

        Raises:
            OSError, ValueError, EOFError, TypeError: the connection is of no more use.
        """
        try:
            size, ancillary, _, _ = sock.recvmsg_into([self._view], self._ancillary, RECEIVE_FLAGS)
        except ConnectionResetError:
            # Said once when the peer died with unread data; what it had sent before is still to be read.
            size, ancillary, _, _ = sock.recvmsg_into([self._view], self._ancillary, RECEIVE_FLAGS)
        if not size:
            return None
        message = unpack(self._view[:size])
        descriptors = _descriptors(ancillary) if ancillary else []
        if message[0] == BY_FILE:
            message = _read_file(descriptors.pop(0))
        return message, descriptors


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    found = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return list(found)


def _read_file(descriptor: int) -> Message:
    try:
        size = os.fstat(descriptor).st_size
        parts, offset = [], 0
        while offset < size:
            part = os.pread(descriptor, size - offset, offset)
            parts.append(part)
            offset += len(part)
        return unpack(b"".join(parts))
    finally:
        os.close(descriptor)
