"""lsb.queues: the queues, their order, limits and policies."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lavad.config import names, shares
from lavad.config import values as v
from lavad.config.grammar import Cell, Document, Row
from lavad.config.ignored import batch
from lavad.config.priorities.absolute import absolute_priority, check_absolute
from lavad.config.priorities.queue_groups import join_queues
from lavad.config.site import Fields, Honoured, Ignored, Site, Table, check_sections, missed, required, sets
from lavad.config.values import Wrong
from lavad.core.language import exit_values
from lavad.core.language.requirements import parser
from lavad.core.language.requirements.parser import Requirement
from lavad.core.language.requirements.vocabulary import Vocabulary
from lavad.core.model.gpu_use import GpuIdleRule
from lavad.core.model.priorities.job_order import JobOrder
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.exceptions import ExceptionRule
from lavad.core.model.rules.names import Names
from lavad.core.model.rules.queues import AroundJob, JobDefaults, Queue
from lavad.core.model.rules.resources import ResourceKind
from lavad.core.model.rules.users import Fairshare

_PREEMPTION = re.compile(r"(PREEMPTIVE|PREEMPTABLE)\s*(?:\[\s*\[?([^\]\[]*)\]?\s*\])?\s*", re.IGNORECASE)
_RESERVE = re.compile(r"MAX_RESERVE_TIME\s*\[\s*(\d{1,9})\s*\]\s*$", re.IGNORECASE)
INDICES = ("r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem")
ALIASES = {"cpu": "r1m", "idle": "it", "login": "ls", "swap": "swp"}
DEFAULT_QUEUE = "default"
_EXCEPTION = "[exception](../howto/daily-operation.md#exceptions-of-jobs)"


def _requirement(text: str, site: Site) -> Fields:
    _parsed(text, site)
    return {"defaults.requirement": text}


def _parsed(text: str, site: Site) -> Requirement:
    try:
        return parser.parse(text, site.vocabulary)
    except Refused as error:
        raise Wrong(str(error)) from None


def _condition(name: str, about: str) -> Honoured:
    """Declare a condition on hosts, with or without ``select[...]`` around it."""

    def read(text: str, site: Site) -> Fields:
        select = _parsed(text, site).term.select
        if _parsed(text, site) != parser.parse(f"select[{select}]", Vocabulary(site.resources)):
            raise Wrong("expected select[...] and nothing else")
        return {name: select}

    return Honoured(read, about)


def _run_limit(text: str, site: Site) -> Fields:
    default, most = v.default_and_most_s(text)
    return {"run_limit_s": most, "defaults.run_limit_default_s": default}


def _memory_limit(text: str, site: Site) -> Fields:
    default, most = v.default_and_most_kib(text, site.unit or "K")
    return {
        "defaults.memory_limit_mib": -(-most // 1024),
        "defaults.memory_limit_default_mib": -(-default // 1024),
    }


def _task_limit(text: str, site: Site) -> Fields:
    least, default, most = v.task_limit(text)
    return {"defaults.tasks_min": least, "defaults.tasks_default": default, "defaults.tasks_max": most}


def _size_limit(name: str, least: int = 1, of: str = "", is_kib: bool = False) -> Honoured:
    """Declare a limit kept in bytes: of each process, or of what is said. ``is_kib``: no unit of the site holds."""

    def read(text: str, site: Site) -> Fields:
        default, most = v.default_and_most_kib(text, "K" if is_kib else site.unit or "K", least)
        return {f"rlimit.{name}": (default << 10, most << 10)}

    unit = "KB" if is_kib else "LSF_UNIT_FOR_LIMITS"
    return Honoured(read, f"`[default] maximum`{of and f' of {of}'}, in {unit} or with a unit")


def _count_limit(name: str, counted: str) -> Honoured:
    """Declare a limit of what a job has on a host."""
    return Honoured(
        lambda text, site: {f"rlimit.{name}": v.counts(text)},
        f"`[default] maximum` of {counted} of a job on a host",
    )


def _hosts(text: str, site: Site) -> Fields:
    found = names.preferred_hosts(text, site)
    return {"hosts": found.hosts, "host_preference": found.preference}


def _administrators(text: str, site: Site) -> Fields:
    found = names.users(text, site)
    if found.is_all:
        raise Wrong("expected users and groups; all can't administer a queue")
    return {"administrators": found.names}


def _default_group(text: str, site: Site) -> Fields:
    name = text.strip()
    names.user_word(name, site)
    return {"user_group_default": name}


def _interactive(text: str) -> str:
    word = text.strip().lower()
    if word in ("only", "yes", "no", "y", "n"):
        return {"y": "yes", "n": "no"}.get(word, word)
    raise Wrong("expected YES, NO or ONLY")


def _exclusive(text: str) -> bool:
    return True if text.strip().upper().startswith("CU") else v.switch(text)


def _reserve(memory: bool) -> Honoured:
    def read(text: str, site: Site) -> Fields:
        found = _RESERVE.match(text.strip())
        if not found:
            raise Wrong("expected MAX_RESERVE_TIME[dispatch turns]")
        fields: Fields = {"slot_reserve_s": int(found[1]) * site.turn_s}
        return {**fields, "reserves_memory": True} if memory else fields

    what = "slots and memory" if memory else "slots"
    return Honoured(read, f"`MAX_RESERVE_TIME[n]`: a blocked parallel job keeps free {what} for n dispatch turns")


def _exit_values(text: str) -> str:
    try:
        exit_values.parse(text)
    except Refused as error:
        raise Wrong(str(error)) from None
    return text.strip()


def _success_values(text: str) -> str:
    for word in text.split():
        first, dash, last = word.partition("-")
        low = v.integer(first, 0, 255)
        if v.integer(last, 0, 255) < low if dash else False:
            raise Wrong(f"{word}: the first exit code is above the last one")
    return text.strip()


def _backfill(text: str, site: Site) -> Fields:
    return {"backfill": v.switch(text)}


def _preemption(text: str, site: Site) -> Fields:
    at, fields = 0, {}
    while at < len(text):
        found = _PREEMPTION.match(text, at)
        if not found:
            raise Wrong("expected PREEMPTIVE[[queue+n ...]], PREEMPTABLE[[queue ...]] or both")
        fields[found[1].lower()] = None if found[2] is None else _queue_levels(found[2], site)
        at = found.end()
    return {"preemption": fields}


def _queue_levels(text: str, site: Site) -> tuple[tuple[str, int], ...]:
    levels = []
    for word in text.split():
        name, plus, level = word.partition("+")
        if plus and not level.isdigit():
            raise Wrong(f"{word}: expected a number after the +")
        levels.append((_queue(name, site), int(level or 0)))
    return tuple(levels)


def _queue(name: str, site: Site) -> str:
    if name not in site.queue_names:
        raise Wrong(f"{name}: there is no such queue")
    return name


def _queue_list(text: str, site: Site) -> Fields:
    return {"fairshare.queues": tuple(_queue(name, site) for name in text.split())}


def _group(text: str, site: Site) -> Fields:
    return {"group": tuple(_queue(name, site) for name in text.replace(",", " ").split())}


_ORDERS = [order.name.lower() for order in JobOrder]


def _order(text: str) -> JobOrder:
    try:
        return JobOrder(text.strip().lower().replace("_", " "))
    except ValueError:
        raise Wrong(f"expected {', '.join(_ORDERS[:-1])} or {_ORDERS[-1]}") from None


def _round_robin(text: str, site: Site) -> Fields:
    return {"order": JobOrder.ROUND_ROBIN} if v.switch(text) else {}


def _factor(field: str, about: str) -> Honoured:
    return sets(f"fairshare.{field}", v.decimal, about)


def _nice(text: str) -> int:
    return v.integer(text, -20, 20)


def factors() -> dict[str, Honoured]:
    """Declare the parameters of dynamic priority, the same in a queue and (in lsb.params) for all queues."""
    return {
        "CPU_TIME_FACTOR": _factor("cpu_time_factor", "weight of CPU time in the dynamic priority"),
        "RUN_TIME_FACTOR": _factor("run_time_factor", "weight of run time"),
        "RUN_JOB_FACTOR": _factor("run_job_factor", "weight of slots in use"),
        "COMMITTED_RUN_TIME_FACTOR": _factor("committed_run_time_factor", "weight of run limits still to be used"),
        "GPU_RUN_TIME_FACTOR": _factor("gpu_run_time_factor", "weight of the run time of GPUs"),
        "HIST_HOURS": _factor("hist_hours", "hours after which use counts a tenth; 0: it never fades"),
        "ENABLE_HIST_RUN_TIME": sets("fairshare.is_run_time_historic", v.switch, "run time of ended jobs counts"),
        "RUN_TIME_DECAY": sets("fairshare.does_run_time_decay", v.switch, "run time fades as CPU time does"),
    }


def around_limits() -> dict[str, Honoured]:
    """Declare what holds for all commands before and after jobs, for all queues or in a profile."""
    return {
        "JOB_PREPROC_TIMEOUT": sets("around.pre_limit_s", lambda text: 60.0 * v.integer(text, 1),
                                    "minutes that one pre-execution command may take; no bound"),
        "JOB_POSTPROC_TIMEOUT": sets("around.post_limit_s", lambda text: 60.0 * v.integer(text, 1),
                                     "minutes that one post-execution command may take; no bound, and an hour for a "
                                     "job's own"),
        "JOB_INCLUDE_POSTPROC": sets("around.includes_post", v.switch,
                                     "Y: a job ends with its post-execution commands, and runs until then; N"),
    }  # fmt: skip


def preexec_retries() -> dict[str, Honoured | Ignored]:
    """Declare what becomes of a job whose pre-execution command fails, the same in a queue and for all queues."""
    one_cluster = missed("one cluster only: LOCAL_MAX_PREEXEC_RETRY bounds the tries")
    return {
        "LOCAL_MAX_PREEXEC_RETRY": sets("around.tries_max", lambda text: v.integer(text, 1),
                                        "failures in a row of a job's pre-execution command after which it is held"),
        "LOCAL_MAX_PREEXEC_RETRY_ACTION": sets("around.exits", _exits, "SUSPEND, or EXIT: it is ended; SUSPEND"),
        **dict.fromkeys(("MAX_PREEXEC_RETRY", "REMOTE_MAX_PREEXEC_RETRY"), one_cluster),
        "PREEXEC_EXCLUDE_HOST_EXIT_VALUES": sets(
            "around.excluding", _excluding, "exit codes of pre-execution commands after which the job avoids the host: "
            "from 1 to 255 but 99, `all`, `all ~code ...` or `none`; none"
        ),
    }  # fmt: skip


def _excluding(text: str) -> frozenset[int]:
    if text.lower() == "none":
        return frozenset()
    try:
        found = exit_values.parse(text)
    except Refused:
        found = exit_values.Requeue()
    never = frozenset({0, exit_values.ABORT})
    if found.excluding or not found.codes - never or (found.codes & never and "all" not in text.lower()):
        raise Wrong("expected exit codes from 1 to 255 but 99, all, all ~code ... or none")
    return found.codes - never


def _exits(text: str) -> bool:
    action = v.words(text, "SUSPEND", "EXIT")
    if len(action) != 1:
        raise Wrong("expected SUSPEND or EXIT")
    return "EXIT" in action


def gpu_idle() -> dict[str, Honoured]:
    """Declare the parameters about idle GPUs, the same in a queue and (in lsb.params) for all queues."""
    return {
        "GPU_IDLE_TIME": sets("gpu_idle.warn_s", lambda text: float(v.integer(text)),
                              "seconds of a job's GPU at idle power until a warning; 0: none. Cluster: 1800"),
        "GPU_IDLE_POWER": Honoured(lambda text, site: _idle_power(text),
                                   "power of an idle GPU: `150` watts, or `10%` of the way from idle to limit power"),
        "GPU_IDLE_LIMIT": Honoured(lambda text, site: _idle_limit(text),
                                   "`seconds [requeue]`: jobs all of whose GPUs are idle for so long are ended"),
    }  # fmt: skip


def _idle_power(text: str) -> Fields:
    number = text.removesuffix("%").strip()
    if not number.isdecimal() or not 0 < int(number) <= (99 if text.endswith("%") else 100_000):
        raise Wrong("expected watts, as 150, or a percentage from 1 to 99, as 10%")
    return {"gpu_idle.fraction": int(number) / 100} if text.endswith("%") else {"gpu_idle.power_w": float(number)}


def _idle_limit(text: str) -> Fields:
    seconds, _, action = text.partition(" ")
    if action.strip().lower() not in ("", "requeue"):
        raise Wrong("expected seconds, and perhaps the word requeue")
    return {"gpu_idle.limit_s": float(v.integer(seconds)), "gpu_idle.requeues": bool(action.strip())}


def around_rule(fields: Fields) -> AroundJob:
    """Build the rule from the fields that begin with ``around``."""
    return AroundJob(**part(fields, "around."))


def gpu_idle_rule(fields: Fields) -> GpuIdleRule:
    """Build the rule from the fields of ``gpu_idle``."""
    return GpuIdleRule(**part(fields, "gpu_idle."))


_LIMIT = "`[default] maximum`"
IN_NO_CONTAINER = (
    "lava runs in images only tasks whose job file names one; so that none runs outside of its container, new jobs are "
    "refused, and those that wait in such a queue go on waiting"
)
CONTAINER = sets("defaults.container", str.strip, IN_NO_CONTAINER)
QUEUE: Table = {
    "QUEUE_NAME": sets("name", str, "the queue's name; required"),
    "PRIORITY": sets("priority", lambda text: v.integer(text, 1), "higher goes first; 1"),
    "DESCRIPTION": sets("description", lambda text: text[:4096], "shown by `bqueues -l`"),
    "USERS": Honoured(lambda text, site: {"users": names.users(text, site)}, "who may submit: users, groups, `all ~u`"),
    "HOSTS": Honoured(_hosts, "where jobs run: hosts, groups, ranges, `all ~h`; `name+n`, `others+n` are preferred"),
    "ADMINISTRATORS": Honoured(
        _administrators,
        "users who may open and close it, and control its jobs: end, stop, resume, requeue, move, migrate and signal "
        "them; not change them, nor read their output",
    ),
    "NICE": sets("nice", _nice, "nice value of its jobs: -20 to 20"),
    "QJOB_LIMIT": sets("slot_limit", v.integer, "slots of all its jobs"),
    "UJOB_LIMIT": sets("user_slot_limit", v.integer, "slots of each user"),
    "PJOB_LIMIT": sets("processor_slot_limit", v.decimal, "slots for each processor of a host"),
    "HJOB_LIMIT": sets("host_slot_limit", v.integer, "slots on each host"),
    "PROCLIMIT": Honoured(_task_limit, "`[minimum [default]] maximum` of a job's size"),
    "TASKLIMIT": Honoured(_task_limit, "the newer name of PROCLIMIT"),
    "CPULIMIT": Honoured(
        lambda text, site: {"rlimit.cpu": v.default_and_most_s(text)}, f"{_LIMIT}, `[hours:]minutes` of CPU time"
    ),
    "RUNLIMIT": Honoured(_run_limit, f"{_LIMIT}, `[hours:]minutes`; never scaled by CPU factors"),
    "MEMLIMIT": Honoured(_memory_limit, f"{_LIMIT} of memory, in LSF_UNIT_FOR_LIMITS or with a unit"),
    "DATALIMIT": _size_limit("data", is_kib=True),
    "STACKLIMIT": _size_limit("stack"),
    "FILELIMIT": _size_limit("fsize", is_kib=True),
    "CORELIMIT": _size_limit("core", least=0),
    "SWAPLIMIT": _size_limit("swap", of="memory and swap of all processes of a job on a host"),
    "PROCESSLIMIT": _count_limit("nproc", "processes"),
    "THREADLIMIT": _count_limit("threads", "threads"),
    "RES_REQ": Honoured(_requirement, "joined with each job's `-R`"),
    **gpu_idle(),
    "GPU_REQ": sets("defaults.gpu_requirement", v.gpu_requirement, "for jobs without `-gpu`, and what `-gpu -` means"),
    "STOP_COND": _condition("stop_condition", "a select expression: jobs on such hosts are suspended"),
    "RESUME_COND": _condition("resume_condition", "a select expression: they go on"),
    "RUN_WINDOW": sets("run_windows", v.windows, "when its jobs may run"),
    "DISPATCH_WINDOW": sets("dispatch_windows", v.windows, "when its jobs may start"),
    "EXCLUSIVE": sets("is_exclusive_allowed", _exclusive, "Y: `bsub -x` is allowed; N. `CU[...]` counts as Y"),
    "INTERACTIVE": sets("interactive", _interactive, "YES, NO or ONLY interactive jobs"),
    "BACKFILL": Honoured(_backfill, "Y: one blocked job holds a reservation, others start early if they end in time"),
    "LAVA_BACKFILL_DEPTH": sets("backfill_depth", lambda text: v.integer(text, 0, 1_000_000),
                                "lava's own: so many blocked jobs hold a reservation; BACKFILL = Y is 1"),
    "LAVA_JOB_ORDER": sets(
        "order", _order, f"lava's own: {', '.join(f'`{one}`' for one in _ORDERS[:-1])} or `{_ORDERS[-1]}`"
    ),
    "LAVA_STRICT_ORDER": sets("in_order", v.switch, "lava's own: Y: no job starts before one ahead of it"),
    "ROUND_ROBIN_POLICY": Honoured(_round_robin, "Y: the user with the fewest slots in use goes first"),
    "SLOT_RESERVE": _reserve(memory=False),
    "RESOURCE_RESERVE": _reserve(memory=True),
    "SLOT_MEMORY_RESERVE": _reserve(memory=True),
    "IGNORE_DEADLINE": sets("ignores_deadline", v.switch, "Y: jobs start even if a window ends before they would"),
    "FAIRSHARE": Honoured(
        lambda text, site: {"fairshare.shares": shares.queue_shares(text, site)}, "`USER_SHARES[[name,shares] ...]`"
    ),
    "USER_SHARES": Honoured(
        lambda text, site: {"fairshare.shares": shares.share_list(text, site)}, "`[name,shares] ...` as OpenLava has it"
    ),
    "FAIRSHARE_QUEUES": Honoured(_queue_list, "queues that share this one's tree"),
    **factors(),
    "PREEMPTION": Honoured(_preemption, "`PREEMPTIVE[[queue+n ...]]`, `PREEMPTABLE[[queue ...]]`; no list: all"),
    "PREEMPT_DELAY": sets("preempt_delay_s", lambda text: float(v.integer(text)),
                          "seconds that a job waits before it preempts"),
    "MAX_JOB_REQUEUE": sets("requeue_limit", v.integer, "so often a job is requeued by its exit code"),
    "REQUEUE_EXIT_VALUES": sets("defaults.requeue_exit_values", _exit_values, "exit codes that requeue a job"),
    "SUCCESS_EXIT_VALUES": sets("defaults.success_exit_values", _success_values, "exit codes beside 0 that make a job "
                                "DONE: `3 10-12`; those of REQUEUE_EXIT_VALUES come first"),
    "RERUNNABLE": sets("rerunnable", v.switch, "Y: jobs run again when a reboot or the lease of a host has ended them"),
    "PRE_EXEC": sets("defaults.pre_exec", str.strip, "a command on the first host before each job, and before its own "
                     "`-E`: see [pre- and post-execution commands](pre-post-exec.md)"),
    "POST_EXEC": sets("defaults.post_exec", str.strip, "a command there after each job, and after its own `-Ep`"),
    "HOST_PRE_EXEC": sets("around.host_pre", str.strip, "a command on each host of a job before it"),
    "HOST_POST_EXEC": sets("around.host_post", str.strip, "a command on each host of a job after it"),
    "PRE_POST_EXEC_USER": sets("around.user", v.account_name, "the user that these commands run as; the job's"),
    **preexec_retries(),
    "JOB_STARTER": sets("defaults.job_starter", str.strip, "a command that starts the job's; `%USRCMD` is its place"),
    "JOB_CONTROLS": sets("job_controls", v.job_controls, "`SUSPEND[...] RESUME[...] TERMINATE[...]`: a signal "
                         "such as SIGTSTP, a command, or CHKPNT: see [job controls](job-controls.md)"),
    "JOB_ACTION_WARNING_TIME": sets("warning_time_s", v.warning_time, "[hours:]minutes, or seconds as 30s, between the "
                                    "[notice](job-socket.md#notices) to a job and its end; `bsub -wt` names another"),
    "JOB_WARNING_ACTION": sets("warning_action", v.warning_action, "the signal or command of that notice, or CHKPNT; "
                               "`bsub -wa` names another"),
    "HEALTH_CHECKS": sets("checks", v.health_checks, "lava's own: `BEFORE[program] AFTER[program] BETWEEN[program] "
                          "LIMIT[seconds]`: see [health checks](../howto/health-checks.md)"),
    "TERMINATE_WHEN": sets(
        "terminate_when", lambda text: v.words(text, "WINDOW", "LOAD", "PREEMPT"),
        "WINDOW, LOAD: jobs are ended instead of suspended; "
        "PREEMPT: they are requeued"
    ),
    "JOB_ACCEPT_INTERVAL": Honoured(
        lambda text, site: {"accept_interval": v.integer(text) * site.turn_s}, "turns between two starts on one host",
    ),
    "DEFAULT_USER_GROUP": Honoured(_default_group, "for jobs without `-G`"),
    "DEFAULT_HOST_SPEC": Ignored("limits are never scaled by CPU factors"),
    "NEW_JOB_SCHED_DELAY": Ignored("a new job is looked at at once"),
    "DISPATCH_ORDER": Ignored("queues of equal priority are served together"),
    "CHKPNT": sets("checkpoints", v.checkpoints, "a directory and perhaps minutes: the [checkpoints](checkpoints.md) "
                   "of jobs without `bsub -k`"),
    "MIG": sets("migration_s", v.minutes, "minutes that a rerunnable or checkpointable job may be suspended by the "
                "system, before it [migrates](checkpoints.md#migration); 0: it does at once"),
    "CHUNK_JOB_SIZE": missed("each job starts by itself, which is cheap enough; none waits for another", v.above_one),
    **dict.fromkeys(("ENQUE_INTERACTIVE_AHEAD", "RELAX_JOB_DISPATCH_ORDER"),
                    Ignored("starting a job is cheap enough without")),
    "APS_PRIORITY": sets("absolute", absolute_priority, "`WEIGHT[[factor, value] ...] LIMIT[[factor, value] ...] "
                         "GRACE_PERIOD[[factor, value] ...]`: see "
                         "[absolute priorities](ordering.md#by-absolute-priority)"),
    "QUEUE_GROUP": Honoured(_group, "queues whose pending jobs are ordered with this one's, by its APS_PRIORITY and at "
                            "its PRIORITY"),
    **dict.fromkeys(("USE_PRIORITY_IN_POOL", "SLA_GUARANTEES_IGNORE", "OWNERSHIP"),
                    missed("no such policy; see capacity pools")),
    "CONTAINER": CONTAINER,
    **dict.fromkeys(("DOCKER_IMAGE_AFFINITY", "EXEC_DRIVER"),
                    missed("a job names its image itself: `image` of its job file")),
    **dict.fromkeys(("EXTSCHED", "DEFAULT_EXTSCHED", "MANDATORY_EXTSCHED", "CSM_REQ", "CSM_VALID_SIZE", "SMT"),
                    missed("no scheduler of another vendor's machines")),
    "USE_PAM_CREDS": missed("jobs have the limits that they ask for, none of PAM's"),
    **dict.fromkeys(("IMPT_JOBBKLG", "MAX_RSCHED_TIME", "MC_FAST_RESCHEDULE"), missed("one cluster only")),
    "DISPATCH_BY_QUEUE": Ignored("each pass sends its decisions at once"),
    **dict.fromkeys(("RESRSV_LIMIT", "MAX_JOB_PREEMPT", "JOB_SIZE_LIST", "NODELIST", "SLOT_POOL", "SLOT_SHARE",
                     "MAX_SLOTS_IN_POOL"),
                    missed("no such policy")),
    "JOB_OVERRUN": sets("exceptions.overrun_s", lambda text: float(v.minutes_s(text)[0]),
                        f"`[hours:]minutes` that a job may run before it is an {_EXCEPTION}"),
    "JOB_UNDERRUN": sets("exceptions.underrun_s", lambda text: float(v.minutes_s(text)[0]),
                         "`[hours:]minutes`: a job that fails sooner is told to eadmin"),
    "JOB_IDLE": sets("exceptions.idle_factor", lambda text: v.decimal(text, 0.0, 1.0),
                     f"CPU time over run time, less of which makes a running job an {_EXCEPTION}"),
    **dict.fromkeys(("ELIGIBLE_PEND_TIME_LIMIT", "PEND_TIME_LIMIT"), missed("no job is told to wait too long")),
    "INTERRUPTIBLE_BACKFILL": missed("backfilled jobs are not killed"),
    "RESIZABLE_JOBS": missed("a job is resizable if it says so: bsub -ar"),
    "RESIZE_NOTIFY_CMD": missed("a resizable job says what is to be run: bsub -rnc"),
    **dict.fromkeys(("RC_HOSTS", "RC_ACCOUNT", "RC_DEMAND_POLICY"), missed("no hosts from clouds")),
    **dict.fromkeys(("NQS_QUEUES", "SNDJOBS_TO", "RCVJOBS_FROM"), missed("one cluster only")),
    **batch.QUEUE,
}  # fmt: skip
SECTIONS: Mapping[str, Table | Ignored] = {"Queue": QUEUE}


def warn_of_jobs(row: Row, site: Site) -> None:
    """Warn of a container in which lava cannot keep the jobs, and of limits that are to be scaled."""
    cell = row.get("CONTAINER")
    if cell is not None and cell.text:
        site.warn(cell, f"CONTAINER: {IN_NO_CONTAINER}")
    for name in ("RUNLIMIT", "CPULIMIT"):
        cell = row.get(name)
        if cell is not None and "/" in cell.text:
            site.warn(cell, f"{name} = {cell.text}: the host has no effect: limits are never scaled by CPU factors")


def threshold_of(name: str, site: Site) -> Honoured | None:
    """Declare the column or parameter of a load index, built-in or the site's own."""
    index = ALIASES.get(name.lower(), name.lower())
    own = next((known for known in site.resources if known.lower() == index), None)
    if own is not None and site.resources[own].kind is ResourceKind.NUMERIC:
        index = own
    elif index not in INDICES:
        return None
    return Honoured(
        lambda text, site: {"thresholds": (v.threshold(index, text, site.size_units),)}, "`loadSched/loadStop`"
    )


