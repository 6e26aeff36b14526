"""The cluster's rules, as the configuration files give them: queues, limits, shares, groups, resources.

Everything here is frozen and complete: names of groups are resolved to members when the files are read, so nobody
expands a group in the path of a job. ``lavad/config`` makes a ``Policy`` out of LSF's files; without files the
default runs. Memory is in MiB, times in seconds; a limit of None is unlimited.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import Enum


@dataclass(frozen=True, slots=True)
class Names:
    """Some names, or all names but some; what ``all ~x``, ``u1 g2`` and the like come to."""

    is_all: bool = True
    names: frozenset[str] = frozenset()  # those meant, or with ``is_all`` those left out

    def __contains__(self, name: object) -> bool:
        return (name in self.names) is not self.is_all

    def __bool__(self) -> bool:
        return self.is_all or bool(self.names)


ALL = Names()


@dataclass(frozen=True, slots=True)
class QueueHosts:
    """Where the jobs of a queue may run, and which of these hosts are taken first; not named: 0, and it may be less."""

    names: Names
    preference: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """A part of the week, in minutes after Sunday 0:00 local time; it may wrap around the end of the week."""

    start: int
    end: int


class JobOrder(Enum):
    """In which order the jobs of a queue are considered, among those of equal priority."""

    SUBMISSION = "submission"
    SLOWDOWN = "slowdown"  # the one whose wait is longest for its run limit goes first
    ROUND_ROBIN = "round robin"  # the user with the fewest slots in use goes first


@dataclass(frozen=True, slots=True)
class Share:
    """One account of a share tree: a user, a group, or one of the words ``default`` and ``others``.

    ``each`` is the form ``group@``: every user of the group has an account of its own with that number of shares.
    ``below`` are the accounts inside a group that has shares of its own; without them its users are served in order.
    """

    name: str
    shares: int
    users: Names = Names(False)  # who belongs to it, at any depth; of a user's account: that user
    each: bool = False
    below: tuple["Share", ...] = ()


@dataclass(frozen=True, slots=True)
class Fairshare:
    """How a queue is shared. ``queues`` are those that share one tree with this one, the one that holds it first."""

    shares: tuple[Share, ...]
    cpu_time_factor: float = 0.7
    run_time_factor: float = 0.7
    run_job_factor: float = 3.0
    committed_run_time_factor: float = 0.0
    gpu_run_time_factor: float = 0.0
    hist_hours: float = 5.0
    is_run_time_historic: bool = False  # ENABLE_HIST_RUN_TIME: run time of ended jobs counts, too
    does_run_time_decay: bool = False  # RUN_TIME_DECAY
    queues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Threshold:
    """Bounds of a load index: no job starts beyond ``sched``, jobs are suspended beyond ``stop``."""

    index: str
    sched: float | None = None
    stop: float | None = None


@dataclass(frozen=True, slots=True)
class JobDefaults:
    """What a queue (or application) gives its jobs. Run time limits are in seconds, the rest as bsub's options."""

    requirement: str = ""  # RES_REQ
    tasks_min: int = 1  # PROCLIMIT / TASKLIMIT
    tasks_default: int = 1
    tasks_max: int | None = None
    run_limit_default_s: int = 0  # RUNLIMIT with two numbers
    memory_limit_mib: int = 0  # MEMLIMIT: the maximum, and the default where none is given
    memory_limit_default_mib: int = 0
    rlimits: tuple[tuple[str, int, int], ...] = ()  # (cpu, data, stack, fsize, core, nproc; default, maximum)
    pre_exec: str = ""
    post_exec: str = ""
    job_starter: str = ""
    requeue_exit_values: str = ""
    gpu_requirement: str = ""  # GPU_REQ


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue as configured; numbers 0 mean no limit."""

    name: str
    priority: int = 1
    description: str = ""
    open: bool = True
    active: bool = True
    is_removed: bool = False  # in no file any more, but it still has jobs: closed and inactive, whatever anybody did
    run_limit_s: int = 0
    rerunnable: bool = False
    requeue_limit: int | None = None  # MAX_JOB_REQUEUE
    nice: int = 0
    in_order: bool = False  # no job starts before one that is ahead of it in the queue
    order: JobOrder = JobOrder.SUBMISSION
    backfill_depth: int = 0  # so many blocked jobs hold a reservation; others start early if they delay none of them
    users: Names = ALL
    hosts: Names = ALL
    host_preference: tuple[tuple[str, int], ...] = ()  # HOSTS = h1+2 ...: as in ``QueueHosts``
    administrators: frozenset[str] = frozenset()
    defaults: JobDefaults = JobDefaults()
    slot_limit: int | None = None  # QJOB_LIMIT
    user_slot_limit: int | None = None  # UJOB_LIMIT
    processor_slot_limit: float | None = None  # PJOB_LIMIT
    host_slot_limit: int | None = None  # HJOB_LIMIT
    run_windows: tuple[Window, ...] = ()  # empty: always
    dispatch_windows: tuple[Window, ...] = ()
    is_exclusive_allowed: bool = True  # EXCLUSIVE
    interactive: str = "yes"  # yes, no, only
    slot_reserve_s: float = 0.0  # SLOT_RESERVE / RESOURCE_RESERVE: how long a blocked parallel job keeps free slots
    reserves_memory: bool = False
    ignores_deadline: bool = False
    fairshare: Fairshare | None = None
    preempts: tuple[tuple[str, int], ...] = ()  # PREEMPTION: queues whose jobs may be suspended for this one's, order
    is_preemptable: bool = False
    preemptable_by: frozenset[str] = frozenset()
    thresholds: tuple[Threshold, ...] = ()
    stop_condition: str = ""
    resume_condition: str = ""
    accept_interval: float | None = None
    job_controls: tuple[tuple[str, str], ...] = ()  # (SUSPEND, RESUME or TERMINATE; signal or command)
    terminate_when: frozenset[str] = frozenset()  # LOAD, WINDOW: ended instead of suspended; PREEMPT: requeued
    preempt_delay_s: float | None = None  # PREEMPT_DELAY of the queue; None: as the cluster has it
    user_group_default: str = ""
    written: tuple[tuple[str, str], ...] = ()  # settings as the file has them, groups with a slash: for people

    @property
    def is_timed(self) -> bool:
        """Do run limits matter to the scheduler here?"""
        has_end = bool(self.run_windows) and not self.ignores_deadline
        return self.backfill_depth > 0 or self.order is JobOrder.SLOWDOWN or has_end

    @property
    def own_hosts(self) -> QueueHosts | None:
        """What HOSTS says; None where all hosts are alike to the queue."""
        is_confined = self.hosts != ALL or bool(self.host_preference)
        return QueueHosts(self.hosts, self.host_preference) if is_confined else None

    @property
    def has_windows(self) -> bool:
        return bool(self.run_windows or self.dispatch_windows)


@dataclass(frozen=True, slots=True)
class HostRule:
    """What lsb.hosts and lsf.cluster say of one host. ``slots`` None, an empty model or type: as the agent says."""

    slots: int | None = None  # MXJ
    user_slots: int | None = None  # JL/U
    thresholds: tuple[Threshold, ...] = ()
    dispatch_windows: tuple[Window, ...] = ()
    model: str = ""
    type: str = ""
    is_server: bool = True
    resources: frozenset[str] = frozenset()  # Boolean ones, besides those the agent finds
    exclusive_resources: frozenset[str] = frozenset()  # of those: only for jobs that ask for them by name
    window_text: str = ""  # DISPATCH_WINDOW as written
    exit_rate: int | None = None  # EXIT_RATE


_NO_RULE = HostRule()


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group as its file has it, for people: members as written, inner groups with a slash behind them."""

    name: str
    members: tuple[str, ...]
    shares: tuple[tuple[str, int], ...] = ()  # USER_SHARES
    administrators: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class UserRule:
    """A row of lsb.users, for one user or group, or for each user of a group."""

    slots: int | None = None  # MAX_JOBS
    slots_per_processor: float | None = None  # JL/P
    pending_jobs: int | None = None  # MAX_PEND_JOBS
    pending_slots: int | None = None  # MAX_PEND_SLOTS
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Limit:
    """A Limit section of lsb.resources. None as a set of consumers: it does not matter; ``per_*``: one limit each."""

    name: str
    slots: int | None = None
    jobs: int | None = None
    memory_mib: int | None = None
    resources: tuple[tuple[str, float], ...] = ()
    slots_per_processor: float | None = None
    users: Names | None = None
    per_user: Names | None = None
    queues: Names | None = None
    per_queue: Names | None = None
    hosts: Names | None = None
    per_host: Names | None = None
    projects: Names | None = None
    per_project: Names | None = None
    windows: tuple[Window, ...] = ()


