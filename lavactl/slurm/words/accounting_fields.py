"""Fields of sacct: title, width and reader of each, for the job and for its batch step."""

from typing import NamedTuple

from lavactl.slurm.words import values
from lavactl.slurm.words.jobs import JobView, long_limit_text, user_id
from lavactl.slurm.words.states import ENDED
from lavactl.text.render import clean, clean_script
from protos.slurm_words import compressed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

UNKNOWN = "Unknown"
NONE_ASSIGNED = "None assigned"


class Field(NamedTuple):
    """One field. ``of_step``: value in the line of the batch step; None for the job's own, else often empty."""

    title: str
    width: int
    read: "Callable[[JobView], str]"
    of_step: "Callable[[JobView], str] | None" = None


def _empty(view: JobView) -> str:
    """Value of a field that steps do not have."""
    return ""


def _usage(read: "Callable[[JobView], str]") -> "Callable[[JobView], str]":
    """Value of the job's usage, which stands in the line of its step."""
    return lambda view: read(view) if view.job.start_time else ""


def _kib(mib: int) -> str:
    return f"{mib << 10}K" if mib else "0"


def _clock(seconds: float) -> str:
    """CPU time: [days-]hours:minutes:seconds, below an hour minutes:seconds.milliseconds."""
    if seconds >= values.HOUR_S:
        return values.long_time_text(seconds)
    return f"{int(seconds // 60):02d}:{seconds % 60:06.3f}"


def _end(view: JobView) -> str:
    return values.moment_text(view.job.end_time if view.job.state in ENDED else 0.0, UNKNOWN)


def _state(view: JobView) -> str:
    if view.state.letters != "CA":
        return view.state.word
    import pwd

    try:
        return f"CANCELLED by {pwd.getpwnam(view.job.user).pw_uid}" if _by_owner(view) else "CANCELLED"
    except (KeyError, ValueError, UnicodeEncodeError):
        return "CANCELLED"


def _by_owner(view: JobView) -> bool:
    return view.job.exit_reason.startswith(("TERM_OWNER", "TERM_FORCE_OWNER"))