def read_queues(document: Document, site: Site, plain: Fields) -> tuple[Queue, ...]:
    """Read the queues of the file. ``plain`` are fields that lsb.params sets for all of them."""
    check_sections(document, SECTIONS, site)
    rows = [(section, row) for section in document.of("Queue") for row in section.rows]
    cells = [(row, required(row, "QUEUE_NAME", section, site)) for section, row in rows]
    named = _named(cells, site)
    site.queue_names = frozenset(named)
    found = {name: site.read(row, QUEUE, extra=lambda word: threshold_of(word, site)) for name, row in named.items()}
    groups = {name: fields.pop("group") for name, fields in found.items() if "group" in fields}
    queues = {
        name: replace(_queue_of({**plain, **fields}), written=_written(named[name], site))
        for name, fields in found.items()
    }
    _share_trees(queues, found)
    join_queues(queues, groups, named, site)
    for name, queue in queues.items():
        check_absolute(queue, "fairshare.queues" in found[name], named[name], site)
    _preempt(queues, found, named, site)
    for row in named.values():
        warn_of_jobs(row, site)
    return tuple(queues.values())


def _written(row: Row, site: Site) -> tuple[tuple[str, str], ...]:
    """Return the effective settings as written; names of groups with a slash behind them."""
    groups = {"USERS": site.user_groups, "ADMINISTRATORS": site.user_groups, "HOSTS": site.host_groups}
    found = []
    for name, cell in row.items():
        if cell.text and isinstance(QUEUE.get(name), Honoured):
            words = [_with_slash(word, groups[name]) for word in cell.text.split()] if name in groups else []
            found.append((name, " ".join(words) or cell.text))
    return tuple(found)


