"""Policy: the cluster's configuration of queues, limits, shares, groups and resources.

All values are frozen and complete: names of groups are resolved to members when the files are read, so that no group is
expanded per job. ``lavad/config`` makes a ``Policy`` of LSF's files; without files the default applies. Memory is in
MiB, times are in seconds; a limit of None is unlimited.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, tzinfo
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from lavad.core.model.checkpoints import NO_TERMS, CheckpointTerms
from lavad.core.model.gpu_use import GPU_IDLE, NO_GPU_IDLE_RULE, GpuIdleRule
from lavad.core.model.priorities.absolute import AbsolutePriority
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.windows import Window

if TYPE_CHECKING:
    from lavad.core.model.advance_reservation import ReservationRule
    from lavad.core.model.priorities.host_partition import HostPartition


@dataclass(frozen=True, slots=True)
class Names:
    """Some names, or all names but some; the value of ``all ~x``, ``u1 g2`` and the like."""

    is_all: bool = True
    names: frozenset[str] = frozenset()  # those included or, with ``is_all``, those excluded

    def __contains__(self, name: object) -> bool:
        return (name in self.names) is not self.is_all

    def __bool__(self) -> bool:
        return self.is_all or bool(self.names)


ALL = Names()


@dataclass(frozen=True, slots=True)
class QueueHosts:
    """Hosts that jobs of a queue may use, with preferences; 0 for hosts without one."""

    names: Names
    preference: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """Share of one account in a share tree: a user, a group, or one of the words ``default`` and ``others``.

    ``each`` is the form ``group@``: every user of the group has an account of its own with that number of shares.
    ``below`` are the shares inside a group; without them its users are served in order.
    """

    name: str
    shares: int
    users: Names = Names(False)  # users of the account, at any depth
    each: bool = False
    below: tuple["Share", ...] = ()


@dataclass(frozen=True, slots=True)
class Fairshare:
    """Fairshare of a queue. ``queues`` share one tree with this one, the owner first."""

    shares: tuple[Share, ...]
    cpu_time_factor: float = 0.7
    run_time_factor: float = 0.7
    run_job_factor: float = 3.0
    committed_run_time_factor: float = 0.0
    gpu_run_time_factor: float = 0.0
    hist_hours: float = 5.0
    is_run_time_historic: bool = False  # ENABLE_HIST_RUN_TIME: count run time of ended jobs
    does_run_time_decay: bool = False  # RUN_TIME_DECAY
    queues: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Threshold:
    """Thresholds of a load index: no job starts beyond ``sched``, jobs are suspended beyond ``stop``."""

    index: str
    sched: float | None = None
    stop: float | None = None


@dataclass(frozen=True, slots=True)
class AroundJob:
    """Pre- and post-execution commands: those of a queue, and what holds for them and for the job's own.

    None: as the cluster's rule says, which leaves nothing open.
    """

    host_pre: str = ""  # HOST_PRE_EXEC: on each host of the job
    host_post: str = ""  # HOST_POST_EXEC
    job_pre: str = ""  # PRE_EXEC of a profile, for jobs without -E
    job_post: str = ""  # POST_EXEC of a profile, for jobs without -Ep
    user: str | None = None  # PRE_POST_EXEC_USER: of the queue's commands; empty: the job's
    tries_max: int | None = None  # LOCAL_MAX_PREEXEC_RETRY: failures in a row until the job is held; 0: no bound
    exits: bool | None = None  # LOCAL_MAX_PREEXEC_RETRY_ACTION: it is ended instead
    excluding: frozenset[int] | None = None  # PREEXEC_EXCLUDE_HOST_EXIT_VALUES: codes after which the host is excluded
    pre_limit_s: float | None = None  # JOB_PREPROC_TIMEOUT: of one command; 0: none
    post_limit_s: float | None = None  # JOB_POSTPROC_TIMEOUT
    includes_post: bool | None = None  # JOB_INCLUDE_POSTPROC: a job ends with its post-execution commands
    profile_host_pre: str = ""  # HOST_PRE_EXEC of a profile, after the queue's
    profile_host_post: str = ""  # HOST_POST_EXEC of a profile, before the queue's

    def over(self, base: "AroundJob") -> "AroundJob":
        """This rule, with what it leaves open from another."""
        return _over(self, base)


@lru_cache(maxsize=1024)
def _over(mine: AroundJob, base: AroundJob) -> AroundJob:
    return replace(base, **{one.name: value for one in fields(mine) if (value := getattr(mine, one.name)) is not None})


UNBOUNDED_S = 10 * 366 * 86400.0  # for hosts to be ready whose command before the job has no limit
AROUND = AroundJob(
    user="", tries_max=0, exits=False, excluding=frozenset(), pre_limit_s=0.0, post_limit_s=0.0, includes_post=False
)


@dataclass(frozen=True, slots=True)
class JobDefaults:
    """Defaults and limits of a queue (or application) for its jobs. Run limits are in seconds, the rest as bsub's
    options."""

    requirement: str = ""  # RES_REQ
    tasks_min: int = 1  # PROCLIMIT / TASKLIMIT
    tasks_default: int = 1
    tasks_max: int | None = None
    run_limit_default_s: int = 0  # RUNLIMIT with two numbers
    memory_limit_mib: int = 0  # MEMLIMIT: the maximum, also the default if none is given
    memory_limit_default_mib: int = 0
    rlimits: tuple[tuple[str, int, int], ...] = ()  # (cpu, data, stack, fsize, core, nproc; default, maximum)
    pre_exec: str = ""
    post_exec: str = ""
    job_starter: str = ""
    requeue_exit_values: str = ""
    gpu_requirement: str = ""  # GPU_REQ
    application_requirement: str = ""  # RES_REQ of an application profile, which comes before the queue's


class QueueChecks(NamedTuple):
    """Health checks of a queue: programs with their arguments, as one text each; empty: none."""

    before: str = ""  # on each host of a job, before it is started there
    after: str = ""  # on each host of a job that has left it
    between: str = ""  # on idle hosts of the queue
    limit_s: int = 60  # of each


NO_CHECKS = QueueChecks()


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue as configured; limits of 0 mean none."""

    name: str
    priority: int = 1
    description: str = ""
    open: bool = True
    active: bool = True
    is_removed: bool = False  # in no file any more, but with jobs: closed and inactive, also after badmin qopen
    run_limit_s: int = 0
    rerunnable: bool = False
    requeue_limit: int | None = None  # MAX_JOB_REQUEUE
    nice: int = 0
    in_order: bool = False  # strict order: no job starts before one ahead of it
    order: JobOrder = JobOrder.SUBMISSION
    backfill_depth: int = 0  # blocked jobs with a reservation; others are backfilled if they delay none
    users: Names = ALL
    hosts: Names = ALL
    host_preference: tuple[tuple[str, int], ...] = ()  # HOSTS = h1+2 ...: as in ``QueueHosts``
    administrators: frozenset[str] = frozenset()
    gpu_idle: GpuIdleRule = NO_GPU_IDLE_RULE
    defaults: JobDefaults = JobDefaults()
    slot_limit: int | None = None  # QJOB_LIMIT
    user_slot_limit: int | None = None  # UJOB_LIMIT
    processor_slot_limit: float | None = None  # PJOB_LIMIT
    host_slot_limit: int | None = None  # HJOB_LIMIT
    run_windows: tuple[Window, ...] = ()  # empty: always
    dispatch_windows: tuple[Window, ...] = ()
    is_exclusive_allowed: bool = True  # EXCLUSIVE
    interactive: str = "yes"  # yes, no, only
    slot_reserve_s: float = 0.0  # SLOT_RESERVE / RESOURCE_RESERVE: duration of a slot reservation
    reserves_memory: bool = False
    ignores_deadline: bool = False
    fairshare: Fairshare | None = None
    absolute: AbsolutePriority | None = None  # APS_PRIORITY
    preempts: tuple[tuple[str, int], ...] = ()  # PREEMPTION: queues that it may preempt, with their order
    is_preemptable: bool = False
    preemptable_by: frozenset[str] = frozenset()
    thresholds: tuple[Threshold, ...] = ()
    stop_condition: str = ""
    resume_condition: str = ""
    accept_interval: float | None = None
    job_controls: tuple[tuple[str, str], ...] = ()  # (SUSPEND, RESUME or TERMINATE; signal or command)
    terminate_when: frozenset[str] = frozenset()  # LOAD, WINDOW: killed instead of suspended; PREEMPT: requeued
    preempt_delay_s: float | None = None  # PREEMPT_DELAY of the queue; None: the cluster's
    warning_time_s: float = 0.0  # JOB_ACTION_WARNING_TIME: notice before a job is ended, unless it names another time
    warning_action: str = ""  # JOB_WARNING_ACTION: signal or command of that notice
    user_group_default: str = ""
    around: AroundJob = AroundJob()
    checks: QueueChecks = NO_CHECKS  # HEALTH_CHECKS
    checkpoints: CheckpointTerms = NO_TERMS  # CHKPNT
    written: tuple[tuple[str, str], ...] = ()  # settings as written, groups with a slash, for display
    application: str = ""  # the application profile that its settings are combined with
    environment: tuple[tuple[str, str], ...] = ()  # ENV_VARS of that profile

    @property
    def is_timed(self) -> bool:
        """True if the scheduler needs the run limits of its jobs."""
        has_end = bool(self.run_windows) and not self.ignores_deadline
        return self.backfill_depth > 0 or self.order.is_scored or has_end

    @property
    def own_hosts(self) -> QueueHosts | None:
        """Hosts and preferences of HOSTS; None if the queue treats all hosts alike."""
        is_confined = self.hosts != ALL or bool(self.host_preference)
        return QueueHosts(self.hosts, self.host_preference) if is_confined else None

    @property
    def has_windows(self) -> bool:
        return bool(self.run_windows or self.dispatch_windows)


