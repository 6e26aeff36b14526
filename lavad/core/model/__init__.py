"""Values of the domain: keys, states, requests, hosts.

All are frozen. Records that change (jobs, attempts, hosts) are in ``state.records`` and are changed by ``apply`` alone.
Memory is in MiB, times are in seconds since the epoch.
"""

from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from lavad.core.model.rules.queues import QueueHosts
from lavad.core.model.task_rules import TaskRules


class JobState(IntEnum):
    """Job states: LSF's plus STAGING (shown as RUN). The numbers are those of the wire and of the store."""

    PEND = 1
    PSUSP = 2
    STAGING = 3
    RUN = 4
    USUSP = 5
    SSUSP = 6
    DONE = 7
    EXIT = 8
    UNKWN = 9
    ZOMBI = 10


class PostState(IntEnum):
    """Post-execution commands of an ended job: none or unknown, not ended yet, succeeded, failed. As on the wire."""

    NONE = 0
    AWAITED = 1
    DONE = 2
    ERR = 3


class Retry(NamedTuple):
    """Failures in a row of the pre-execution commands before a pending job, or its requeue by its exit value.

    ``whose`` command the last one was: job, queue, host; ``EXIT_VALUE``: no command failed. The job is not started
    before ``at``; 0: it may be, -1: it is held.
    """

    failures: int = 0
    whose: str = ""
    at: float = 0.0


NO_RETRY = Retry()
EXIT_VALUE = "exit value"  # in place of a command that failed: the job has asked for its requeue


PARTS = 1000  # amounts of resources are whole thousandths, so that exactly what was reserved is released

WAITING = frozenset({JobState.PEND, JobState.PSUSP})
HOLDING = frozenset({JobState.STAGING, JobState.RUN, JobState.USUSP, JobState.SSUSP, JobState.UNKWN, JobState.ZOMBI})
SUSPENDED = frozenset({JobState.USUSP, JobState.SSUSP})
FINAL = frozenset({JobState.DONE, JobState.EXIT})


class Key(NamedTuple):
    """Key of one dispatch of a job or array element. Index 0: not a job array. Attempts count from 1."""

    job: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which has no use on a key
    attempt: int

    def __str__(self) -> str:
        name = f"{self.job}[{self.index}]" if self.index else str(self.job)
        return f"{name}#{self.attempt}"


def serial_of(at: float, signal: int) -> int:
    """Serial number of a signal, by which an agent recognizes a repeated one; two signals of one instant differ."""
    return int(at * 1e6) * 100 + signal


class Launch(IntEnum):
    """Start of a role's command: once on the lead host, or once for each task.

    In a job of tasks FIRST is once, as its first task; HOST is once on each host with tasks of the role; NONE: its
    tasks only hold their slots, for ranks of other roles.
    """

    FIRST = 0
    EACH = 1
    HOST = 2
    NONE = 3


@dataclass(frozen=True, slots=True)
class RoleAsked:
    """One role as submitted."""

    tasks_min: int = 1
    tasks_max: int = 1
    slots_per_task: int = 1
    requirement: str = ""
    gpu: str | None = None  # argument of -gpu; None: not given
    launch: Launch = Launch.FIRST
    name: str = ""
    command: str = ""
    resizable: bool = False
    is_of_tasks: bool = False  # of a job of tasks, whose minimum may be 0
    spread: str = ""  # of a job of tasks: PACK, SPREAD, RACK; empty: as the requirement says
    spares: int = 0  # of a job of tasks: part of both numbers of tasks, idle until a host is lost
    ports: tuple[int, ...] = ()  # of a job of tasks: fixed ones, which its program names itself


PACK, SPREAD, RACK = "pack", "spread", "rack"  # few hosts; as many as there are tasks; one compute unit


