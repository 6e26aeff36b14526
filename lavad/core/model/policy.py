"""Policy: the cluster's configuration of queues, limits, shares, groups and resources.

All values are frozen and complete: names of groups are resolved to members when the files are read, so that no group is
expanded per job. ``lavad/config`` makes a ``Policy`` of LSF's files; without files the default applies. Memory is in
MiB, times are in seconds; a limit of None is unlimited.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING

from lavad.core.model.gpu_use import GPU_IDLE, GpuIdleRule
from lavad.core.model.rules.applications import Application
from lavad.core.model.rules.budgets import Budget
from lavad.core.model.rules.hosts import HostRule
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import AROUND, UNBOUNDED_S, AroundJob, Queue
from lavad.core.model.rules.resources import (
    IN_MIB,
    ComputeUnit,
    Limit,
    Pool,
    Resource,
    ResourceInstance,
    ServiceClass,
    SizeUnits,
)
from lavad.core.model.rules.users import GroupRow, UserRule

if TYPE_CHECKING:
    from lavad.core.model.advance_reservation import ReservationRule
    from lavad.core.model.priorities.host_partition import HostPartition


_NO_RULE = HostRule()


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
    terminate_interval_s: float = 10.0  # between INT, TERM and KILL
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
    idle_after_s: float = 1200.0  # DETECT_IDLE_JOB_AFTER: run time before a job may be idle
    exceptions_told_every_s: float = 60.0  # EADMIN_TRIGGER_DURATION
    budgets: tuple[Budget, ...] = ()
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
    size_units: SizeUnits = IN_MIB
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