def _with_slash(word: str, groups: Mapping[str, Names]) -> str:
    name, plus, level = word.partition("+")
    bare = name.removeprefix("~").removesuffix("/")
    return f"{name.removesuffix('/')}/{plus}{level}" if bare in groups else word


def _named(cells: list[tuple[Row, str]], site: Site) -> dict[str, Row]:
    """Return rows by queue name, without those with invalid names."""
    named: dict[str, Row] = {}
    for row, name in cells:
        if not name:
            continue
        try:
            if name != DEFAULT_QUEUE:
                names.check_name(name, "queue")
        except Wrong as error:
            site.wrong(row["QUEUE_NAME"], f"QUEUE_NAME = {name}: {error}")
            continue
        if name in named:
            site.wrong(row["QUEUE_NAME"], f"QUEUE_NAME = {name}: there is a queue of this name already")
            continue
        named[name] = row
    return named


def _queue_of(fields: Fields) -> Queue:
    """Build a queue from its fields, with LSF's defaults where they differ from the default policy's."""
    own = {name: value for name, value in fields.items() if "." not in name and name not in ("backfill", "preemption")}
    own.setdefault("is_exclusive_allowed", False)
    if fields.get("backfill") and "backfill_depth" not in own:
        own["backfill_depth"] = 1
    defaults = part(fields, "defaults.")
    rlimits = tuple((name, *limits) for name, limits in sorted(part(fields, "rlimit.").items()))
    fairshare = part(fields, "fairshare.")
    if "shares" in fairshare:
        own["fairshare"] = Fairshare(**{**fairshare, "queues": (fields["name"], *fairshare.get("queues", ()))})
    around = around_rule(fields)
    return Queue(
        **own,
        gpu_idle=gpu_idle_rule(fields),
        around=around,
        defaults=JobDefaults(**defaults, rlimits=rlimits),
        exceptions=ExceptionRule(**part(fields, "exceptions.")),
    )