@dataclass(frozen=True, slots=True)
class RoleRequest:
    """Request of one role. A job starts when every role's minimum fits, or not at all."""

    tasks_min: int = 1
    tasks_max: int = 1
    slots_per_task: int = 1
    memory_mib: int = 0  # reserved on each host with tasks: rusage[mem=]
    gpus: int = 0  # GPUs on each host, or for each task
    gpus_per_task: bool = False
    one_host: bool = False  # span[hosts=1]
    ptile: int = 0  # span[ptile=n]: tasks on each host, fewer on the last; -1: as many as the host has slots
    select: str = ""  # select[...] and the sections below: text as ``requirement`` prints it
    order: str = ""
    same: str = ""
    rusage: str = ""  # other reservations, and memory that is not a fixed amount on each host
    gpu: str = ""  # -gpu, if it says more than a number
    cu: str = ""
    affinity: str = ""
    ptile_by: tuple[tuple[str, int], ...] = ()  # span[ptile='n,type:m']: tasks on hosts of that type or model
    block: int = 0  # span[block=n]: tasks in groups of n
    stripe: int = 0  # span[stripe=n]: one task a host in turns, up to n on each; -1: no maximum
    launch: Launch = Launch.FIRST
    name: str = ""
    command: str = ""
    resizable: bool = False  # can be resized between its minimum and maximum while it runs
    spares: int = 0  # in a job of tasks: places of its minimum and maximum that stay idle until a host is lost

    # Requests no more than slots, memory, whole GPUs, a selection and a fixed ptile.
    is_basic: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_basic", self.has_only(_BASIC_ROLE) and self.ptile >= 0)

    def has_only(self, names: frozenset[str]) -> bool:
        """True if all fields except these have their default values."""
        return all([name in names or getattr(self, name) == default for name, default in _ROLE_DEFAULTS])


class Alternative(NamedTuple):
    """Alternative roles of a job, usable from ``delay_s`` after its submission."""

    roles: tuple[RoleRequest, ...]
    same: str = ""
    cu: str = ""
    delay_s: int = 0


# A fast path takes only requests that are equal to a minimal one but for these fields: one with a field that was added
# later takes the plain path, until its author has seen to it.
_ROLE_DEFAULTS = tuple((one.name, one.default) for one in fields(RoleRequest) if one.init)
_SLOTS_ROLE = frozenset({"tasks_min", "tasks_max", "gpus_per_task", "launch", "name", "command", "resizable"})
_TASK_ROLE = _SLOTS_ROLE | {"slots_per_task", "memory_mib", "gpus", "one_host", "ptile"}
_BASIC_ROLE = _TASK_ROLE | {"select"}


def _is_slots_only(role: RoleRequest) -> bool:
    return role.has_only(_SLOTS_ROLE | {"one_host"} if role.tasks_max == 1 else _SLOTS_ROLE)


def _is_even_split(role: RoleRequest) -> bool:
    is_whole = role.ptile > 0 and role.tasks_min == role.tasks_max and role.tasks_max % role.ptile == 0
    return is_whole and not (role.gpus or role.one_host)


class JobOptions(NamedTuple):
    """Options of a submission for the job as a whole: fields of a job's spec and of its request under the same names.

    They are passed on as one value, so that a further one needs no place on the way.
    """

    hosts: tuple[str, ...] = ()
    exclusive: bool = False
    reservation: str = ""
    service_class: str = ""


NO_OPTIONS = JobOptions()


