"""lsb.params: parameters of the whole cluster."""

from collections.abc import Mapping

from lavad.config import queues
from lavad.config import values as v
from lavad.config.grammar import Document, Row
from lavad.config.ignored import batch
from lavad.config.site import Fields, Honoured, Ignored, Site, Table, check_sections, missed, sets
from lavad.config.values import Wrong
from lavad.core.language import job_groups
from lavad.core.model.reasons import Refused


def _priority_over_time(text: str) -> Fields:
    step, every_s = v.per_time(text)
    return {"priority_step": step, "priority_step_s": every_s}


def _unit_types(text: str) -> tuple[str, ...]:
    return tuple(word.removesuffix("!") for word in text.split())


def _default_unit_type(text: str) -> str:
    """Return the compute unit type marked by ``!``, else the first."""
    marked = [word.removesuffix("!") for word in text.split() if word.endswith("!")]
    if len(marked) > 1:
        raise Wrong("expected one type with !")
    return next(iter((*marked, *_unit_types(text))), "")


def _history_access(text: str) -> str:
    chosen = v.words(text, "N", "Y", "G")
    if len(chosen) != 1:
        raise Wrong("expected one of N Y G")
    return next(iter(chosen))


def _warn_of_open_history(rows: list[Row], site: Site) -> None:
    """Warn if bjobs hides jobs that bhist shows to all users."""
    named = [row for row in rows if "SECURE_JOB_INFO_LEVEL" in row]
    if named and not any("SECURE_INFODIR_USER_ACCESS" in row for row in rows):
        cell = named[-1]["SECURE_JOB_INFO_LEVEL"]
        if cell.text.strip() != "0":
            site.warn(cell, "SECURE_JOB_INFO_LEVEL: bhist shows all jobs without SECURE_INFODIR_USER_ACCESS = Y or G")


def _job_group(text: str) -> str:
    try:
        job_groups.check_depth(job_groups.checked(text.strip()))
    except Refused as error:
        raise Wrong(str(error)) from None
    return text.strip()


_LENT = ("mem", "ngpus_physical")


def _preemptable(text: str, site: Site) -> Fields:
    """Read what suspended jobs lend; another resource of lsf.shared, such as a licence, stays with its job."""
    kept = [word for word in text.split() if word in site.resources and word.lower() not in _LENT]
    if kept:
        site.asides.append(f"{' '.join(kept)}: not lent by suspended jobs; only {' and '.join(_LENT)} are")
    lent = " ".join(word for word in text.split() if word not in kept)
    return {"preemptable_resources": v.words(lent, *_LENT) if lent or not kept else frozenset()}