@dataclass(frozen=True, slots=True)
class HostRule:
    """Row of a host in lsb.hosts and lsf.cluster. ``slots`` None, an empty model or type: as reported by the agent."""

    slots: int | None = None  # MXJ
    user_slots: int | None = None  # JL/U
    thresholds: tuple[Threshold, ...] = ()
    dispatch_windows: tuple[Window, ...] = ()
    model: str = ""
    type: str = ""
    is_server: bool = True
    resources: frozenset[str] = frozenset()  # boolean ones, besides those found by the agent
    exclusive_resources: frozenset[str] = frozenset()  # of those: only for jobs that name them
    window_text: str = ""  # DISPATCH_WINDOW as written
    exit_rate: int | None = None  # EXIT_RATE


_NO_RULE = HostRule()


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group as written, for display: inner groups have a slash behind them."""

    name: str
    members: tuple[str, ...]
    shares: tuple[tuple[str, int], ...] = ()  # USER_SHARES
    administrators: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class UserRule:
    """Row of lsb.users: limits of a user, of a group, or of each user of a group."""

    slots: int | None = None  # MAX_JOBS
    slots_per_processor: float | None = None  # JL/P
    pending_jobs: int | None = None  # MAX_PEND_JOBS
    pending_slots: int | None = None  # MAX_PEND_SLOTS
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Limit:
    """A Limit section of lsb.resources. Consumers None: any; ``per_*``: a separate limit for each."""

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
    memory_share: float | None = None  # of each host's memory
    resource_shares: tuple[tuple[str, float], ...] = ()  # tmp and swp: of each host's
    applications: Names | None = None
    per_application: Names | None = None


class ResourceKind(Enum):
    BOOLEAN = "Boolean"
    NUMERIC = "Numeric"
    STRING = "String"


@dataclass(frozen=True, slots=True)
class Resource:
    """A site-defined resource, from lsf.shared. ``interval_s`` 0: static; else reported by an elim."""

    name: str
    kind: ResourceKind = ResourceKind.BOOLEAN
    interval_s: float = 0.0
    is_increasing: bool = False  # a larger value means more load
    is_consumable: bool = True
    is_indexed: bool = False  # numbered devices: a job is told the numbers of its own
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
    """A ComputeUnit row of lsb.hosts, such as a rack. ``hosts`` are those at any depth below it, ``members`` the names
    in the row, for display."""

    name: str
    type: str
    hosts: Names
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pool:
    """A capacity pool: guaranteed, deserved and largest amounts of slots, memory and GPUs; missing: no bound."""

    name: str
    users: Names = ALL
    queues: Names = ALL
    hosts: Names = ALL
    guaranteed: Mapping[str, float] = field(default_factory=dict)  # by resource: slots, mem, gpus
    deserved: Mapping[str, float] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)
    lends: bool = True
    borrowers: Names = ALL  # queues that it lends to
    applications: Names = ALL
    slots_share: float = 0.0  # guaranteed part of its hosts' slots
    service_class: str = ""  # whose part of a pool it is
    attaches: bool = True  # False: only jobs that name the service class (-sla)


@dataclass(frozen=True, slots=True)
class ServiceClass:
    """A service class with guarantees: which jobs may name it (-sla) or, if it attaches, belong to it by themselves."""

    name: str
    users: Names = ALL
    queues: Names = ALL
    applications: Names = ALL
    attaches: bool = True  # AUTO_ATTACH
    access: str = ""  # ACCESS_CONTROL as written
    description: str = ""


@dataclass(frozen=True, slots=True)
class Application:
    """An application profile: its settings come before those of a job's queue; empty and None: the queue's.

    The maximum of a limit is the smaller one of the two, and the requirements are combined.
    """

    name: str
    description: str = ""
    priority: int = 0  # PRIORITY: the factor APP of absolute priorities
    defaults: JobDefaults = JobDefaults()
    run_limit_s: int = 0
    rerunnable: bool | None = None
    nice: int | None = None
    requeue_limit: int | None = None
    job_controls: tuple[tuple[str, str], ...] = ()
    warning_time_s: float = 0.0
    warning_action: str = ""
    around: AroundJob = AroundJob()
    checkpoints: CheckpointTerms = NO_TERMS  # CHKPNT_DIR and the like
    environment: tuple[tuple[str, str], ...] = ()
    written: tuple[tuple[str, str], ...] = ()  # settings as written

    def before(self, queue: Queue) -> Queue:
        """The queue as jobs of this profile know it."""
        own, defaults = self.defaults, self._defaults(queue)
        most_s = _smaller(self.run_limit_s, queue.run_limit_s)
        default_s = own.run_limit_default_s or self.run_limit_s or queue.defaults.run_limit_default_s
        return replace(
            queue,
            application=self.name,
            environment=self.environment,
            run_limit_s=most_s,
            rerunnable=queue.rerunnable if self.rerunnable is None else self.rerunnable,
            nice=queue.nice if self.nice is None else self.nice,
            requeue_limit=queue.requeue_limit if self.requeue_limit is None else self.requeue_limit,
            job_controls=tuple({**dict(queue.job_controls), **dict(self.job_controls)}.items()),
            warning_time_s=self.warning_time_s or queue.warning_time_s,
            warning_action=self.warning_action or queue.warning_action,
            around=self._around(queue.around),
            defaults=replace(defaults, run_limit_default_s=_smaller(default_s, most_s) if default_s else 0),
        )

    def _around(self, its: AroundJob) -> AroundJob:
        mine = self.around
        rule = replace(mine, profile_host_pre=mine.host_pre, profile_host_post=mine.host_post)
        return replace(rule, host_pre=its.host_pre, host_post=its.host_post).over(its)

    def _defaults(self, queue: Queue) -> JobDefaults:
        own, its = self.defaults, queue.defaults
        memory_mib = _smaller(own.memory_limit_mib, its.memory_limit_mib)
        default_mib = own.memory_limit_default_mib or own.memory_limit_mib or its.memory_limit_default_mib
        found = replace(
            its,
            application_requirement=own.requirement,
            memory_limit_mib=memory_mib,
            memory_limit_default_mib=_smaller(default_mib, memory_mib) if default_mib else 0,
            rlimits=_smaller_limits(own.rlimits, its.rlimits),
            job_starter=own.job_starter or its.job_starter,
            requeue_exit_values=own.requeue_exit_values or its.requeue_exit_values,
            gpu_requirement=own.gpu_requirement or its.gpu_requirement,
        )
        if own.tasks_max is None:
            return found
        least, most = max(own.tasks_min, its.tasks_min), _smaller(own.tasks_max, its.tasks_max or 0)
        default = min(max(own.tasks_default, least), most)
        return replace(found, tasks_min=least, tasks_default=default, tasks_max=most)


def _smaller(one: int, other: int) -> int:
    """The smaller one of two limits of which 0 is none."""
    return min(one, other) if one and other else one or other


def _smaller_limits(
    own: tuple[tuple[str, int, int], ...], others: tuple[tuple[str, int, int], ...]
) -> tuple[tuple[str, int, int], ...]:
    """Process limits of both by name: the default of the first, the smaller maximum."""
    found = {name: (default, most) for name, default, most in others}
    for name, default, most in own:
        largest = min(most, found[name][1]) if name in found else most  # a core size of 0 is a limit
        found[name] = (min(default or most, largest), largest)
    return tuple((name, *values) for name, values in sorted(found.items()))


@dataclass(frozen=True, slots=True)
class Policy:
    """The cluster's configuration; the default applies without files."""

    queues: tuple[Queue, ...] = (
        Queue("priority", 43, "Urgent work; goes before all other queues."),
        Queue("short", 35, "Work of up to 15 minutes.", run_limit_s=900),
        Queue("normal", 30, "For all work that needs nothing special."),
        Queue("idle", 20, "Runs when nothing else wants the hosts."),
    )
    default_queue: str = "normal"
    default_queues: tuple[str, ...] = ()  # the first that accepts the job; empty: ``default_queue``
    default_project: str = "default"
    default_job_group: str = ""  # path, with %u and %p; empty: none
    default_application: str = ""
    applications: Mapping[str, Application] = field(default_factory=dict)
    administrators: frozenset[str] = frozenset({"root"})
    max_array_size: int = 1_000_000
    clean_period_s: float = 3600.0
    events_jobs_max: int = 10_000  # MAX_JOB_NUM: ended jobs in lsb.events before it is switched
    events_switch_s: float = 0.0  # MIN_SWITCH_PERIOD
    acct_archive_s: float = 0.0  # ACCT_ARCHIVE_AGE: lsb.acct is switched then; 0: never
    acct_archive_kib: int = 0  # ACCT_ARCHIVE_SIZE
    acct_archives_max: int = 0  # MAX_ACCT_ARCHIVE_FILE; 0: all are kept
    staging_timeout_s: float = 12.0
    silent_after_s: float = 15.0
    fence_after_s: float = 0.0  # hosts without contact to the master for that long end their attempts; 0: never
    order_validity_s: float = 8.0
    avoid_host_s: float = 60.0
    global_exit_rate: int | None = None  # for hosts without one of their own; None: only failed starts close hosts
    exit_rate_period_s: float = 300.0
    exit_rate_types: frozenset[str] = frozenset({"JOBEXIT_NONLSF"})
    resize_timeout_s: float = 60.0  # time for a job to adapt to another allocation, after which it counts as adapted
    zone: tzinfo = UTC  # time zone of windows and begin times
    user_groups: Mapping[str, Names] = field(default_factory=dict)  # members at any depth
    host_groups: Mapping[str, Names] = field(default_factory=dict)
    user_group_rows: tuple[GroupRow, ...] = ()
    host_group_rows: tuple[GroupRow, ...] = ()
    host_partitions: "tuple[HostPartition, ...]" = ()  # HostPartition sections, in configured order
    known_hosts: frozenset[str] = frozenset()  # those listed in lsf.cluster, joined or not
    host_rules: Mapping[str, HostRule] = field(default_factory=dict)  # by host, model, type or "default"
    cpu_factors: Mapping[str, float] = field(default_factory=dict)  # by host model
    user_rules: Mapping[str, UserRule] = field(default_factory=dict)  # users, groups, "default"
    each_user_rules: Mapping[str, UserRule] = field(default_factory=dict)  # group -> the row of ``group@``
    limits: tuple[Limit, ...] = ()
    gpu_requirement: str = ""  # LSB_GPU_REQ
    gpu_idle: GpuIdleRule = GPU_IDLE
    around: AroundJob = AROUND
    pre_exec_pause_s: float = 30.0  # PRE_EXEC_DELAY: between two tries of a job whose pre-execution command failed
    users_resume: bool = False  # ENABLE_USER_RESUME: owners may resume jobs that an administrator has suspended
    requeue_pause_s: float = 10.0  # LAVA_REQUEUE_DELAY: from the end of a job that its exit value requeues to its start
    reservation_rules: tuple["ReservationRule", ...] = ()
    resources: Mapping[str, Resource] = field(default_factory=dict)
    resource_map: tuple[ResourceInstance, ...] = ()
    compute_units: tuple[ComputeUnit, ...] = ()  # in configured order
    compute_unit_types: tuple[str, ...] = ()  # COMPUTE_UNIT_TYPES, the smallest first
    compute_unit_type: str = ""  # marked with !, else the first: default type of cu[...]
    pools: tuple[Pool, ...] = ()
    service_classes: Mapping[str, ServiceClass] = field(default_factory=dict)
    pending_jobs: int | None = None  # MAX_PEND_JOBS of the cluster
    pending_slots: int | None = None
    retry_submit_s: float = 60.0  # SUB_TRY_INTERVAL
    default_limits_ignore_groups: bool = False  # DEFAULT_LIMIT_IGNORE_USER_GROUP
    user_priority_max: int = 0  # MAX_USER_PRIORITY; 0: no user priorities
    job_info_level: int = 0  # SECURE_JOB_INFO_LEVEL; 0: all users see all jobs
    samples_performance: bool = False  # SCHED_METRIC_ENABLE: badmin perfmon is on from the start
    sample_period_s: int = 60
    history_access: str = "N"  # SECURE_INFODIR_USER_ACCESS: N all, Y own jobs, G by that level
    priority_step: int = 0  # JOB_PRIORITY_OVER_TIME: increment ...
    priority_step_s: float = 0.0  # ... and its interval
    requires_last_dependency: bool = False  # JOB_DEP_LAST_SUB
    reserves_per_task: bool = False  # RESOURCE_RESERVE_PER_TASK
    preempts_by_requeue: bool = False  # LAVA_PREEMPTION=requeue: preempted jobs are requeued, in all queues
    preempt_delay_s: float = 0.0  # PREEMPT_DELAY: a job waits that long before it preempts
    no_preempt_run_s: float = 0.0  # NO_PREEMPT_RUN_TIME: jobs with that run time are not preempted; 0: no such bound
    no_preempt_finish_s: float = 0.0  # NO_PREEMPT_FINISH_TIME: likewise jobs that end by their run limit so soon
    preemptions_max: int = 0  # MAX_JOB_PREEMPT: maximum of preemptions of a job; 0: none
    preemptable_resources: frozenset[str] = frozenset()  # PREEMPTABLE_RESOURCES: also lent by suspended jobs
    claim_timeout_s: float = 300.0  # maximum lifetime of a claim
    warning_time_max_s: float = (
        300.0  # LAVA_WARNING_TIME_MAX: longest notice that preemption, windows and load wait for
    )
    parameters: Mapping[str, str] = field(default_factory=dict)  # lsb.params as written, for bparams
    by_name: dict[str, Queue] = field(init=False, compare=False, repr=False)
    _combined: dict[tuple[str, str], Queue] = field(init=False, compare=False, repr=False)  # with profiles, as asked
    _staging_s: dict[tuple[str, str], float] = field(init=False, compare=False, repr=False)  # likewise

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {queue.name: queue for queue in self.queues})
        object.__setattr__(self, "_combined", {})
        object.__setattr__(self, "_staging_s", {})

    @property
    def priority_growth(self) -> float:
        """Growth of a pending job's priority, per second."""
        return self.priority_step / self.priority_step_s if self.priority_step_s else 0.0

    def queue(self, name: str) -> Queue | None:
        """The queue of that name, or None."""
        return self.by_name.get(name)

    def queue_for(self, name: str, application: str) -> Queue | None:
        """The queue as jobs of the application profile know it; as it is for jobs of none, or of one that is gone."""
        profile = self.applications.get(application) if application else None
        queue = self.by_name.get(name)
        if profile is None or queue is None:
            return queue
        found = self._combined.get((name, application))
        if found is None:
            found = self._combined[name, application] = profile.before(queue)
        return found

    def staging_s(self, name: str, application: str) -> float:
        """Time for the hosts of a job to make themselves ready, with the queue's health check and its command for each
        host before the job."""
        found = self._staging_s.get((name, application))
        if found is None:
            found = self._staging_s[name, application] = self._staging_with(self.queue_for(name, application))
        return found

    def _staging_with(self, queue: Queue | None) -> float:
        if queue is None:
            return self.staging_timeout_s
        checked_s = queue.checks.limit_s if queue.checks.before else 0
        return self.staging_timeout_s + checked_s + self._host_pre_s(queue.around)

    def _host_pre_s(self, rule: AroundJob) -> float:
        commands = bool(rule.host_pre) + bool(rule.profile_host_pre)
        if not commands:
            return 0.0
        limit_s = rule.pre_limit_s if rule.pre_limit_s is not None else self.around.pre_limit_s
        return commands * limit_s if limit_s else UNBOUNDED_S

    def host_rule(self, name: str, model: str = "", type: str = "") -> HostRule:
        """Configuration of a host: by its name, else its model, else its type, else the default."""
        for key in (name, model, type, "default"):
            if key and key in self.host_rules:
                return self.host_rules[key]
        return _NO_RULE