def _limit_minutes(view: JobView) -> str:
    return str(view.limit_s // 60) if view.limit_s else "UNLIMITED"


def _eligible(view: JobView) -> str:
    return values.moment_text(max(view.job.submit_time, view.job.spec.begin_time), UNKNOWN)


def _virtual(view: JobView) -> str:
    return _kib(view.job.usage.memory_mib_max + view.job.usage.swap_mib_max)


def _wait(view: JobView) -> str:
    until = view.job.start_time or (view.job.end_time if view.job.state in ENDED else view.now)
    return values.long_time_text(max(0.0, until - view.job.submit_time))


def _hosts(view: JobView) -> str:
    return compressed(view.hosts) or NONE_ASSIGNED


FIELDS = {
    "jobid": Field("JobID", 12, lambda view: view.id, lambda view: f"{view.id}.batch"),
    "jobidraw": Field("JobIDRaw", 12, lambda view: view.id, lambda view: f"{view.id}.batch"),
    "jobname": Field("JobName", 10, lambda view: view.name, lambda view: "batch"),
    "partition": Field("Partition", 10, lambda view: view.job.queue, _empty),
    "account": Field("Account", 10, lambda view: view.job.project or "default"),
    "alloccpus": Field("AllocCPUS", 10, lambda view: str(view.cpus if view.hosts else 0)),
    "alloctres": Field("AllocTRES", 10, lambda view: view.resources if view.hosts else ""),
    "allocnodes": Field("AllocNodes", 10, lambda view: str(len(view.hosts))),
    "avecpu": Field("AveCPU", 10, _empty, _usage(lambda view: values.long_time_text(view.job.usage.cpu_s))),
    "averss": Field("AveRSS", 10, _empty, _usage(lambda view: _kib(int(view.job.usage.memory_mib_mean)))),
    "cluster": Field("Cluster", 10, _empty),
    "comment": Field("Comment", 14, lambda view: clean(view.job.spec.description), _empty),
    "cputime": Field("CPUTime", 10, lambda view: values.long_time_text(view.elapsed_s * view.cpus)),
    "cputimeraw": Field("CPUTimeRAW", 10, lambda view: f"{int(view.elapsed_s) * view.cpus}"),
    "derivedexitcode": Field("DerivedExitCode", 15, lambda view: view.exit_code, _empty),
    "elapsed": Field("Elapsed", 10, lambda view: values.long_time_text(view.elapsed_s)),
    "elapsedraw": Field("ElapsedRaw", 10, lambda view: str(int(view.elapsed_s))),
    "eligible": Field("Eligible", 19, _eligible, _empty),
    "end": Field("End", 19, _end),
    "exitcode": Field("ExitCode", 8, lambda view: view.exit_code),
    "maxrss": Field("MaxRSS", 10, _empty, _usage(lambda view: _kib(view.job.usage.memory_mib_max))),
    "maxvmsize": Field("MaxVMSize", 10, _empty, _usage(_virtual)),
    "ncpus": Field("NCPUS", 10, lambda view: str(view.cpus)),
    "nnodes": Field("NNodes", 8, lambda view: str(view.nodes), lambda view: "1"),
    "nodelist": Field("NodeList", 15, _hosts, lambda view: view.hosts[0] if view.hosts else NONE_ASSIGNED),
    "ntasks": Field("NTasks", 8, _empty, lambda view: "1"),
    "planned": Field("Planned", 10, _wait, _empty),
    "priority": Field("Priority", 10, lambda view: str(view.job.priority), _empty),
    "qos": Field("QOS", 10, lambda view: "normal", _empty),
    "reason": Field("Reason", 22, lambda view: clean(view.job.exit_reason) or view.reason, _empty),
    "reqcpus": Field("ReqCPUS", 8, lambda view: str(view.cpus)),
    "reqmem": Field("ReqMem", 10, lambda view: f"{view.memory_mib}M" if view.memory_mib else "", _empty),
    "reqnodes": Field("ReqNodes", 8, lambda view: str(view.nodes)),
    "reqtres": Field("ReqTRES", 10, lambda view: view.resources, _empty),
    "restarts": Field("Restarts", 8, lambda view: str(max(0, view.job.attempt - 1)), _empty),
    "start": Field("Start", 19, lambda view: values.moment_text(view.job.start_time, UNKNOWN)),
    "state": Field("State", 10, _state),
    "submit": Field("Submit", 19, lambda view: values.moment_text(view.job.submit_time, UNKNOWN)),
    "submitline": Field("SubmitLine", 20, lambda view: clean_script(view.job.spec.command), _empty),
    "systemcpu": Field("SystemCPU", 10, lambda view: _clock(view.job.usage.system_s)),
    "timelimit": Field("Timelimit", 10, lambda view: long_limit_text(view.limit_s), _empty),
    "timelimitraw": Field("TimelimitRaw", 12, _limit_minutes, _empty),
    "totalcpu": Field("TotalCPU", 10, lambda view: _clock(view.job.usage.cpu_s)),
    "uid": Field("UID", 6, lambda view: user_id(view.job.user), _empty),
    "user": Field("User", 9, lambda view: view.job.user, _empty),
    "usercpu": Field("UserCPU", 10, lambda view: _clock(view.job.usage.user_s)),
    "workdir": Field("WorkDir", 20, lambda view: clean(view.job.spec.cwd), _empty),
}  # fmt: skip
ALIASES = {"reserved": "planned", "nodes": "nodelist"}
TITLES = {name: field.title for name, field in FIELDS.items()}
BY_NAME = TITLES | {alias: TITLES[name] for alias, name in ALIASES.items()}


def reader(name: str, *, of_step: bool) -> "Callable[[JobView], str]":
    """Reader of a field, in the line of the job or of its batch step."""
    field = FIELDS[ALIASES.get(name, name)]
    return field.of_step if of_step and field.of_step is not None else field.read


def width(name: str) -> int:
    """Default width of a field."""
    return FIELDS[ALIASES.get(name, name)].width