EXIT_RATE_TYPES = ("JOBEXIT", "JOBEXIT_NONLSF", "JOBINIT", "HPCINIT")
_INTERNALS = "how LSF's own daemons work inside"
_EVENTS = "history is kept in the database"
PARAMETERS: Table = {
    "DEFAULT_QUEUE": sets("default_queues", lambda text: tuple(text.split()), "queues for jobs without `-q`: the first "
                          "that takes the job"),
    "DEFAULT_PROJECT": sets("default_project", str.strip, "for jobs without `-P`"),
    "DEFAULT_APPLICATION": sets("default_application", str.strip, "application profile for jobs without `-app`"),
    "DEFAULT_JOBGROUP": sets("default_job_group", _job_group, "job group for jobs without `-g`; `%u` in it is the "
                             "user, `%p` the project"),
    "MBD_SLEEP_TIME": Honoured(lambda text, site: {"turn_s": float(v.integer(text, 1))},
                               "length of a dispatch turn, in which other parameters count; 60. "
                               "Jobs start at once all the same"),
    "JOB_ACCEPT_INTERVAL": Honoured(
        lambda text, site: {"queue.accept_interval": v.integer(text) * site.turn_s},
        "turns between two starts on one host; 0, not LSF's 1"),
    "CLEAN_PERIOD": sets("clean_period_s", lambda text: float(v.integer(text, 1)),
                         "seconds that ended jobs stay in `bjobs -a`; 3600"),
    "MAX_JOBID": Ignored("numbers are never used twice: the history is kept by them"),
    "MAX_JOB_ARRAY_SIZE": sets("max_array_size", lambda text: v.integer(text, 1),
                               "largest index of an array; 1000, without lsb.params 1000000"),
    "JOB_DEP_LAST_SUB": sets("requires_last_dependency", v.switch, "Y: a name in `-w` is the newest job of that name"),
    "MAX_USER_PRIORITY": sets("user_priority_max", lambda text: v.integer(text, 1), "the most that `-sp` takes"),
    "JOB_PRIORITY_OVER_TIME": Honoured(lambda text, site: _priority_over_time(text), "`increment/minutes`"),
    "RESOURCE_RESERVE_PER_TASK": sets("reserves_per_task", v.switch, "Y: `rusage` is for each task"),
    "RESOURCE_RESERVE_PER_SLOT": sets("reserves_per_task", v.switch, "the older name of it"),
    "SLOT_RESOURCE_RESERVE": sets("reserves_per_task", v.switch, "OpenLava's name of it"),
    "COMPUTE_UNIT_TYPES": Honoured(
        lambda text, site: {"compute_unit_types": _unit_types(text), "compute_unit_type": _default_unit_type(text)},
        "kinds of compute units, the smallest first; `!` marks the one that `cu[...]` means without `type`"),
    "MAX_PEND_JOBS": sets("pending_jobs", v.integer, "waiting jobs of the cluster"),
    "MAX_PEND_SLOTS": sets("pending_slots", v.integer, "slots that waiting jobs ask for"),
    "SUB_TRY_INTERVAL": sets("retry_submit_s", lambda text: float(v.integer(text, 1)),
                             "seconds until `bsub` tries again after that limit; 60"),
    "ABS_RUNLIMIT": Ignored("run limits are wall-clock time, never scaled: as Y"),
    **queues.factors(),
    **queues.gpu_idle(),
    "DEFAULT_LIMIT_IGNORE_USER_GROUP": sets("default_limits_ignore_groups", v.switch,
                                            "Y: the `default` row of lsb.users is for users only"),
    "DEFAULT_HOST_SPEC": Ignored("limits are never scaled by CPU factors"),
    "JOB_TERMINATE_INTERVAL": sets("terminate_interval_s", lambda text: float(v.integer(text, 1)),
                                   "seconds between INT, TERM and KILL; `LAVA_TERMINATE_INTERVAL` of lava.conf, 10"),
    "SBD_SLEEP_TIME": Ignored("LAVA_USAGE_INTERVAL in lava.conf"),
    "MAX_SBD_FAIL": missed("LAVA_SILENT_AFTER in lava.conf does it"),
    "DEFAULT_USER_GROUP": missed("no such default"),
    **dict.fromkeys(("DEFAULT_SLA_VELOCITY", "ENABLE_DEFAULT_EGO_SLA", "SIMPLIFIED_GUARANTEE"),
                    missed("capacity pools keep the guarantees of service classes")),
    **dict.fromkeys(("NEW_JOB_SCHED_DELAY", "JOB_SCHEDULING_INTERVAL", "MAX_SCHED_STAY", "JOB_DISPATCH_PACK_SIZE",
                     "RELAX_JOB_DISPATCH_ORDER", "MAX_CONCURRENT_QUERY"),
                    Ignored("jobs are looked at as soon as something changes")),
    **dict.fromkeys(("FRESH_PERIOD", "COND_CHECK_TIME", "RETRY_INTERVAL", "MAX_RETRY", "MAX_SBD_CONNS",
                     "RUSAGE_UPDATE_RATE", "RUSAGE_UPDATE_PERCENT", "SCHE_RAW_LOAD",
                     "SHARED_RESOURCE_UPDATE_FACTOR", "MBD_REFRESH_TIME", "MBD_QUERY_CPUS", "MBD_USE_EGO_MXJ"),
                    Ignored(_INTERNALS)),
    "MAX_JOB_NUM": sets("events_jobs_max", lambda text: v.integer(text, 1),
                        "ended jobs in [lsb.events](ports-and-files.md) before a new one is begun; 10000"),
    "MIN_SWITCH_PERIOD": sets("events_switch_s", lambda text: float(v.integer(text)),
                              "seconds between two new lsb.events at least; 60, and never less"),
    "ACCT_ARCHIVE_AGE": sets("acct_archive_s", lambda text: 86400.0 * v.integer(text, 1),
                             "days after which a new lsb.acct is begun"),
    "ACCT_ARCHIVE_SIZE": sets("acct_archive_kib", lambda text: v.integer(text, 1),
                              "KB of lsb.acct after which a new one is begun"),
    "MAX_ACCT_ARCHIVE_FILE": sets("acct_archives_max", lambda text: v.integer(text, 1),
                                  "old lsb.acct files that are kept; all"),
    "ACCT_ARCHIVE_TIME": missed("ACCT_ARCHIVE_AGE and ACCT_ARCHIVE_SIZE say when a new lsb.acct is begun"),
    **dict.fromkeys(("ENABLE_EVENT_STREAM", "MAX_EVENT_STREAM_SIZE", "EVENT_UPDATE_INTERVAL", "ALLOW_EVENT_TYPE",
                     "JOB_SWITCH2_EVENT"), Ignored(_EVENTS)),
    **dict.fromkeys(("JOB_ATTA_DIR", "MAX_JOB_MSG_NUM", "MAX_INFO_DIRS"),
                    Ignored("scripts and messages are in the database")),
    **dict.fromkeys(("JOB_DISTRIBUTE_ON_HOST", "RESERVE_BY_STARTTIME"), missed("no such policy")),
    **dict.fromkeys(("DEFAULT_JOB_CWD", "DEFAULT_JOB_OUTDIR"), missed("a job says it: bsub -cwd, bsub -outdir")),
    **dict.fromkeys(("MAX_CONCURRENT_JOB_QUERY", "LSB_SYNC_HOST_STAT_LIM", "EVALUATE_JOB_DEPENDENCY",
                     "EVALUATE_JOB_DEPENDENCY_TIMEOUT"), Ignored(_INTERNALS)),
    "PRIVILEGED_USER_FORCE_BKILL": missed("owners, too, may remove their jobs by bkill -r"),
    "BSWITCH_MODIFY_RUSAGE": missed("bswitch changes no rusage of a running job"),
    "ADVRSV_USER_LIMIT": missed("advance reservations of a user are not counted"),
    "SYSTEM_MAPPING_ACCOUNT": missed("accounts are not mapped"),
    "PREEMPTION_WAIT_TIME": missed("PREEMPT_DELAY says how long a job waits before it preempts"),
    "JOB_POSITION_CONTROL_BY_ADMIN": missed("users move their own jobs among their own, administrators among all"),
    "JOB_GROUP_CLEAN": missed("bgdel removes a job group"),
    "CLEAN_PERIOD_DONE": missed("CLEAN_PERIOD counts for all ended jobs"),
    "JOB_SPOOL_DIR": Ignored("job scripts travel with the job"),
    "PG_SUSP_IT": missed("paging by itself suspends nothing"),
    "SCHED_METRIC_ENABLE": sets("samples_performance", v.switch, "Y: `badmin perfmon` is on from the start; N"),
    "SCHED_METRIC_SAMPLE_PERIOD": sets("sample_period_s", lambda text: v.integer(text, 1, 86_400),
                                       "seconds of a sample of `badmin perfmon` that starts so; 60"),
    "DISABLE_UACCT_MAP": Ignored("accounts are not mapped"),
    **dict.fromkeys(("PEND_REASON_UPDATE_INTERVAL", "CONDENSE_PENDING_REASONS", "PEND_REASON_MAX_JOBS",
                     "GROUP_PEND_JOBS_BY"),
                    Ignored("reasons are found when asked for")),
    **dict.fromkeys(("ESTIMATED_RUNTIME", "RUNTIME_ESTIMATION", "ALLOCATION_PLANNER", "ESTIMATOR_CYCLE_TIME"),
                    Ignored("starts are estimated when asked for")),
    **queues.preexec_retries(),
    "PRE_EXEC_DELAY": sets("pre_exec_pause_s", lambda text: float(v.integer(text)),
                           "seconds between two tries of a job whose pre-execution command failed; 30"),
    "ENABLE_USER_RESUME": sets("users_resume", v.switch,
                               "Y: owners may resume jobs that an administrator has suspended; N"),
    "LAVA_REQUEUE_DELAY": sets("requeue_pause_s", lambda text: float(v.integer(text)), "lava's own: seconds that a job "
                               "waits at least which its exit value requeues; 10. 0: it starts again at once"),
    **queues.around_limits(),
    "PREEMPT_DELAY": sets("preempt_delay_s", lambda text: float(v.integer(text)),
                          "seconds that a job waits before it preempts; 0"),
    "LAVA_WARNING_TIME_MAX": sets("warning_time_max_s", lambda text: float(v.integer(text)), "lava's own: seconds that "
                                  "preemption, windows and load wait at most for a job's "
                                  "[notice](job-socket.md#notices); default 300"),
    "MAX_JOB_PREEMPT": sets("preemptions_max", lambda text: v.integer(text, 1), "so often one job may be preempted"),
    "NO_PREEMPT_RUN_TIME": sets("no_preempt_run_s", lambda text: 60.0 * v.integer(text, 1),
                                "minutes after which a running job is left alone"),
    "NO_PREEMPT_FINISH_TIME": sets("no_preempt_finish_s", lambda text: 60.0 * v.integer(text, 1),
                                   "minutes before its run limit in which a job is left alone"),
    "PREEMPTABLE_RESOURCES": Honoured(_preemptable, "what suspended jobs lend besides slots: mem, ngpus_physical"),
    **dict.fromkeys(("PREEMPT_FOR", "PREEMPT_JOBTYPE", "NO_PREEMPT_INTERVAL"),
                    missed("the fewest victims that have run for the shortest time; never exclusive jobs")),
    "PARALLEL_SCHED_BY_SLOT": Ignored("always by slots: as Y"),
    "SECURE_JOB_INFO_LEVEL": sets("job_info_level", lambda text: v.integer(text, 0, 5),
                                  "0 to 5: what users see of others' jobs; 0, all of it. It holds for all that tells "
                                  "of jobs, the groups of `bjgroup`, the users of `busers` and `blimits` included"),
    "SECURE_INFODIR_USER_ACCESS": sets("history_access", _history_access,
                                       "what `bhist` shows: N everything, Y one's own jobs, G as that level says; N"),
    "ENABLE_JOB_INFO_BY_ADMIN_ROLE": Ignored("administrators see all jobs"),
    "GLOBAL_EXIT_RATE": sets("global_exit_rate", v.integer, "EXIT_RATE of hosts without one in lsb.hosts"),
    "JOB_EXIT_RATE_DURATION": sets("exit_rate_period_s", lambda text: 60.0 * v.integer(text, 1),
                                   "minutes in which abnormal ends are counted; 5"),
    "EXIT_RATE_TYPE": sets("exit_rate_types", lambda text: v.words(text, *EXIT_RATE_TYPES),
                           "which ends: JOBEXIT, JOBEXIT_NONLSF, JOBINIT, HPCINIT; JOBEXIT_NONLSF"),
    "EGROUP_UPDATE_INTERVAL": Ignored("egroup runs at start and at badmin reconfig"),
    **dict.fromkeys(("GLOBAL_LIMITS", "MC_RUSAGE_UPDATE_INTERVAL", "MC_RECLAIM_DELAY"), Ignored("one cluster only")),
    "FAIRSHARE_ADJUSTMENT_FACTOR": missed("no plug-ins"),
    "ENABLE_GPU_HIST_RUN_TIME": Ignored("follows ENABLE_HIST_RUN_TIME"),
    "EADMIN_TRIGGER_DURATION": sets("exceptions_told_every_s", lambda text: 60.0 * v.integer(text, 1),
                                    "minutes between two runs of eadmin, which is told of exceptions of jobs; 1"),
    "DETECT_IDLE_JOB_AFTER": sets("idle_after_s", v.minutes, "minutes that a job runs before it may be idle; 20"),
    **dict.fromkeys(("JOB_IDLE", "JOB_OVERRUN", "JOB_UNDERRUN"), missed("a queue of lsb.queues has them")),
    **dict.fromkeys(("STRICT_UG_CONTROL", "ENFORCE_ONE_UG_LIMITS", "ENFORCE_UG_TREE"),
                    missed("limits of all of a user's groups count")),
    "JOB_ARRAY_EVENTS_COMBINE": Ignored(_EVENTS),
    "DIAGNOSE_LOGDIR": Ignored("`badmin diagnose -f` names the file"),
    "NEWJOB_REFRESH": Ignored("queries never wait for the scheduler"),
    **dict.fromkeys(("RC_MAX_REQUESTS", "RC_DEMAND_BUFFER"), Ignored("no hosts from clouds")),
    **batch.PARAMETERS,
}  # fmt: skip
SECTIONS: Mapping[str, Table | Ignored] = {"Parameters": PARAMETERS}
MAX_ARRAY_SIZE = 1000  # LSF's default, where there is an lsb.params


