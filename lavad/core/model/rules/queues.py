"""Queues, and the settings that they share with application profiles and the whole cluster."""

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import NamedTuple

from lavad.core.model.checkpoints import NO_TERMS, CheckpointTerms
from lavad.core.model.gpu_use import NO_GPU_IDLE_RULE, GpuIdleRule
from lavad.core.model.priorities.absolute import AbsolutePriority
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.rules.exceptions import NO_EXCEPTIONS, ExceptionRule
from lavad.core.model.rules.names import ALL, Names
from lavad.core.model.rules.users import Fairshare
from lavad.core.model.windows import Window


@dataclass(frozen=True, slots=True)
class QueueHosts:
    """Hosts that jobs of a queue may use, with preferences; 0 for hosts without one."""

    names: Names
    preference: tuple[tuple[str, int], ...] = ()


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


@lru_cache(maxsize=1024)
def commands_over(mine: AroundJob, base: AroundJob) -> AroundJob:
    """Return a rule with what it leaves open from another."""
    return replace(base, **{one.name: value for one in fields(mine) if (value := getattr(mine, one.name)) is not None})


NO_COMMANDS = AroundJob()
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
    success_exit_values: str = ""  # SUCCESS_EXIT_VALUES: exit codes of a job that is DONE
    gpu_requirement: str = ""  # GPU_REQ
    application_requirement: str = ""  # RES_REQ of an application profile, which comes before the queue's
    container: str = ""  # CONTAINER, which lava cannot keep jobs in: the queue takes and starts none


NO_DEFAULTS = JobDefaults()


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
    defaults: JobDefaults = NO_DEFAULTS
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
    group_priority: int | None = None  # PRIORITY of the queue whose QUEUE_GROUP it is in
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
    around: AroundJob = NO_COMMANDS
    checks: QueueChecks = NO_CHECKS  # HEALTH_CHECKS
    checkpoints: CheckpointTerms = NO_TERMS  # CHKPNT
    exceptions: ExceptionRule = NO_EXCEPTIONS
    migration_s: float | None = None  # MIG: suspended jobs migrate after that time; None: they do not
    written: tuple[tuple[str, str], ...] = ()  # settings as written, groups with a slash, for display
    application: str = ""  # the application profile that its settings are combined with
    environment: tuple[tuple[str, str], ...] = ()  # ENV_VARS of that profile

    @property
    def served_at(self) -> int:
        """Priority at which its pending jobs are ordered: with those of its group, else its own."""
        return self.priority if self.group_priority is None else self.group_priority

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
    def starts_jobs(self) -> bool:
        """True if jobs may start at all: the queue is active, and keeps its jobs in no container."""
        return self.active and not self.defaults.container

    @property
    def has_windows(self) -> bool:
        return bool(self.run_windows or self.dispatch_windows)
