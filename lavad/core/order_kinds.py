"""Kinds of orders to agents, with the values in them."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from lavad.core.model import AS_STARTED, Allocation, Key, Request, RunChange, Shared
from lavad.core.model.rules.queues import AROUND, AroundJob, Queue
from lavad.core.model.task_values import RolePart, TaskRun, TaskTable
from lavad.core.model.tuples import new as _new
from lavad.core.notices import NO_NOTICE, Notice, NoticeOrder, RevokeOrder
from lavad.core.state.jobs.checkpoints import CheckpointRequest


class Binding(NamedTuple):
    """Processors that a task is bound to, their NUMA nodes, and the binding of its memory."""

    cpus: tuple[int, ...]
    nodes: tuple[int, ...]
    memory: str


class HostDetails(NamedTuple):
    """Details of an allocated host for the agents: its address for theirs, and a binding for each task with CPUs."""

    address: str
    bindings: tuple[Binding, ...] = ()


class SpecDefaults(NamedTuple):
    """Additions of a job's queue to its spec, where that has none: memory and process limits, sizes of the roles."""

    memory_limit_mib: int
    process_limits: tuple[tuple[str, int], ...]  # name, soft limit
    sizes: tuple[tuple[int, int], ...]  # least and most tasks


class GpuSetup(NamedTuple):
    """Set-up of an attempt's GPUs on its hosts; ``roles`` holds (per_task, block) of each, if there are several."""

    mode: str
    mps: bool
    no_variable: bool
    per_task: int
    block: bool
    roles: tuple[tuple[int, bool], ...] = ()
    idle_power_w: float = 0.0  # of a device that counts as idle; 0: by the fraction of its range
    idle_fraction: float = 0.0


class AttemptSetup(NamedTuple):
    """Facts of an attempt that all its hosts are told."""

    shared: Shared
    queue: Queue
    submitted_at: float
    hosts: tuple[HostDetails, ...]  # of the allocation
    gpu: GpuSetup | None = None
    warning_time_s: float = 0.0  # between the notice of a limit and the limit; 0: no notice
    around: AroundJob = AROUND
    requeued_codes: tuple[int, ...] = ()  # exit codes that requeue the job
    success_codes: tuple[int, ...] = ()  # exit codes besides 0 that mean success
    part: int = 0  # number of the spec of an element that was changed by itself


class StageOrder(NamedTuple):
    """Stage the attempt; with ``launch_now`` also launch it."""

    host: str
    key: Key
    version: int
    allocation: Allocation
    launch_now: bool
    setup: AttemptSetup
    lease_s: float = 0.0  # the host ends its part after so many seconds without contact to the master; 0: never
    tasks: tuple[RolePart, ...] = ()  # of a job of tasks: those on this host, without ports


@dataclass(frozen=True, slots=True)
class LaunchOrder:
    host: str
    key: Key
    version: int


@dataclass(frozen=True, slots=True)
class TasksOrder:
    """Start, end and signal tasks on a host; ``table`` says where all tasks of the job are."""

    host: str
    key: Key
    version: int  # of the table
    table: TaskTable
    start: tuple[TaskRun, ...] = ()
    stop: tuple[TaskRun, ...] = ()
    reason: str = ""  # of the stops
    signalled: tuple[TaskRun, ...] = ()
    signal: int = 0
    hold: tuple[TaskRun, ...] = ()  # as start, of tasks without a command of their own


@dataclass(frozen=True, slots=True)
class SignalOrder:
    """Signal the attempt. ``reason`` becomes that of the job's end, if the signal ends it; ``causes`` are of a
    suspension."""

    host: str
    key: Key
    signal: int
    reason: str
    serial: int
    causes: tuple[str, ...] = ()
    notice: Notice = NO_NOTICE  # that the job gets before


@dataclass(frozen=True, slots=True)
class ReleaseOrder:
    """End what is left of the attempt on that host, release everything, report it."""

    host: str
    key: Key
    reason: str


@dataclass(frozen=True, slots=True)
class ResizeOrder:
    """Change the attempt's allocation; the lead host notifies the job and then reports it."""

    host: str
    key: Key
    version: int
    allocation: Allocation
    hosts: tuple[HostDetails, ...]  # of the allocation
    notify: str = ""
    tasks: tuple[RolePart, ...] = ()  # of a job of tasks: those on this host that keep a place, or are to have one


@dataclass(frozen=True, slots=True)
class LimitsOrder:
    """Change the attempt's limits; 0 is none. The run limit counts from the start."""

    host: str
    key: Key
    version: int
    run_limit_s: int
    deadline: float
    memory_limit_mib: int
    checkpoint_period_s: float | None = None  # None: as it was staged
    run: RunChange = AS_STARTED


@dataclass(frozen=True, slots=True)
class ForgetOrder:
    """Forget the attempt: its last report is durable."""

    host: str
    key: Key


@dataclass(frozen=True, slots=True)
class StacksOrder:
    """Save the stacks of the attempt's processes on that host, within ``limit_s``."""

    host: str
    key: Key
    number: int  # of the attempt's hang
    limit_s: float


@dataclass(frozen=True, slots=True)
class CheckpointOrder:
    """Make a checkpoint of the attempt, with which it ends if the request says so."""

    host: str
    key: Key
    request: CheckpointRequest


AttemptOrder = StageOrder | LaunchOrder | TasksOrder | SignalOrder | ReleaseOrder | ResizeOrder | LimitsOrder
Order = AttemptOrder | ForgetOrder | StacksOrder | CheckpointOrder | NoticeOrder | RevokeOrder


def spec_defaults(shared: Shared, queue: Queue | None) -> SpecDefaults:
    """Additions of the queue to the spec of a job that it admitted."""
    limits = queue.defaults.rlimits if queue is not None else ()
    soft = tuple([(name, default or most) for name, default, most in limits]) if limits else ()
    return _new(SpecDefaults, (shared.memory_limit_mib, soft, _sizes(shared.request)))


@lru_cache(maxsize=1024)
def _sizes(request: Request) -> tuple[tuple[int, int], ...]:
    """Least and most tasks of each role."""
    return tuple([(role.tasks_min - role.spares, role.tasks_max - role.spares) for role in request.roles])
