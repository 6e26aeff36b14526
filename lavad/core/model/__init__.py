"""The values of the domain: keys, states, requests, hosts.

Everything here is frozen. The records that change (jobs, attempts, hosts in use) live in ``records.py`` and are
changed by ``Cluster.apply`` alone. Memory is in MiB, times in seconds since the epoch.
"""

from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from lavad.core.model.policy import QueueHosts


class JobState(IntEnum):
    """LSF's job states plus STAGING (shown as RUN); the numbers are those of the wire and of the store."""

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


WAITING = frozenset({JobState.PEND, JobState.PSUSP})
HOLDING = frozenset({JobState.STAGING, JobState.RUN, JobState.USUSP, JobState.SSUSP, JobState.UNKWN, JobState.ZOMBI})
SUSPENDED = frozenset({JobState.USUSP, JobState.SSUSP})
FINAL = frozenset({JobState.DONE, JobState.EXIT})


class Key(NamedTuple):
    """One dispatch of a job or array element. Index 0: not a job array. Attempts count from 1."""

    job: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody wants of a key
    attempt: int

    def __str__(self) -> str:
        name = f"{self.job}[{self.index}]" if self.index else str(self.job)
        return f"{name}#{self.attempt}"


def serial_of(at: float, signal: int) -> int:
    """A number for a signal, by which an agent knows one that it has had; two signals of one instant differ."""
    return int(at * 1e6) * 100 + signal


class Launch(IntEnum):
    """How a role's command is started: once on the lead host, or once for each task."""

    FIRST = 0
    EACH = 1


@dataclass(frozen=True, slots=True)
class RoleAsked:
    """One role as it was submitted."""

    tasks_min: int = 1
    tasks_max: int = 1
    slots_per_task: int = 1
    requirement: str = ""
    gpu: str | None = None  # the -gpu argument; None where it was not given
    launch: Launch = Launch.FIRST
    name: str = ""
    command: str = ""
    resizable: bool = False


@dataclass(frozen=True, slots=True)
class RoleRequest:
    """What one role of a job asks for; the gang starts when every role's minimum fits, or not at all."""

    tasks_min: int = 1
    tasks_max: int = 1
    slots_per_task: int = 1
    memory_mib: int = 0  # reserved on each host that gets tasks: rusage[mem=]
    gpus: int = 0  # devices on each host, or for each task
    gpus_per_task: bool = False
    one_host: bool = False  # span[hosts=1]
    ptile: int = 0  # span[ptile=n]: tasks on each host, the last may have fewer; -1: as many as it has slots
    select: str = ""  # select[...] and the sections below: text as ``requirement`` prints it
    order: str = ""
    same: str = ""
    rusage: str = ""  # what else is reserved, and memory that is not simply so much on each host
    gpu: str = ""  # -gpu, where it says more than a number
    cu: str = ""
    affinity: str = ""
    ptile_by: tuple[tuple[str, int], ...] = ()  # span[ptile='n,type:m']: tasks on hosts of that type or model
    block: int = 0  # span[block=n]: tasks come n at a time
    stripe: int = 0  # span[stripe=n]: one task a host, then the next, up to n on each; -1 without a bound
    launch: Launch = Launch.FIRST
    name: str = ""
    command: str = ""
    resizable: bool = False  # may grow up to its maximum and shrink down to its minimum while it runs

    @property
    def is_special(self) -> bool:
        """Does it ask for more than slots, memory, whole GPUs, a selection and a number of tasks a host?"""
        sections = self.order or self.same or self.rusage or self.gpu or self.cu or self.affinity
        return bool(sections or self.block or self.stripe or self.ptile < 0 or self.ptile_by)


class Alternative(NamedTuple):
    """Other roles that will do, for a job that has waited so long."""

    roles: tuple[RoleRequest, ...]
    same: str = ""
    cu: str = ""
    delay_s: int = 0


def _is_plain(role: RoleRequest) -> bool:
    is_bound = role.one_host and role.tasks_max > 1
    asks = is_bound or role.ptile or role.memory_mib or role.gpus or role.select
    return role.slots_per_task == 1 and not (asks or role.is_special)


