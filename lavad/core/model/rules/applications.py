"""Application profiles, and a queue as the jobs of a profile know it."""

from dataclasses import dataclass, replace

from lavad.core.model.checkpoints import NO_TERMS, CheckpointTerms
from lavad.core.model.rules.queues import NO_COMMANDS, NO_DEFAULTS, AroundJob, JobDefaults, Queue, commands_over


@dataclass(frozen=True, slots=True)
class Application:
    """An application profile: its settings come before those of a job's queue; empty and None: the queue's.

    The maximum of a limit is the smaller one of the two, and the requirements are combined.
    """

    name: str
    description: str = ""
    priority: int = 0  # PRIORITY: the factor APP of absolute priorities
    defaults: JobDefaults = NO_DEFAULTS
    run_limit_s: int = 0
    rerunnable: bool | None = None
    nice: int | None = None
    requeue_limit: int | None = None
    job_controls: tuple[tuple[str, str], ...] = ()
    warning_time_s: float = 0.0
    warning_action: str = ""
    around: AroundJob = NO_COMMANDS
    checkpoints: CheckpointTerms = NO_TERMS  # CHKPNT_DIR and the like
    migration_s: float | None = None
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
            migration_s=queue.migration_s if self.migration_s is None else self.migration_s,
            around=self._around(queue.around),
            defaults=replace(defaults, run_limit_default_s=_smaller(default_s, most_s) if default_s else 0),
        )

    def _around(self, its: AroundJob) -> AroundJob:
        mine = self.around
        rule = replace(mine, profile_host_pre=mine.host_pre, profile_host_post=mine.host_post)
        return commands_over(replace(rule, host_pre=its.host_pre, host_post=its.host_post), its)

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
            success_exit_values=own.success_exit_values or its.success_exit_values,
            gpu_requirement=own.gpu_requirement or its.gpu_requirement,
            container=own.container or its.container,
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