def rows_of(document: Document, site: Site) -> list[Row]:
    """Return the rows of the Parameters sections, and set the length of a dispatch turn."""
    check_sections(document, SECTIONS, site)
    rows = [row for section in document.of("Parameters") for row in section.rows]
    for row in rows:
        units = row.get("COMPUTE_UNIT_TYPES")
        site.unit_types = _unit_types(units.text) if units is not None else site.unit_types
        cell = row.get("MBD_SLEEP_TIME")
        if cell is not None and cell.text.isdigit() and int(cell.text):
            site.turn_s = float(int(cell.text))
    return rows


def read_params(rows: list[Row], site: Site) -> tuple[Fields, Fields, dict[str, str]]:
    """Return (the policy's fields, default fields of queues, the texts as written)."""
    fields: Fields = {"max_array_size": MAX_ARRAY_SIZE}
    for row in rows:
        fields |= site.read(row, PARAMETERS)
    _warn_of_open_history(rows, site)
    plain = {name: value for name, value in fields.items() if name.startswith("fairshare.")}
    if "queue.accept_interval" in fields:
        plain["accept_interval"] = fields["queue.accept_interval"]
    written = {name: cell.text for row in rows for name, cell in row.items() if cell.text}
    own = {name: value for name, value in fields.items() if name.startswith(("around.", "gpu_idle."))}
    own |= {name: value for name, value in fields.items() if "." not in name and name != "turn_s"}
    return own, plain, written