def _is_even(role: RoleRequest) -> bool:
    is_whole = role.ptile > 0 and role.tasks_min == role.tasks_max and role.tasks_max % role.ptile == 0
    return is_whole and not (role.gpus or role.one_host)


@dataclass(frozen=True, slots=True)
class Request:
    """All that placement looks at. Equal requests are one object (interned), so that buckets are few."""

    roles: tuple[RoleRequest, ...]
    hosts: tuple[str, ...] = ()  # -m: only these, groups and preferences as written; empty means any
    exclusive: bool = False
    same: str = ""  # of all roles together: a compound requirement's tail
    cu: str = ""
    alternatives: tuple[Alternative, ...] = ()
    reservation: str = ""  # -U: only in slots of this advance reservation, and only while it holds
    # Only the scheduler's own requests have these: hosts of the queue, exclusive resources that it does not ask for.
    queue_hosts: QueueHosts | None = None
    avoids: frozenset[str] = frozenset()
    slots_min: int = field(init=False, compare=False, repr=False)
    is_plain: bool = field(init=False, compare=False, repr=False)  # any free slots will do, wherever they are
    is_simple: bool = field(init=False, compare=False, repr=False)  # slots, memory, whole devices of selected hosts
    # Slots, memory and GPUs of the one task of a request that has no more to say; None of all others.
    chunk: tuple[int, int, int] | None = field(init=False, compare=False, repr=False)
    is_even: bool = field(init=False, compare=False, repr=False)  # so many equal parts on as many hosts, no devices
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "slots_min", self._least())
        is_plain = len(self.roles) == 1 and _is_plain(self.roles[0]) and not self.hosts and not self.exclusive
        is_plain = is_plain and not (self.alternatives or self.same or self.cu)
        is_plain = is_plain and not (self.queue_hosts or self.avoids)
        object.__setattr__(self, "is_plain", is_plain)
        is_special = any(role.is_special for role in self.roles)
        is_simple = not (is_special or self.exclusive or self.alternatives or self.same or self.cu)
        is_first = any("!" in word for word in self.hosts)
        object.__setattr__(self, "is_simple", is_simple and not is_first)
        object.__setattr__(self, "chunk", self._chunk())
        object.__setattr__(self, "is_even", self.is_simple and len(self.roles) == 1 and _is_even(self.roles[0]))
        rest = (self.same, self.cu, self.alternatives, self.queue_hosts, self.avoids, self.reservation)
        object.__setattr__(self, "_hash", hash((self.roles, self.hosts, self.exclusive, rest)))

    def _least(self) -> int:
        choices = (self.roles, *(one.roles for one in self.alternatives))
        return min(sum(role.tasks_min * role.slots_per_task for role in roles) for roles in choices)

    def _chunk(self) -> tuple[int, int, int] | None:
        if not self.is_simple or len(self.roles) != 1 or self.roles[0].tasks_max != 1:
            return None
        role = self.roles[0]
        if role.select or self.is_particular or self.reservation:
            return None
        return role.slots_per_task, role.memory_mib, role.gpus

    def __hash__(self) -> int:
        return self._hash  # asked for at every start and end of a job

    @property
    def is_particular(self) -> bool:
        """Are some hosts out of the question, or less welcome than others, whatever they have?"""
        return bool(self.hosts or self.avoids) or self.queue_hosts is not None

    @property
    def slots_max(self) -> int:
        return sum(role.tasks_max * role.slots_per_task for role in self.roles)


class CountKey:
    """What is counted of a job: its queue, its user, the slots it needs at least, and its run limit in seconds.

    Jobs of one sort mostly have one object. Compared by identity: jobs are counted each time they move, and a tuple's
    hash takes longer than all the rest.
    """

    __slots__ = ("queue", "run_limit_s", "slots", "user")

    def __init__(self, queue: str, user: str, slots: int, run_limit_s: int) -> None:
        self.queue = queue
        self.user = user
        self.slots = slots
        self.run_limit_s = run_limit_s


