"""The fields of ``bjobs -o``: name, alias, recommended width, and reader of each.

Invariants: an empty value is printed as ``-``; a value contains no control characters. Fields in ``LIGHT`` come with
every listing; the other fields need the details that -l also requests.
"""

from lavactl.text.exits import exit_code
from lavactl.text.formats import Format
from lavactl.text.progress import percent_done, progress_left
from lavactl.text.render import MISSING, clean, clean_script, short_time
from lavactl.text.roles import command_of, gpu_request
from lavactl.text.units import mbytes
from lavactl.views.job_table import STATES, host_list, reason_text
from lavactl.views.run_time import complete, finish, time_left
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Job = messages.JobRecord
    Reader = Callable[[Job], str]

PIECE = 1 << 18  # characters, where all columns have a width
ENDED = (messages.DONE, messages.EXIT)
WAITING = (messages.PEND, messages.PSUSP)

# Fields of LSF that lava does not record: always "-".
ABSENT = {
    "esub": 20, "kill_reason": 50, "kill_issue_host": 50, "resume_reason": 50,
    "licproject": 20,
    "hrusage": 50, "network_req": 15, "block": 5, "cpu_peak": 10, "forward_cluster": 15,
    "forward_time": 15, "srcjobid": 8, "dstjobid": 8, "source_cluster": 15, "container_name": 20, "image": 20,
    "ctxuser": 7, "plan_start_time": 20, "plan_finish_time": 20,
}  # fmt: skip

ALIASES = {
    "id": "jobid", "ugroup": "user_group", "name": "job_name", "description": "job_description", "proj": "proj_name",
    "project": "proj_name", "app": "application", "sla": "service_class", "group": "job_group",
    "priority": "job_priority", "cmd": "command", "pre_cmd": "pre_exec_command", "post_cmd": "post_exec_command",
    "resize_cmd": "resize_notification_command", "estart_time": "estimated_start_time", "hosts": "nexec_host",
    "sstart_time": "specified_start_time", "sterminate_time": "specified_terminate_time",
    "ertime": "estimated_run_time", "eresreq": "effective_resreq", "cresreq": "combined_resreq",
}  # fmt: skip

LIGHT = frozenset(
    ("jobid", "jobindex", "stat", "user", "queue", "job_name", "proj_name", "from_host", "first_host", "exec_host",
     "nexec_host", "alloc_slot", "nalloc_slot", "slots", "submit_time", "start_time", "exit_code", "exit_reason",
     "run_time", "pend_time", "cpu_used", "ru_utime", "ru_stime", "mem", "max_mem",
     "avg_mem", "swap", "pids", "nthreads", "gpu_alloc",
     "min_req_proc", "max_req_proc", "nreq_slot", *ABSENT)
)  # fmt: skip

# Fields in seconds that -hms shows as hours:minutes:seconds.
DURATIONS = ("estimated_run_time", "ru_utime", "ru_stime", "cpu_used", "pend_time", "ependtime", "ipendtime",
             "run_time", "action_warning_time")  # fmt: skip

MEMORY: "dict[str, Callable[[Job], float]]" = {
    "mem": lambda job: job.usage.memory_mib,
    "max_mem": lambda job: job.usage.memory_mib_max,
    "avg_mem": lambda job: job.usage.memory_mib_mean,
    "swap": lambda job: job.usage.swap_mib,
    "memlimit": lambda job: job.spec.memory_limit_mib,
}
_POWER = {unit: place for place, unit in enumerate("KMGTPEZ", -1)}


def readers(short: bool, now: float) -> "dict[str, tuple[int, Reader]]":
    """Recommended width and reader of every field.

    Args:
        short: LSB_SHORT_HOSTLIST is set.
        now: seconds since the epoch, for running times.
    """
    return {
        **FIXED,
        "exec_host": (11, lambda job: ":".join(host_list(job, short))),
        "time_left": (11, lambda job: time_left(job, now)),
        "%complete": (11, lambda job: complete(job, now)),
        "progress_left": (13, lambda job: progress_left(job, now)),
        "finish_time": (16, lambda job: finish(job, now)),
        "pendstate": (9, lambda job: pendstate(job, now)),
        "pend_time": (12, lambda job: str(pending_s(job, now))),
        "ependtime": (12, lambda job: str(pending_s(job, now))),
        "run_time": (15, lambda job: f"{run_s(job, now)} second(s)"),
        "exception_status": (16, lambda job: clean(" ".join(job.exceptions))),
        "idle_factor": (11, lambda job: idle_factor(job, now)),
        "cpu_efficiency": (10, lambda job: cpu_efficiency(job, now)),
    }