def part(fields: Fields, prefix: str) -> dict[str, Any]:
    """Return the fields of one prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in fields.items() if name.startswith(prefix)}


def _share_trees(queues: dict[str, Queue], found: dict[str, Fields]) -> None:
    """Give queues named in FAIRSHARE_QUEUES the fairshare tree of the queue that names them."""
    for name in found:
        fairshare = queues[name].fairshare
        for other in fairshare.queues[1:] if fairshare is not None and "fairshare.queues" in found[name] else ():
            queues[other] = replace(queues[other], fairshare=fairshare)


def _preempt(queues: dict[str, Queue], found: dict[str, Fields], rows: dict[str, Row], site: Site) -> None:
    """Set the preemption pairs from both ends: PREEMPTIVE of the higher queue and PREEMPTABLE of the lower one."""
    pairs: dict[tuple[str, str], int] = {}
    for name, fields in found.items():
        said = fields.get("preemption", {})
        cell = rows[name].get("PREEMPTION", Cell("", 0))
        if "preemptive" in said:
            for low, level in said["preemptive"] or _lower(queues, name):
                _pair(pairs, queues, name, low, level, cell, site)
        if "preemptable" in said:
            for high, _ in said["preemptable"] or _higher(queues, name):
                _pair(pairs, queues, high, name, pairs.get((high, name), 0), cell, site)
    for high in queues:
        below = tuple((low, level) for (one, low), level in pairs.items() if one == high)
        above = frozenset(one for (one, low) in pairs if low == high)
        queues[high] = replace(queues[high], preempts=below, is_preemptable=bool(above), preemptable_by=above)


def _pair(
    pairs: dict[tuple[str, str], int], queues: dict[str, Queue], high: str, low: str, level: int, cell: Cell, site: Site
) -> None:
    if queues[high].priority <= queues[low].priority:
        site.warn(cell, f"PREEMPTION: {high} does not preempt {low}, whose PRIORITY is not below its own")
        return
    pairs[high, low] = level


def _lower(queues: dict[str, Queue], name: str) -> list[tuple[str, int]]:
    return [(other.name, 0) for other in queues.values() if other.priority < queues[name].priority]


def _higher(queues: dict[str, Queue], name: str) -> list[tuple[str, int]]:
    return [(other.name, 0) for other in queues.values() if other.priority > queues[name].priority]