class ResourceKind(Enum):
    BOOLEAN = "Boolean"
    NUMERIC = "Numeric"
    STRING = "String"


@dataclass(frozen=True, slots=True)
class Resource:
    """A site's own resource, from lsf.shared. ``interval_s`` 0: static; else an elim reports it."""

    name: str
    kind: ResourceKind = ResourceKind.BOOLEAN
    interval_s: float = 0.0
    is_increasing: bool = False  # a larger value is worse
    is_consumable: bool = True
    is_indexed: bool = False  # numbered devices: a job is told which ones are its own
    description: str = ""


@dataclass(frozen=True, slots=True)
class ResourceInstance:
    """One amount of a resource, from the ResourceMap: of one host, or shared by several."""

    resource: str
    value: str  # empty for dynamic ones
    hosts: Names = ALL
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class ComputeUnit:
    """A ComputeUnit row of lsb.hosts: a rack, enclosure and the like. ``hosts`` are those at any depth below it,
    ``members`` what the row names, as lists show it."""

    name: str
    type: str
    hosts: Names
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pool:
    """A capacity pool: guaranteed, deserved and largest share of slots, memory and GPUs; None: no bound."""

    name: str
    users: Names = ALL
    queues: Names = ALL
    hosts: Names = ALL
    guaranteed: Mapping[str, float] = field(default_factory=dict)  # by slots, mem, gpus
    deserved: Mapping[str, float] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)
    lends: bool = True