@dataclass(frozen=True, slots=True)
class Request:
    """Request for placement. Equal requests are one object (interned), so that there are few buckets."""

    roles: tuple[RoleRequest, ...]
    hosts: tuple[str, ...] = ()  # -m: allowed hosts, groups and preferences as written; empty: any
    exclusive: bool = False
    same: str = ""  # of all roles together, after the terms of a compound requirement
    cu: str = ""
    alternatives: tuple[Alternative, ...] = ()
    reservation: str = ""  # -U: only in slots of this advance reservation, while it is active
    service_class: str = ""  # -sla: the pool that it draws on; empty: that of the first class it attaches to
    is_of_tasks: bool = False  # of a job of tasks: no fast path knows these
    # Set in the scheduler's own requests only: hosts of the queue, and exclusive resources that are not requested.
    queue_hosts: QueueHosts | None = None
    avoids: frozenset[str] = frozenset()
    slots_min: int = field(init=False, compare=False, repr=False)
    is_slots_only: bool = field(init=False, compare=False, repr=False)  # any free slots fit, on any hosts
    is_basic: bool = field(init=False, compare=False, repr=False)  # slots, memory and whole GPUs on selected hosts
    # Slots, memory and GPUs of a request of one task without other conditions; None for all others.
    task_size: tuple[int, int, int] | None = field(init=False, compare=False, repr=False)
    is_even_split: bool = field(
        init=False, compare=False, repr=False
    )  # equal parts of tasks on its hosts, without GPUs
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "slots_min", self._least())
        role = self.single_role
        is_slots_only = role is not None and _is_slots_only(role) and self._has_only(_SLOTS_REQUEST)
        object.__setattr__(self, "is_slots_only", is_slots_only)
        is_basic = all([one.is_basic for one in self.roles]) and self._has_only(_BASIC_REQUEST)
        is_first = any("!" in word for word in self.hosts)
        object.__setattr__(self, "is_basic", is_basic and not is_first)
        object.__setattr__(self, "task_size", self._task_size())
        object.__setattr__(self, "is_even_split", self.is_basic and role is not None and _is_even_split(role))
        rest = (
            self.same,
            self.cu,
            self.alternatives,
            self.queue_hosts,
            self.avoids,
            self.reservation,
            self.service_class,
        )
        object.__setattr__(self, "_hash", hash((self.roles, self.hosts, self.exclusive, rest)))

    def _least(self) -> int:
        choices = (self.roles, *(one.roles for one in self.alternatives))
        return min(sum(role.tasks_min * role.slots_per_task for role in roles) for roles in choices)

    def _has_only(self, names: frozenset[str]) -> bool:
        """True if all fields except these have their default values."""
        return all([name in names or getattr(self, name) == default for name, default in _REQUEST_DEFAULTS])

    def _task_size(self) -> tuple[int, int, int] | None:
        role = self.single_role
        if role is None or role.tasks_max != 1 or not (self.is_basic and self._has_only(_TASK_REQUEST)):
            return None
        return (role.slots_per_task, role.memory_mib, role.gpus) if role.has_only(_TASK_ROLE) else None

    def __hash__(self) -> int:
        return self._hash  # read at each start and end of a job

    @property
    def single_role(self) -> RoleRequest | None:
        """The only role; None if there are several."""
        return self.roles[0] if len(self.roles) == 1 else None

    @property
    def options(self) -> JobOptions:
        """Options of the submission."""
        return JobOptions(*[getattr(self, name) for name in JobOptions._fields])

    @property
    def has_host_preferences(self) -> bool:
        """True if some hosts are excluded or preferred, whatever they offer."""
        return bool(self.hosts or self.avoids) or self.queue_hosts is not None

    @property
    def slots_max(self) -> int:
        return sum(role.tasks_max * role.slots_per_task for role in self.roles)


_REQUEST_DEFAULTS = tuple((one.name, one.default) for one in fields(Request) if one.init)
_TASK_REQUEST = frozenset({"roles"})
_SLOTS_REQUEST = frozenset({"roles", "reservation", "service_class"})
_BASIC_REQUEST = frozenset({"roles", "hosts", "reservation", "service_class", "queue_hosts", "avoids"})


