"""lsb.applications: application profiles, which set for the jobs of one program what a queue sets for all its jobs."""

import re
from collections.abc import Mapping

from lavad.config import names
from lavad.config import values as v
from lavad.config.grammar import Document, Row
from lavad.config.queues import (
    CONTAINER,
    QUEUE,
    around_limits,
    around_rule,
    part,
    preexec_retries,
    warn_of_jobs,
)
from lavad.config.site import Fields, Honoured, Ignored, Site, Table, check_sections, missed, required, sets
from lavad.config.values import Wrong
from lavad.core.model.checkpoints import NO_TERMS, CheckpointTerms
from lavad.core.model.rules.applications import Application
from lavad.core.model.rules.queues import JobDefaults

_VARIABLE = re.compile(r"""\s*([A-Za-z_]\w*)\s*=\s*(?:'([^']*)'|"([^"]*)"|([^\s,'"]*))\s*(?:,|$)""")
_OWN = ("LSB_", "LAVA_")


def _variables(text: str) -> tuple[tuple[str, str], ...]:
    """Read ``NAME='value', NAME='value'``."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _VARIABLE.match(text, at)
        if not match:
            raise Wrong("expected NAME='value', NAME='value' ...")
        if match[1].startswith(_OWN):
            raise Wrong(f"{match[1]}: such a variable is set for each job")
        found[match[1]] = match[2] or match[3] or match[4] or ""
        at = match.end()
    return tuple(found.items())


def _control(kind: str) -> Honoured:
    """Declare what takes the place of one of the queue's JOB_CONTROLS."""
    words = "or a command" if kind == "RESUME" else "a command, or CHKPNT"
    return Honoured(
        lambda text, site: {f"control.{kind}": dict(v.job_controls(f"{kind}[{text.strip()}]"))[kind]},
        f"a signal such as SIGTSTP, {words}, in place of {kind} of the queue's JOB_CONTROLS",
    )


# Read as in a queue; the profile's value comes before the queue's.
_AS_IN_QUEUES = ("NICE", "JOB_STARTER", "REQUEUE_EXIT_VALUES", "SUCCESS_EXIT_VALUES", "MAX_JOB_REQUEUE", "RERUNNABLE",
                 "GPU_REQ", "MIG", "JOB_ACTION_WARNING_TIME", "JOB_WARNING_ACTION")  # fmt: skip
# The same, and the queue's holds, too.
_BESIDE_QUEUES = ("RES_REQ", "PROCLIMIT", "TASKLIMIT", "RUNLIMIT", "MEMLIMIT", "CPULIMIT", "DATALIMIT", "STACKLIMIT",
                  "FILELIMIT", "CORELIMIT", "SWAPLIMIT", "PROCESSLIMIT", "THREADLIMIT")  # fmt: skip