@dataclass(frozen=True, slots=True)
class ReservationRule:
    """A ResourceReservation section: these users may set slots of these hosts apart, for times in these windows."""

    name: str
    users: Names
    hosts: Names = ALL
    windows: tuple[Window, ...] = ()
    written: tuple[tuple[str, str], ...] = ()  # its lines, for people


@dataclass(frozen=True, slots=True)
class Policy:
    """The cluster's rules; the default is what runs when there is no file."""

    queues: tuple[Queue, ...] = (
        Queue("priority", 43, "Urgent work; goes before all other queues."),
        Queue("short", 35, "Work of up to 15 minutes.", run_limit_s=900),
        Queue("normal", 30, "For all work that needs nothing special."),
        Queue("idle", 20, "Runs when nothing else wants the hosts."),
    )
    default_queue: str = "normal"
    default_queues: tuple[str, ...] = ()  # the first that accepts the job; empty: ``default_queue`` alone
    default_project: str = "default"
    administrators: frozenset[str] = frozenset({"root"})
    max_array_size: int = 1_000_000
    clean_period_s: float = 3600.0
    staging_timeout_s: float = 12.0
    silent_after_s: float = 15.0
    fence_after_s: float = 0.0  # hosts that have not heard the master for so long end what they run; 0: they do not
    order_validity_s: float = 8.0
    avoid_host_s: float = 60.0
    global_exit_rate: int | None = None  # of hosts without one of their own; None: only failed starts close hosts
    exit_rate_period_s: float = 300.0
    exit_rate_types: frozenset[str] = frozenset({"JOBEXIT_NONLSF"})
    resize_timeout_s: float = 60.0  # how long a job may take to adapt to another allocation before it counts as adapted
    zone: tzinfo = UTC  # in which windows and begin times are meant
    user_groups: Mapping[str, Names] = field(default_factory=dict)  # members at any depth
    host_groups: Mapping[str, Names] = field(default_factory=dict)
    user_group_rows: tuple[GroupRow, ...] = ()
    host_group_rows: tuple[GroupRow, ...] = ()
    known_hosts: frozenset[str] = frozenset()  # those that lsf.cluster lists, whether they have joined or not
    host_rules: Mapping[str, HostRule] = field(default_factory=dict)  # by host, model, type or "default"
    cpu_factors: Mapping[str, float] = field(default_factory=dict)  # by host model
    user_rules: Mapping[str, UserRule] = field(default_factory=dict)  # users, groups, "default"
    each_user_rules: Mapping[str, UserRule] = field(default_factory=dict)  # group -> what ``group@`` says
    limits: tuple[Limit, ...] = ()
    gpu_requirement: str = ""  # LSB_GPU_REQ
    reservation_rules: tuple[ReservationRule, ...] = ()
    resources: Mapping[str, Resource] = field(default_factory=dict)
    resource_map: tuple[ResourceInstance, ...] = ()
    compute_units: tuple[ComputeUnit, ...] = ()  # in the order of the file
    compute_unit_types: tuple[str, ...] = ()  # COMPUTE_UNIT_TYPES, the smallest first
    compute_unit_type: str = ""  # the one marked with !, else the first: what cu[...] means that names none
    pools: tuple[Pool, ...] = ()
    pending_jobs: int | None = None  # MAX_PEND_JOBS of the cluster
    pending_slots: int | None = None
    retry_submit_s: float = 60.0  # SUB_TRY_INTERVAL
    default_limits_ignore_groups: bool = False  # DEFAULT_LIMIT_IGNORE_USER_GROUP
    user_priority_max: int = 0  # MAX_USER_PRIORITY; 0: users have no say
    job_info_level: int = 0  # SECURE_JOB_INFO_LEVEL; 0: everybody sees all jobs
    history_access: str = "N"  # SECURE_INFODIR_USER_ACCESS: N all of it, Y one's own jobs, G by that level
    priority_step: int = 0  # JOB_PRIORITY_OVER_TIME: so much more ...
    priority_step_s: float = 0.0  # ... each time so long has passed
    requires_last_dependency: bool = False  # JOB_DEP_LAST_SUB
    reserves_per_task: bool = False  # RESOURCE_RESERVE_PER_TASK
    preempts_by_requeue: bool = False  # LAVA_PREEMPTION=requeue: victims are ended and wait again, in every queue
    preempt_delay_s: float = 0.0  # PREEMPT_DELAY: a job waits so long before it preempts
    no_preempt_run_s: float = 0.0  # NO_PREEMPT_RUN_TIME: what has run so long is left alone; 0: nothing is
    no_preempt_finish_s: float = 0.0  # NO_PREEMPT_FINISH_TIME: what ends so soon by its run limit is left alone
    preemptions_max: int = 0  # MAX_JOB_PREEMPT: so often one job may be preempted; 0: no limit
    preemptable_resources: frozenset[str] = frozenset()  # PREEMPTABLE_RESOURCES: suspended jobs lend these, too
    claim_timeout_s: float = 300.0  # room that is being cleared for a job is kept for it so long
    parameters: Mapping[str, str] = field(default_factory=dict)  # lsb.params as written, for bparams
    by_name: dict[str, Queue] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {queue.name: queue for queue in self.queues})

    @property
    def priority_growth(self) -> float:
        """By how much the priority of a waiting job grows in a second."""
        return self.priority_step / self.priority_step_s if self.priority_step_s else 0.0

    def queue(self, name: str) -> Queue | None:
        """The queue of that name, or None."""
        return self.by_name.get(name)

    def host_rule(self, name: str, model: str = "", type: str = "") -> HostRule:
        """What the files say of a host: by its name, else its model, else its type, else by default."""
        for key in (name, model, type, "default"):
            if key and key in self.host_rules:
                return self.host_rules[key]
        return _NO_RULE