class FieldTable:
    """A format with its readers; turns job records into lines."""

    def __init__(self, form: Format, short: bool, now: float, *, hms: bool = False) -> None:
        self.form = form
        known = readers(short, now)
        self._readers = [
            memory_reader(column.name, column.unit)
            if column.name in MEMORY
            else clock_reader(known[column.name][1])
            if hms and column.name in DURATIONS
            else known[column.name][1]
            for column in form.columns
        ]
        self._padded = any(column.width for column in form.columns)

    def pieces(self, jobs: "Sequence[Job]") -> "Iterator[str]":
        """The lines of jobs in pieces, which are the shorter the wider a row is."""
        step = max(1, PIECE // (64 + sum(column.width for column in self.form.columns)))
        for at in range(0, len(jobs), step):
            yield self.lines(jobs[at : at + step])

    def lines(self, jobs: "Iterable[Job]") -> str:
        """One line for each job."""
        join, read = self.form.delimiter.join, self._readers
        if not self._padded:
            return "".join([join([one(job) or MISSING for one in read]) + "\n" for job in jobs])
        fits = [column.fit for column in self.form.columns]
        pairs = list(zip(fits, read, strict=True))
        return "".join([join([fit(one(job) or MISSING) for fit, one in pairs]) + "\n" for job in jobs])

    def record(self, job: "Job") -> dict[str, str]:
        """Job as -json shows it; unlike in a line, an empty value stays empty."""
        pairs = zip(self.form.columns, self._readers, strict=True)
        return {column.title: read(job) for column, read in pairs}


def clock_reader(read: "Reader") -> "Reader":
    """Reader of a duration as hours:minutes:seconds."""

    def text(job: "Job") -> str:
        minutes, left = divmod(int(float(read(job).removesuffix(" second(s)") or -1)), 60)
        return f"{minutes // 60:02d}:{minutes % 60:02d}:{left:02d}" if minutes >= 0 else ""

    return text


def needs_details(form: Format) -> bool:
    """True if a format has a field that only a detailed listing carries."""
    return any(column.name not in LIGHT for column in form.columns)


def needs_reasons(form: Format) -> bool:
    """True if a format shows pending reasons or start estimates."""
    return any(column.name in ("pend_reason", "pendstate", "estimated_start_time") for column in form.columns)


def moment(when: float) -> str:
    """Date; empty if unknown."""
    return short_time(when) if when else ""


def processor_time(job: "Job", seconds: float) -> str:
    """CPU time; empty for a job without usage."""
    return f"{seconds:.1f} second(s)" if job.HasField("usage") else ""


def seconds(value: int) -> str:
    """Duration in seconds; empty for zero."""
    return f"{value} second(s)" if value else ""


def allocated(job: "Job") -> int:
    """Slots the job holds or held."""
    return sum(share.slots for share in job.hosts)


def run_s(job: "Job", now: float) -> int:
    """Seconds from the start to now or to the end."""
    return max(0, round((job.end_time or now) - job.start_time)) if job.start_time else 0


def pending_s(job: "Job", now: float) -> int:
    """Seconds from submission to start."""
    return max(0, round((job.start_time or job.end_time or now) - job.submit_time))


def pendstate(job: "Job", now: float) -> str:
    """EPEND for a job eligible to start, IPEND for one that free hosts would not start."""
    if job.state not in WAITING:
        return ""
    held = job.state == messages.PSUSP or job.spec.begin_time > now
    return "IPEND" if held or any(reason.is_ineligible for reason in job.pending_reasons) else "EPEND"


def idle_factor(job: "Job", now: float) -> str:
    """CPU time over run time."""
    elapsed = run_s(job, now)
    return f"{job.usage.cpu_s / elapsed:.2f}" if elapsed and job.HasField("usage") else ""


def cpu_efficiency(job: "Job", now: float) -> str:
    """CPU time over run time and slots."""
    held = run_s(job, now) * (allocated(job) or 1)
    return f"{100 * job.usage.cpu_s / held:.2f}%" if held and job.HasField("usage") else ""


def mem_efficiency(job: "Job") -> str:
    """Peak memory over reserved memory."""
    reserved = sum(share.memory_mib for share in job.hosts)
    return f"{100 * job.usage.memory_mib_max / reserved:.2f}%" if reserved else ""


def memory_reader(name: str, unit: str) -> "Reader":
    """Reader of a memory field, in a fixed unit if one is given."""
    read = MEMORY[name]

    def text(job: "Job") -> str:
        mib = read(job)
        if not mib:
            return ""
        return f"{mib / 1024 ** _POWER[unit]:.1f} {unit}" if unit else mbytes(mib)

    return text


def rlimit(job: "Job", name: str) -> str:
    """A process limit in KiB."""
    return next((f"{limit.soft >> 10} K" for limit in job.spec.rlimits if limit.name == name), "")


def gpu_mode(job: "Job") -> str:
    """Requested compute mode."""
    request = gpu_request(job.spec)
    asked = (pair.strip().partition("=") for pair in request.text.lower().split(":"))
    default = "exclusive_process" if request.exclusive_process else "shared"
    mode = next((value.strip() for key, _, value in asked if key.strip() == "mode"), default)
    return mode if request.num else ""


def gpu_alone(job: "Job") -> str:
    """``yes`` if the job has its GPUs exclusively: by its allocation or, while it is pending, by its request."""
    given = [share for share in job.hosts if share.gpus]
    if given:
        return "no" if any(share.gpu_memory_mib for share in given) else "yes"
    request = gpu_request(job.spec)
    if not request.num:
        return ""
    asked = dict(pair.strip().partition("=")[::2] for pair in request.text.lower().split(":"))
    if asked.get("mode", "shared") != "shared" or asked.get("mps", "no") != "no" or asked.get("j_exclusive") == "yes":
        return "yes"
    return "no" if "gmem" in asked or asked.get("j_exclusive") == "no" else "yes"


def gpu_alloc(job: "Job") -> str:
    """``n001:0,1;n002:3``."""
    return ";".join(f"{share.host}:{','.join(map(str, share.gpus))}" for share in job.hosts if share.gpus)


def gpu_mean(job: "Job", integral: str, factor: float, unit: str) -> str:
    """Mean of a figure over the job's GPUs and the time for which each was measured."""
    measured = sum(gpu.seconds for gpu in job.gpus)
    return f"{factor * sum(getattr(gpu, integral) for gpu in job.gpus) / measured:.0f}{unit}" if measured else ""


def gpu_most(job: "Job", name: str, factor: float, unit: str) -> str:
    """Largest figure of the job's GPUs."""
    return f"{factor * max(getattr(gpu, name) for gpu in job.gpus):.0f}{unit}" if job.gpus else ""


# Fields that depend on nothing but the record.
FIXED: "dict[str, tuple[int, Reader]]" = {
    "jobid": (7, lambda job: str(job.job)),
    "jobindex": (8, lambda job: str(job.index)),
    "stat": (5, lambda job: STATES[job.state]),
    "user": (7, lambda job: job.user),
    "user_group": (15, lambda job: clean(job.spec.user_group)),
    "queue": (10, lambda job: job.queue),
    "job_name": (10, lambda job: clean(job.name)),
    "job_description": (17, lambda job: clean(job.spec.description)),
    "proj_name": (11, lambda job: clean(job.project)),
    "application": (13, lambda job: clean(job.spec.application)),
    "service_class": (13, lambda job: clean(job.spec.service_class)),
    "job_group": (10, lambda job: clean(job.spec.job_group)),
    "job_priority": (12, lambda job: str(job.priority or "")),
    "rsvid": (40, lambda job: clean(job.spec.reservation)),
    "suspend_reason": (50, lambda job: clean(job.suspend_reason)),
    "dependency": (15, lambda job: clean(job.spec.dependency)),
    "pend_reason": (11, lambda job: " ".join(reason_text(reason) for reason in job.pending_reasons)),
    "command": (15, lambda job: clean_script(command_of(job.spec))),
    "pre_exec_command": (16, lambda job: clean(job.spec.pre_exec)),
    "post_exec_command": (17, lambda job: clean(job.spec.post_exec)),
    "pids": (20, lambda job: ",".join(map(str, job.usage.pids))),
    "exit_code": (10, lambda job: str(exit_code(job.exit_status)) if job.state in ENDED else ""),
    "exit_reason": (50, lambda job: clean(job.exit_reason)),
    "from_host": (11, lambda job: job.from_host),
    "first_host": (11, lambda job: job.hosts[0].host if job.hosts else ""),
    "nexec_host": (10, lambda job: str(len(job.hosts)) if job.hosts else ""),
    "alloc_slot": (20, lambda job: ":".join(host_list(job, True))),
    "nalloc_slot": (10, lambda job: str(allocated(job) or "")),
    "interactive": (11, lambda job: "Y" if job.spec.interactive else "N"),
    "exclusive": (13, lambda job: "Y" if job.spec.exclusive else "N"),
    "nreq_slot": (10, lambda job: str(job.slots_min or 1)),
    "submit_time": (15, lambda job: moment(job.submit_time)),
    "start_time": (15, lambda job: moment(job.start_time)),
    "estimated_start_time": (20, lambda job: moment(job.estimated_start)),
    "specified_start_time": (20, lambda job: moment(job.spec.begin_time)),
    "specified_terminate_time": (24, lambda job: moment(job.spec.terminate_time)),
    "estimated_run_time": (20, lambda job: seconds(job.spec.runtime_estimate_s)),
    "ipendtime": (12, lambda job: "0"),
    "cpu_used": (10, lambda job: f"{job.usage.cpu_s:.1f} second(s)" if job.HasField("usage") else ""),
    "ru_utime": (12, lambda job: processor_time(job, job.usage.user_s)),
    "ru_stime": (12, lambda job: processor_time(job, job.usage.system_s)),
    "slots": (5, lambda job: str(allocated(job) or job.slots_min or 1)),
    "gpu_num": (10, lambda job: str(gpu_request(job.spec).num or "")),
    "gpu_mode": (20, gpu_mode),
    "gpu_alloc": (30, gpu_alloc),
    "j_exclusive": (11, gpu_alone),
    "gpu_util": (8, lambda job: gpu_mean(job, "utilisation_s", 100, "%")),
    "gpu_util_max": (12, lambda job: gpu_most(job, "utilisation_max", 100, "%")),
    "gpu_mem": (10, lambda job: gpu_mean(job, "memory_mib_s", 1, "M")),
    "gpu_mem_max": (11, lambda job: gpu_most(job, "memory_mib_max", 1, "M")),
    "gpu_power": (9, lambda job: gpu_mean(job, "energy_j", 1, "W")),
    "gpu_power_max": (13, lambda job: gpu_most(job, "power_w_max", 1, "W")),
    "gpu_energy": (12, lambda job: f"{sum(gpu.energy_j for gpu in job.gpus):.0f}J" if job.gpus else ""),
    "gpu_idle": (8, lambda job: gpu_most(job, "idle_s", 1, "s")),
    "nthreads": (10, lambda job: str(job.usage.threads or "")),
    "min_req_proc": (12, lambda job: str(job.slots_min or 1)),
    "max_req_proc": (12, lambda job: str(job.slots_max or job.slots_min or 1)),
    "effective_resreq": (17, lambda job: clean(job.effective_requirement) if job.hosts else ""),
    "combined_resreq": (20, lambda job: clean(job.effective_requirement or job.spec.requirement_text)),
    "resize_notification_command": (27, lambda job: clean(job.spec.resize_notify)),
    "progress": (8, percent_done),
    "progress_text": (30, lambda job: clean(job.progress.text)),
    "warning_action": (15, lambda job: clean(job.spec.warning_action)),
    "action_warning_time": (19, lambda job: seconds(round(job.spec.warning_time_s))),
    "filelimit": (10, lambda job: rlimit(job, "fsize")),
    "corelimit": (15, lambda job: rlimit(job, "core")),
    "stacklimit": (15, lambda job: rlimit(job, "stack")),
    "swaplimit": (15, lambda job: rlimit(job, "swap")),
    "processlimit": (12, lambda job: next((str(one.soft) for one in job.spec.rlimits if one.name == "nproc"), "")),
    "runtimelimit": (12, lambda job: f"{job.spec.run_limit_s / 60:.1f}" if job.spec.run_limit_s else ""),
    "host_file": (10, lambda job: clean(job.spec.host_file.path)),
    "input_file": (10, lambda job: clean(job.spec.input)),
    "output_file": (11, lambda job: clean(job.spec.output)),
    "error_file": (10, lambda job: clean(job.spec.error)),
    "output_dir": (15, lambda job: clean(job.spec.output_dir)),
    "sub_cwd": (10, lambda job: clean(job.spec.submit_cwd)),
    "exec_home": (10, lambda job: clean(job.exec_home)),
    "exec_cwd": (10, lambda job: clean(job.exec_cwd)),
    "mem_efficiency": (10, mem_efficiency),
    **{name: (15, memory_reader(name, "")) for name in MEMORY},
    **{name: (width, lambda job: "") for name, width in ABSENT.items()},
}

WIDTHS = {name: width for name, (width, _) in readers(False, 0.0).items()}