APPLICATION: Table = {
    "NAME": sets("name", str, "the profile's name, for `bsub -app`; required"),
    "DESCRIPTION": sets("description", lambda text: text[:4096], "shown by `bapp -l`"),
    **{name: QUEUE[name] for name in (*_AS_IN_QUEUES, *_BESIDE_QUEUES)},
    "SUSPEND_CONTROL": _control("SUSPEND"),
    "RESUME_CONTROL": _control("RESUME"),
    "TERMINATE_CONTROL": _control("TERMINATE"),
    "ENV_VARS": sets("environment", _variables, "`NAME='value', ...`: variables of its jobs, before the user's own"),
    "PRE_EXEC": sets("around.job_pre", str.strip, "the command before its jobs that have no `-E`: see "
                     "[pre- and post-execution commands](pre-post-exec.md)"),
    "POST_EXEC": sets("around.job_post", str.strip, "the command after its jobs that have no `-Ep`"),
    **around_limits(),
    **preexec_retries(),
    "HOST_PRE_EXEC": sets("around.host_pre", str.strip, "a command on each host of its jobs before them, after the "
                          "queue's"),
    "HOST_POST_EXEC": sets("around.host_post", str.strip, "a command on each host of its jobs after them, before the "
                           "queue's"),
    "RUNTIME": missed("the estimate of a run time is a job's own: bsub -We"),
    "PRIORITY": sets("priority", v.integer,
                     "the factor APP of [absolute priorities](ordering.md#by-absolute-priority)"),
    "PERSISTENT_HOST_ORDER": missed("not enforced"),
    "CONTAINER": CONTAINER,
    **dict.fromkeys(("EXEC_DRIVER", "DOCKER_IMAGE_AFFINITY"),
                    missed("the image of a job is named in its job file")),
    **dict.fromkeys(("JOB_CWD", "JOB_CWD_TTL", "JOB_OUTDIR"), missed("bsub -cwd and -outdir name directories")),
    "BIND_JOB": missed("affinity[...] in RES_REQ binds the tasks of a job"),
    **dict.fromkeys(("RESIZABLE_JOBS", "RESIZE_NOTIFY_CMD"), QUEUE["RESIZABLE_JOBS"]),
    "CHUNK_JOB_SIZE": QUEUE["CHUNK_JOB_SIZE"],
    "CHKPNT_DIR": sets("checkpoint.directory", v.checkpoint_directory, "the directory of the "
                       "[checkpoints](checkpoints.md) of jobs without `bsub -k`, in place of the queue's CHKPNT"),
    "CHKPNT_PERIOD": sets("checkpoint.period_s", v.minutes, "minutes between two of them, where `-k` names none"),
    "CHKPNT_INITPERIOD": sets("checkpoint.first_s", v.minutes, "minutes before the first one, where `-k` names none"),
    "CHKPNT_METHOD": sets("checkpoint.method", v.checkpoint_method, "the method, where neither `-k` nor "
                          "LSB_ECHKPNT_METHOD names one"),
    **dict.fromkeys(("DJOB_COMMFAIL_ACTION", "DJOB_DISABLED", "DJOB_ENV_SCRIPT", "DJOB_HB_INTERVAL",
                     "DJOB_RESIZE_GRACE_PERIOD", "DJOB_RU_INTERVAL", "DJOB_TASK_BIND"),
                    missed("tasks on further hosts are watched by lava's agents")),
    "ABS_RUNLIMIT": Ignored("run limits are never scaled by CPU factors"),
    **dict.fromkeys(("RTASK_GONE_ACTION", "NO_PREEMPT_INTERVAL",
                     "NO_PREEMPT_FINISH_TIME", "NO_PREEMPT_RUN_TIME", "MAX_JOB_PREEMPT", "MAX_TOTAL_TIME_PREEMPT",
                     "ESTIMATED_RUNTIME", "ELIGIBLE_PEND_TIME_LIMIT", "PEND_TIME_LIMIT", "USE_PAM_CREDS"),
                    missed("not for single profiles")),
}  # fmt: skip
SECTIONS: Mapping[str, Table | Ignored] = {"Application": APPLICATION}


def read_applications(document: Document, site: Site) -> dict[str, Application]:
    """Read the profiles of the file, by name."""
    check_sections(document, SECTIONS, site)
    found: dict[str, Application] = {}
    for section in document.of("Application"):
        for row in section.rows:
            name, fields = required(row, "NAME", section, site), site.read(row, APPLICATION)
            if name and _is_new(name, found, row, site):
                found[name] = _application(fields, _written(row))
                warn_of_jobs(row, site)
                if not found[name].checkpoints.directory:
                    _warn_of_no_directory(row, site)
    return found


def _warn_of_no_directory(row: Row, site: Site) -> None:
    for name in ("CHKPNT_PERIOD", "CHKPNT_INITPERIOD", "CHKPNT_METHOD"):
        if name in row and row[name].text:
            site.warn(row[name], f"{name}: it has no effect without CHKPNT_DIR")


def _is_new(name: str, known: Mapping[str, Application], row: Row, site: Site) -> bool:
    try:
        names.check_name(name, "application profile")
    except Wrong as error:
        site.wrong(row["NAME"], f"NAME = {name}: {error}")
        return False
    if name in known:
        site.wrong(row["NAME"], f"NAME = {name}: there is an application profile of this name already")
    return name not in known


def _written(row: Row) -> tuple[tuple[str, str], ...]:
    """Return the effective settings as written."""
    return tuple((name, cell.text) for name, cell in row.items() if isinstance(APPLICATION.get(name), Honoured))


def _application(fields: Fields, written: tuple[tuple[str, str], ...]) -> Application:
    own = {name: value for name, value in fields.items() if "." not in name}
    rlimits = tuple((name, *limits) for name, limits in sorted(part(fields, "rlimit.").items()))
    terms = part(fields, "checkpoint.")
    return Application(
        **own,
        defaults=JobDefaults(**part(fields, "defaults."), rlimits=rlimits),
        job_controls=tuple(part(fields, "control.").items()),
        around=around_rule(fields),
        checkpoints=CheckpointTerms(**terms) if terms.get("directory") else NO_TERMS,
        written=written,
    )


def check_default(name: str, known: Mapping[str, Application], row: Row, site: Site) -> None:
    """Complain of a DEFAULT_APPLICATION that does not exist."""
    if name and name not in known:
        site.wrong(row["DEFAULT_APPLICATION"], f"DEFAULT_APPLICATION = {name}: there is no such application profile")