class CountKey:
    """Attributes by which a job is counted: queue, user, slots of its minimum size, run limit in seconds, job
    group, application profile, service class (-sla).

    Equal keys are mostly one object. Compared by identity: jobs are counted at each transition, and a tuple's hash
    takes longer than all the rest.
    """

    __slots__ = ("application", "job_group", "queue", "run_limit_s", "service_class", "slots", "user")

    def __init__(
        self,
        queue: str,
        user: str,
        slots: int,
        run_limit_s: int,
        job_group: str,
        application: str,
        service_class: str = "",
    ) -> None:
        self.queue = queue
        self.user = user
        self.slots = slots
        self.run_limit_s = run_limit_s
        self.job_group = job_group
        self.application = application
        self.service_class = service_class


_sort = lru_cache(maxsize=100_000)(CountKey)


@dataclass(frozen=True, slots=True)
class SpecialOptions:
    """Options that few jobs are submitted with; apart from ``Shared``, so that they cost the others nothing."""

    requeue_exit_values: str = ""  # -Q; empty: the queue's
    warning_time_s: float = 0.0  # -wt; 0: the queue's
    interactive: str = ""  # streams of the client: pipes, terminal, shell; empty: a batch job
    has_commands: bool = False  # -E or -Ep: commands before or after it
    has_copies: bool = False  # -f: files are copied before or after it
    checkpointable: bool = False  # -k
    migration_s: float | None = None  # -mig; None: the queue's
    checkpoint_period_s: float | None = None  # of -k; None: as its spec says, which an earlier version has not read
    success_exit_values: str = ""  # LSB_SUCCESS_EXIT_VALUES; empty: the queue's


NOTHING_SPECIAL = SpecialOptions()
special_options = lru_cache(maxsize=1024)(SpecialOptions)  # equal ones are mostly one object


@dataclass(frozen=True, slots=True)
class Shared:
    """Attributes that many jobs of one user have in common; interned, so that a pending job is small."""

    user: str
    uid: int
    gid: int
    queue: str
    project: str
    request: Request
    from_host: str = ""
    run_limit_s: int = 0
    memory_limit_mib: int = 0
    rerunnable: bool = False
    terminate_at: float = 0.0
    user_group: str = ""
    requirement: str = ""  # combined requirement of job and queue, as shown
    environment: str = ""  # hash of the stored environment that the jobs' own ones are differences from
    tasks: TaskRules | None = None  # of a job of tasks
    job_group: str = ""  # path of the job group (-g); empty: in none
    application: str = ""  # application profile (-app)
    special: SpecialOptions = NOTHING_SPECIAL
    sort: CountKey = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        more = (self.run_limit_s, self.job_group, self.application, self.request.service_class)
        sort = _sort(self.queue, self.user, self.request.slots_min, *more)
        object.__setattr__(self, "sort", sort)
        key = (self.user, self.queue, self.request, self.run_limit_s, self.project, self.user_group, self.requirement)
        object.__setattr__(self, "_hash", hash((*key, self.environment, self.job_group, self.application)))

    def __hash__(self) -> int:
        return self._hash  # by the fields in which jobs differ; read at each submission, start and end


def limits_of(shared: Shared) -> tuple[int, float, int, float | None]:
    """Limits enforced by hosts: run limit and deadline in seconds, memory in MiB, period of checkpoints; 0 is none."""
    return shared.run_limit_s, shared.terminate_at, shared.memory_limit_mib, shared.special.checkpoint_period_s


class OutputFiles(NamedTuple):
    """Names of a job's output files; without one for errors these join the output."""

    output: str
    error: str
    output_overwrite: bool
    error_overwrite: bool


class RunChange(NamedTuple):
    """Parameters that a running job was given besides those of `limits_of`; None: as it was started."""

    cpu_limit_s: int | None = None  # of each of its processes; 0: none
    files: OutputFiles | None = None  # those in which its output is at its end


AS_STARTED = RunChange()

TEXT_FIELDS = ("name", "command", "cwd", "submit_cwd", "input", "output", "error", "description")