_sort = lru_cache(maxsize=100_000)(CountKey)


@dataclass(frozen=True, slots=True)
class Shared:
    """What many jobs of one submitter have in common; interned, so that a pending job is small."""

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
    requirement: str = ""  # job's and queue's together, as shown
    requeue_exit_values: str = ""  # -Q; empty: the queue's
    environment: str = ""  # hash of the stored environment that their own are differences to
    sort: CountKey = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        sort = _sort(self.queue, self.user, self.request.slots_min, self.run_limit_s)
        object.__setattr__(self, "sort", sort)
        key = (self.user, self.queue, self.request, self.run_limit_s, self.project, self.user_group, self.requirement)
        object.__setattr__(self, "_hash", hash((*key, self.environment)))

    def __hash__(self) -> int:
        return self._hash  # of what tells jobs apart; asked for at every submission, start and end


def limits_of(shared: Shared) -> tuple[int, float, int]:
    """What hosts keep a job to: run limit in seconds, deadline, memory limit in MiB; 0 is none."""
    return shared.run_limit_s, shared.terminate_at, shared.memory_limit_mib


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
    """A job's words in one bytes object: a tenth of what eight strings would take. Words hold no NUL."""
    return "\0".join((name, command, cwd, submit_cwd, input, output, error, description)).encode(
        errors="surrogateescape"
    )


def unpack_text(text: bytes) -> dict[str, str]:
    """The words of ``pack_text`` by field name."""
    return dict(zip(TEXT_FIELDS, text.decode(errors="surrogateescape").split("\0"), strict=True))


class ResourceShare(NamedTuple):
    """So much of a resource of the site, in thousandths; of an indexed one the numbers of its devices.

    ``device_roles``: whose tasks each device is for, as in HostShare.
    """

    name: str
    amount: int
    devices: tuple[int, ...] = ()
    device_roles: tuple[int, ...] = ()


class HostShare(NamedTuple):
    """One host's part in an allocation. A tuple, because each start makes some.

    ``gpu_memory_mib``: of each device, how much; empty where the devices are for this job alone.
    ``gpu_roles``: of each device, the number of the role whose tasks it is for; empty where it is for all of them.
    """

    host: str
    slots: int
    memory_mib: int = 0
    gpus: tuple[int, ...] = ()
    tasks_by_role: tuple[int, ...] = ()
    resources: tuple[ResourceShare, ...] = ()
    gpu_memory_mib: tuple[int, ...] = ()
    cpus: tuple[tuple[int, ...], ...] = ()  # processors of each task, where they are bound
    cpus_idle: tuple[int, ...] = ()  # processors beside them that nobody else may have
    gpu_roles: tuple[int, ...] = ()


# Causes of a suspension.
BY_USER = ""
PREEMPTION = "preemption"  # lends room to others
LOAD = "load"  # a host of the job is beyond a threshold
WINDOW = "window"  # its queue does not run now


@dataclass(frozen=True, slots=True)
class QueueWindow:
    """What the windows of a queue permit now, and when its run windows close."""

    may_dispatch: bool = True
    may_run: bool = True
    closes_at: float = float("inf")


Allocation = tuple[HostShare, ...]  # the lead host first


class Device(NamedTuple):
    """One GPU. ``peers`` has a bit for each device that is linked to it by NVLink."""

    model: str = ""
    memory_mib: int = 0
    numa: int = 0
    peers: int = 0


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What an agent says once: what its host is. A login host has server False and never gets jobs."""

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
    exclusive_resources: frozenset[str] = frozenset()  # of these: only jobs that name them may run here
    boot_id: str = ""
    peer_address: str = ""
    gpu_model: str = ""
    gpu_driver: str = ""
    devices: tuple[Device, ...] = ()
    cores: int = 0
    sockets: int = 1
    disks: int = 0
    topology: str = ""  # "cpu core socket numa" of each usable processor, joined by commas
    can_set_gpu_mode: bool = False
    has_mps: bool = False
    keeps_leases: bool = False  # it ends by itself what runs under a lease that has not been renewed


LOAD_INDICES = ("r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem")
