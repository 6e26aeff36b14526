"""Protocol between agent and shepherd: one marshalled tuple a message, over a SOCK_SEQPACKET socket.

Marshal, because it is in the interpreter itself and costs a microsecond; both ends are the same user and every message
begins with its kind. An agent talks to shepherds of other versions that it finds (decision 0014): kinds and fields keep
their numbers and places, new fields come last and have a default, and are read with `fields_of`. A message too long for
the socket travels as a file in memory. Descriptors are sent as SCM_RIGHTS.
"""

import array
import marshal
import os
import socket
from typing import Any, NamedTuple, TypeVar

PROTOCOL = 12
KEEPS_TASKS = 2  # the first protocol with RUN_TASK
ANSWERS = 3  # with PING
NAMES_HOSTS = 4  # with hosts in COUNTED
RUNS_TASKS = 5  # with START_TASKS
GIVES_NOTICE = 6  # with event and notice in SIGNAL, NOTIFY and ASK_TIME
TELLS_GPUS = 7  # with the use of GPUs in COUNTED
HAS_TERMINALS = 8  # with the size of a terminal in RUN_TASK, and WINDOW
MAKES_CHECKPOINTS = 9  # with CHECKPOINT
CHANGES_PERIODS = 10  # with the period of checkpoints in LIMITS
CHANGES_FILES = 11  # with the CPU limit and the output files in LIMITS
HOLDS_TASKS = 12  # with runs without a program in START_TASKS, and the runs of what is started in TASK and RUN_TASK
INLINE_MAX = 60_000  # bytes of one message on the socket; longer ones go by memfd
DESCRIPTORS_MAX = 8
# Plain numbers: combining enum members costs more than the call they are for.
SEND_FLAGS = int(socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
RECEIVE_FLAGS = int(socket.MSG_CMSG_CLOEXEC)
FORMAT = 4  # marshal's, readable by every Python since 3.4

Key = tuple[int, int, int]  # job, index, attempt
Message = tuple[Any, ...]
Fields = TypeVar("Fields", "Status", "Finish", "RunOrder", "RunState", "Notice", "ChangedLimits")

# Agent to shepherd. Every message but RETIRE continues with the key.
HOLD = 1  # spec number, spec bytes or None when sent before, forget other specs, launch now, rotate the log
LAUNCH = 2
TASK = 3  # serial, argv, cwd, environment, (role, index, run) of each of which one is to have it
SIGNAL = 4  # signal (0: the terminate sequence), reason, task serial (0: the whole job), causes of a suspension,
# event of the notice before it and its seconds
RELEASE = 5  # why: empty, or TAKEN_DOWN
BY_FILE = 6  # the message is in the descriptor sent with it
RETIRE = 7  # exit when idle
LIMITS = 8  # the fields of a ChangedLimits
COUNT = 10  # request for USED now
COUNTED = 11  # answer to COUNT_OTHERS: (host, fields of a Used) of each that answered, the others, a limit reached,
# then the job's hosts as its report names them, those that it has released, and its report's text about GPUs
RUN_TASK = 9  # token, then the fields of a kept.Order; the descriptor is the task's own connection
PING = 12  # answered at once with PONG
REVOKE = 34  # seconds until all that is left is killed, and until KILL follows TERM; negative: as before after all
# Of a job of tasks:
START_TASKS = 13  # the fields of a RunOrder for each
STOP_TASKS = 14  # (role, index, run) of each, reason
SIGNAL_TASKS = 15  # signal, (role, index, run) of each

NOTIFY = 60  # event, reason, time of what is announced (0: unknown)
ASK_TIME = 61  # answered with TIME_LEFT
CHECKPOINT = 70  # number of the request (0: the newest answers again), forced, the job ends with it
LOOK = 56  # request for LOOKED now; an older shepherd does not answer

# An interactive job's streams, and the token by which its client finds them. No other task has a token of this length.
PIPES, TERMINAL = "pipes", "terminal"
OWN = b"job"

TAKEN_DOWN = "taken down"  # the host ends all its jobs

# Shepherd to agent. STATUS opens each connection and carries a key, or None when idle.
STATUS = 16  # the fields of a Status
STAGED = 17
REFUSED = 18  # the fields of a NotStarted: the host's fault, nothing was started
STARTED = 19  # process id, time, output, error descriptor
FINISHED = 20  # then the rest of a Finish
RELEASED = 21  # the fields of a Used
TASK_STARTED = 22  # serial, process id (0 on failure), the error
TASK_ENDED = 23  # serial, wait status
USAGE = 24  # cpu_s, memory, memory_max, swap, pids, process groups, threads, the fields of a Used
USED = 25  # the fields of a Used, the limit that was reached here or empty
COUNT_OTHERS = 26  # query of the usage on the job's other hosts; the job report waits for COUNTED, for a while
LIMIT_REACHED = 27  # reason: a per-host limit, reached where the job's command does not run
PONG = 28
LOOKED = 57  # CPU seconds until now, process ids
POSTED = 30  # wait status of the post-execution commands, 0 if all succeeded, and time of their end; after FINISHED
TASKS = 29  # the fields of a RunState for each task of a job of tasks with news
NOTICE = 62  # the fields of a Notice
CHECKPOINTED = 71  # number of the request (0: none), begin, end, why it failed or empty, the job ends with it, and the
# action that it was made for (SUSPEND, TERMINATE, WARNING), or empty
TIME_LEFT = 63  # seconds until the run limit and until the deadline (-1: none), seconds that count for the run limit

# On the connection of a kept task, without a key. Both ways:
DATA = 40  # stream, offset of the first byte, bytes
# Agent to shepherd:
END_OF_INPUT = 41
GOT = 42  # stream, offset: all before it has arrived
DONE = 43  # the end has been received
GONE = 44  # its client has left
WINDOW = 45  # lines and columns of the client's terminal
# Shepherd to agent:
TASK_RUNS = 48  # process id, offsets up to which input, PMI input and signals were taken
NOT_THERE = 49  # why it cannot be started or attached to
TAKEN = 50  # stream, offset
TASK_OVER = 51  # wait status; after all output

# In the exit log only: a process of the attempt is about to be started.
STARTING = 32


class Program(NamedTuple):
    """Program to execute. ``text`` goes to /bin/sh if the program itself cannot be executed; empty for no fallback."""

    path: str
    argv: tuple[str, ...]
    text: str = ""


class Companion(NamedTuple):
    """Task started at launch: one of a role whose command runs once for each task."""

    task: int
    program: Program
    environment: dict[bytes, bytes]


class RunOrder(NamedTuple):
    """Start of a task of a job of tasks. A program without a slash is searched for in PATH; one without a path is none:
    the task has what is started in its place."""

    role: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which has no use on these
    run: int
    role_name: str
    program: Program
    environment: dict[bytes, bytes]  # over the job's own
    cwd: str = ""  # empty: the job's
    memory_limit_mib: int = 0  # 0: none
    run_limit_s: float = 0.0  # 0: none

    def pack(self) -> tuple[Any, ...]:
        """Return the fields for START_TASKS."""
        return tuple(self._replace(program=tuple(self.program)))  # type: ignore[arg-type]

    @staticmethod
    def of(fields: tuple[Any, ...]) -> "RunOrder":
        """Return the order with these fields, of any version."""
        order = fields_of(RunOrder, fields)
        return order._replace(program=Program._make(order.program))


class RunState(NamedTuple):
    """Newest state of a task of a job of tasks: a run that was started, or could not be."""

    role: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which has no use on these
    run: int
    pid: int = 0
    started: float = 0.0  # 0: never
    ended: float = 0.0  # 0: it runs
    status: int = 0  # raw wait status
    reason: str = ""
    detail: str = ""


class OutputFiles(NamedTuple):
    """Names of the files in which a job's output and errors are at its end, as in `JobSetup`."""

    output: str
    error: str  # empty: errors join the output
    output_overwrite: bool = False
    error_overwrite: bool = False


class ChangedLimits(NamedTuple):
    """Limits and files of a running job that replace those it was staged with."""

    version: int
    run_limit_s: float
    deadline: float
    memory_limit_mib: int
    period_s: float | None = None  # of checkpoints; None: as it was staged
    cpu_limit_s: int | None = None  # of each process, 0: none; None: as it was staged
    files: tuple[Any, ...] | None = None  # the fields of an OutputFiles; None: as it was staged


class Notice(NamedTuple):
    """Notice that a job was given: what happens, why and when."""

    number: int  # of the attempt's notices on this host, from 1
    event: str  # preempt, requeue, shrink, suspend, terminate, run-limit, deadline, window, load, host, withdrawn
    reason: str  # a sentence without its full stop
    time: float  # of the notice
    at: float  # of what it announces; 0: unknown


def notice_path(directory: str, key: Key) -> str:
    """Return the path of an attempt's notice file."""
    return f"{directory}/{'-'.join(map(str, key))}.notice"


class GpuDaemon(NamedTuple):
    """Daemon by which the job's processes share its GPUs. ``base``: the directory for its attempts' directories.

    A shepherd of an earlier version takes the first three fields, of NVIDIA's MPS; others begin with it only.
    """

    program: str
    base: str
    devices: str
    label: str
    visible: str  # the variable for ``devices``
    arguments: tuple[str, ...]
    directories: tuple[tuple[str, str], ...]  # the variable of each, and its name


# What is known of the post-execution commands of an ended job, in the numbers of agents.proto.
POST_NONE, POST_AWAITED, POST_DONE, POST_ERR = 0, 1, 2, 3
# Whose a pre- or post-execution command is: the queue's on each host or on the first one, or the job's.
OF_HOST, OF_QUEUE, OF_JOB = "host", "queue", "job"
OF_RESTART = "restart"  # as the job's, of a job that goes on from a checkpoint


class AroundJob(NamedTuple):
    """Commands of the queue before and after the job on this host, and the limits of all such commands.

    ``host_pre`` and ``host_post`` are for every host of the job, ``pre`` and ``post`` for the lead host.
    """

    pre: str = ""
    post: str = ""
    host_pre: str = ""
    host_post: str = ""
    user: str = ""  # whose processes the queue's commands are; empty: the job's user's
    uid: int = 0
    gid: int = 0
    groups: tuple[int, ...] = ()
    home: str = ""
    pre_limit_s: float = 0.0  # of one command; 0: none
    post_limit_s: float = 0.0
    includes_post: bool = False  # the job ends with its post-execution commands, not before them
    requeued_codes: tuple[int, ...] = ()  # exit codes after which the job is pending again
    requeues_max: int = -1  # attempts after which no code has that effect; -1: no bound
    own_post_limit_s: float = 0.0  # of the job's own post-execution command; 0: none
    variables: tuple[bytes, ...] = ()  # names in the job's environment that ``user`` may have: lava set them
    profile_host_pre: str = ""  # of the application profile, inside those of the queue
    profile_host_post: str = ""
    success_codes: tuple[int, ...] = ()  # exit codes besides 0 that its report calls success


class CheckpointSetup(NamedTuple):
    """Checkpoints of a job; without a directory it has none."""

    directory: str = ""  # absolute: the files of each job are in a directory of its own there
    programs: str = ""  # directory of echkpnt.METHOD and erestart.METHOD
    method: str = ""
    period_s: float = 0.0  # between two that are made without a request; 0: none are
    first_s: float = 0.0  # from the start to the first of these; 0: the period
    prefix: str = ""  # before the command line with which the job goes on after a restart
    source: str = ""  # name of the directory, beside the job's own, whose checkpoint becomes its own; empty: none
    force: bool = False  # of that restart


def checkpoint_path(setup: CheckpointSetup, key: Key) -> str:
    """Return the directory with the checkpoint of a job, or of an element of an array."""
    job, index, _ = key
    return f"{setup.directory}/{job}[{index}]" if index else f"{setup.directory}/{job}"


# Words for the limits of all processes of a job on a host together, by their names in a job's spec; and all limits of
# a host that end the whole job, whichever host reaches them.
TERMS_OF_TOTALS = {"swap": "TERM_SWAP", "nproc": "TERM_PROCESSLIMIT", "threads": "TERM_THREADLIMIT"}
LIMITS_OF_HOST = ("TERM_MEMLIMIT", *TERMS_OF_TOTALS.values())


class JobSetup(NamedTuple):
    """Everything a shepherd needs to know of a job on this host.

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
    program: Program | None  # None if the command does not run on this host
    companions: tuple[Companion, ...]
    input: str
    output: str  # empty for a file of the spool
    error: str  # empty to join output
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
    report: tuple[Any, ...] | None  # fields of a report.Heading; None for no job report
    cpus: tuple[int, ...] = ()  # CPU binding of every process of the job; empty for none
    nodes: tuple[int, ...] = ()  # memory nodes, if the job requests a memory binding
    memory_policy: str = ""  # localonly, localprefer
    gpu_daemon: GpuDaemon | None = None
    controls: tuple[tuple[str, int, str, bool], ...] = ()  # of the queue: kind, then the fields of a Control
    lease_s: float = 0.0  # the attempt is ended if the host has not heard from the master for this long; 0 for never
    is_wide: bool = False  # the job has, or may get, other hosts
    processes_max: int = 0  # processes and threads of the job on this host; 0 for no bound
    kept_output_mib: int = 8  # of output without a file
    denied_devices: tuple[str, ...] = ()  # GPUs of others on this host, as MAJOR:MINOR
    own_devices: tuple[str, ...] = ()
    role_names: tuple[str, ...] = ()  # of a job of tasks, whose processes come by START_TASKS
    is_lead: bool = False  # of a job of tasks: this is the lead host
    private_files: str = ""  # directory for the attempts' files that appear at fixed paths; empty for none
    notices: str = ""  # directory of the attempts' notice files; empty for none
    warning_time_s: float = 0.0  # between the notice of a limit and the limit; 0: no notice
    warning_action: tuple[int, str, bool] = (0, "", False)  # of notices: the fields of a Control
    has_gpus: bool = False  # there is a report, with a part about GPUs that the agent writes
    slurm_base: int = -1  # of a job in Slurm's words: what its elements' indices exceed their numbers by; else -1
    interactive: str = ""  # its client has the job's streams: PIPES, or TERMINAL; empty: a batch job
    patience_s: float = 0.0  # of an interactive job: time that it waits for its client
    around: AroundJob = AroundJob()
    totals: tuple[tuple[str, int], ...] = ()  # limits of all processes together: swap (bytes), nproc, threads
    checkpoint: CheckpointSetup = CheckpointSetup()
    needs_cwd: bool = True  # False: a job of tasks that all have directories of their own

    def pack(self) -> bytes:
        """Pack for a HOLD message."""
        companions = tuple((one.task, tuple(one.program), one.environment) for one in self.companions)
        program = None if self.program is None else tuple(self.program)
        daemon = tuple(self.gpu_daemon or ())
        fields = self._replace(
            program=program,  # type: ignore[arg-type]
            companions=companions,  # type: ignore[arg-type]
            gpu_daemon=daemon,  # type: ignore[arg-type]
            around=tuple(self.around),  # type: ignore[arg-type]
            checkpoint=tuple(self.checkpoint),  # type: ignore[arg-type]
            warning_action=tuple(self.warning_action),  # type: ignore[arg-type]
        )
        return marshal.dumps(tuple(fields), FORMAT)


def unpack_setup(data: bytes) -> JobSetup:
    """Unpack the bytes of `JobSetup.pack`."""
    setup = JobSetup._make(marshal.loads(data))
    companions = tuple(Companion(task, Program._make(program), env) for task, program, env in setup.companions)
    program = None if setup.program is None else Program._make(setup.program)
    daemon = GpuDaemon._make(setup.gpu_daemon) if setup.gpu_daemon else None
    around, checkpoint = AroundJob(*setup.around), CheckpointSetup(*setup.checkpoint)
    return setup._replace(
        program=program, companions=companions, gpu_daemon=daemon, around=around, checkpoint=checkpoint
    )


class NotStarted(NamedTuple):
    """Reason for which nothing of an attempt was started here: a fault of the host, or a pre-execution command's."""

    reason: str
    pre_exec: str = ""  # whose pre-execution command failed, if one did
    pre_exec_code: int = 0  # its exit code; 0: it was killed, or was not started
    lacking: str = ""  # what the job needs and this host lacks: a directory, a program of the site
    status: int = 0  # wait status, and reason, of the job's end if no host has it
    term: str = ""


class Status(NamedTuple):
    """State of a shepherd: message STATUS without its kind."""

    key: Key | None
    protocol: int
    pid: int  # the shepherd's own
    launched: bool = False
    job_pid: int = 0
    job_started: float = 0.0
    output: int = -1  # descriptors of the job's files, -1 for none
    error: int = -1
    tasks: tuple[tuple[Any, ...], ...] = ()  # of a job of tasks: the fields of a RunState for each task


def fields_of(kind: type[Fields], message: Message) -> Fields:
    """Build a tuple from a message of any version: missing fields get their defaults, unknown ones are left out."""
    return kind(*message[: len(kind._fields)])


class Used(NamedTuple):
    """Usage of an attempt on one host since its start there, or on several."""

    cpu_s: float = 0.0
    user_s: float = 0.0  # of it in user mode
    system_s: float = 0.0
    memory_mib_max: int = 0
    memory_mib_mean: float = 0.0
    swap_mib_max: int = 0
    processes_max: int = 0
    threads_max: int = 0
    seconds: float = 0.0  # length of the measurement

    def plus(self, other: "Used") -> "Used":
        """Add the usage of another host. Peaks are taken for simultaneous: the sum is an upper bound."""
        sums = [mine + others for mine, others in zip(self[:-1], other[:-1], strict=True)]
        return Used._make([*sums, self.seconds])


class Finish(NamedTuple):
    """End of an attempt on this host: message FINISHED without its kind, and the body of an exit record.

    The figures are of this host; ``others`` has those of the attempt's other hosts that answered, ``missing`` the names
    of the rest. A record of an earlier version ends before ``user_s``.
    """

    job: int
    element: int  # of the array, 0 for none
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
    started: float  # 0 for never
    released: bool  # True if nothing of the attempt is left
    user_s: float = 0.0
    system_s: float = 0.0
    swap_mib_max: int = 0
    threads_max: int = 0
    seconds: float = 0.0
    others: tuple[tuple[str, tuple[float, ...]], ...] = ()
    missing: tuple[str, ...] = ()
    post: int = 0  # of the post-execution commands: 0 none, then as in agents.proto
    posted_at: float = 0.0

    def with_post(self, posted: tuple[int, float] | None) -> "Finish":
        """Return the end with what is known of the post-execution commands, now that their shepherd is gone."""
        if posted is not None:
            return self._replace(post=POST_ERR if posted[0] else POST_DONE, posted_at=posted[1])
        return self._replace(post=POST_ERR) if self.post == POST_AWAITED else self

    @property
    def used(self) -> Used:
        """Usage on this host."""
        return Used(
            self.cpu_s, self.user_s, self.system_s, self.memory_mib_max, self.memory_mib_mean, self.swap_mib_max,
            self.processes_max, self.threads_max, self.seconds,
        )  # fmt: skip

    @property
    def whole(self) -> Used:
        """Usage on all hosts that answered."""
        total = self.used
        for _, fields in self.others:
            total = total.plus(Used(*fields))  # type: ignore[arg-type]
        return total

    @property
    def key(self) -> Key:
        """Key of the attempt: (job, index, attempt)."""
        return (self.job, self.element, self.attempt)


def pack(*fields: Any) -> bytes:
    """Pack one message or record; the first field is its kind."""
    return marshal.dumps(fields, FORMAT)


def unpack(data: bytes | memoryview) -> Message:
    """Return the fields of a message.

    Raises:
        ValueError, EOFError, TypeError: not a message.
    """
    message = marshal.loads(data)
    if not isinstance(message, tuple):
        raise TypeError("not a message")
    return message


def send(sock: socket.socket, data: bytes, descriptors: tuple[int, ...] = ()) -> None:
    """Send a packed message without waiting; BlockingIOError if the socket is full."""
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
    """Write everything, in as many calls as needed."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


class Receiver:
    """Reader of messages into one buffer of its own."""

    def __init__(self) -> None:
        self._buffer = bytearray(INLINE_MAX + 1)
        self._view = memoryview(self._buffer)
        self._ancillary = socket.CMSG_SPACE(4 * (DESCRIPTORS_MAX + 1))

    def receive(self, sock: socket.socket) -> tuple[Message, list[int]] | None:
        """Return the next message and its descriptors (close-on-exec), or None at the end of the connection.

        Raises:
            OSError, ValueError, EOFError, TypeError: the connection cannot be used any more.
        """
        try:
            size, ancillary, _, _ = sock.recvmsg_into([self._view], self._ancillary, RECEIVE_FLAGS)
        except ConnectionResetError:
            # Raised once if the peer closed with unread data; its earlier messages can still be read.
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