def pack_text(
    name: str = "",
    command: str = "",
    cwd: str = "",
    submit_cwd: str = "",
    input: str = "",
    output: str = "",
    error: str = "",
    description: str = "",
) -> bytes:
    """Pack a job's texts into one bytes object: a tenth of the size of eight strings. Texts contain no NUL."""
    return "\0".join((name, command, cwd, submit_cwd, input, output, error, description)).encode(
        errors="surrogateescape"
    )


def unpack_text(text: bytes) -> dict[str, str]:
    """Unpack the texts by field name."""
    return dict(zip(TEXT_FIELDS, text.decode(errors="surrogateescape").split("\0"), strict=True))


class ResourceShare(NamedTuple):
    """Share of a site-defined resource, in PARTS of its unit; of an indexed one also the numbers of its devices.

    ``device_roles``: role of each device's tasks, as in HostShare.
    """

    name: str
    amount: int
    devices: tuple[int, ...] = ()
    device_roles: tuple[int, ...] = ()


class HostShare(NamedTuple):
    """One host's part of an allocation. A tuple, because each start makes some.

    ``gpu_memory_mib``: reserved memory of each GPU; empty if the GPUs are exclusive. ``gpu_roles``: number of the role
    that each GPU is for; empty if for all of them.
    """

    host: str
    slots: int
    memory_mib: int = 0
    gpus: tuple[int, ...] = ()
    tasks_by_role: tuple[int, ...] = ()
    resources: tuple[ResourceShare, ...] = ()
    gpu_memory_mib: tuple[int, ...] = ()
    cpus: tuple[tuple[int, ...], ...] = ()  # processors of each task, if bound
    cpus_idle: tuple[int, ...] = ()  # further processors closed to other jobs
    gpu_roles: tuple[int, ...] = ()


# Causes of a suspension.
BY_USER = ""
PREEMPTION = "preemption"  # its resources are lent to other jobs
LOAD = "load"  # one of its hosts is beyond a threshold
WINDOW = "window"  # its queue's run windows are closed
LOCK = "lock"  # one of its hosts is locked


@dataclass(frozen=True, slots=True)
class QueueWindow:
    """Present state of a queue's windows, and the time at which its run windows close."""

    may_dispatch: bool = True
    may_run: bool = True
    closes_at: float = float("inf")


Allocation = tuple[HostShare, ...]  # the lead host first


class Device(NamedTuple):
    """One GPU. ``peers`` has a bit for each GPU linked to it.

    ``slices``: of a MIG device the slices of its GPU instance, then of its compute instance; empty for a whole GPU.
    """

    model: str = ""
    memory_mib: int = 0
    numa: int = 0
    peers: int = 0
    slices: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class HostFacts:
    """Static facts of a host, reported by its agent. A login host has ``server`` False and never gets jobs."""

    name: str
    slots: int
    memory_mib: int = 0
    gpus: int = 0
    server: bool = True
    type: str = "X86_64"
    model: str = ""
    cpu_factor: float = 1.0
    cpus: int = 1
    swap_mib: int = 0
    tmp_mib: int = 0
    resources: frozenset[str] = frozenset()
    exclusive_resources: frozenset[str] = frozenset()  # for jobs that name one of them only
    boot_id: str = ""
    peer_address: str = ""
    gpu_model: str = ""
    gpu_driver: str = ""
    gpu_vendor: str = ""  # empty from agents of earlier versions, which have NVIDIA's devices
    devices: tuple[Device, ...] = ()
    cores: int = 0
    sockets: int = 1
    disks: int = 0
    topology: str = ""  # "cpu core socket numa" of each usable processor, joined by commas
    can_set_gpu_mode: bool = False
    has_mps: bool = False
    keeps_leases: bool = False  # the agent ends attempts whose lease has expired
    lacks_commands: bool = False  # the agent is of a version that runs no commands before and after jobs
    lacks_copies: bool = False  # it is of one that copies no files before and after jobs
    lacks_checkpoints: bool = False  # it is of one that makes no checkpoints


LOAD_INDICES = ("r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem")
