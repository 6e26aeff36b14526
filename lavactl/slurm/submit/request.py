"""The job that sbatch, srun or salloc submits: bsub's own message, filled in from Slurm's options.

Invariants: nothing but this message goes to the master, as from bsub; a job never has SLURM_* variables of the job or
shell that submitted it; what is said of the request in variables is what was asked for.
"""

import os
import re

from lavactl.slurm.submit import mail
from lavactl.slurm.submit.shape import Shape
from lavactl.slurm.submit.signals import warning
from lavactl.slurm.words import values
from lavactl.slurm.words.dependencies import Asker, condition
from lavactl.submit import job_options
from lavactl.submit.scripts import put_command
from lavactl.wire import messages
from protos.slurm_words import expanded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.slurm.submit.choices import Choices

NOT_INHERITED = (b"SLURM_", b"SLURMD_")
HOSTS = "hosts such as n[01-04],n07"
KEPT_ALWAYS = ("PATH",)  # so that a script finds srun, whatever --export says


class Work:
    """Program of a job: a script with its arguments, and the name of a job that has none."""

    def __init__(self, script: str, arguments: "list[str]", name: str) -> None:
        self.script, self.arguments, self.name = script, arguments, name


def job_of(choices: "Choices", work: Work, io: "Io") -> messages.JobSpec:
    """The job.

    Raises:
        CommandError: a malformed option, or one that asks for what lava lacks.
    """
    choices.check_exclusive()
    name = choices.last("job-name") or work.name
    spec = messages.JobSpec(is_script=True, name=name)
    put_command(spec, work.script)
    spec.slurm.command = choices.command
    spec.slurm.arguments.extend(work.arguments)
    shape = Shape(choices)
    _array(spec, choices)
    _files(spec, choices, io)
    _describe(spec, choices, io)
    _limit(spec, choices, shape, io)
    _place(spec, choices, shape, io)
    mail.fill_in(spec, choices, io)
    spec.environment.extend(_environment(spec, choices, shape, io))
    spec.success_exit_values = job_options.success_values(spec, io.environ)
    return spec


def _array(spec: messages.JobSpec, choices: "Choices") -> None:
    found = choices.read("array", values.read_array, "indices such as 0-15:4%2 or 1,3,7")
    if found is None:
        return
    spec.array.extend(messages.IndexRange(first=first, last=last, step=step) for first, last, step in found.ranges)
    spec.array_limit, spec.slurm.array_base = found.limit, found.base


def _files(spec: messages.JobSpec, choices: "Choices", io: "Io") -> None:
    spec.submit_cwd = io.cwd
    spec.cwd = os.path.normpath(os.path.join(io.cwd, choices.last("chdir") or ""))
    spec.umask_plus_one = _umask(choices, io) + 1
    spec.input = choices.last("input") or ""
    is_array = bool(spec.array)
    spec.output = choices.last("output") or ("slurm-%A_%a.out" if is_array else "slurm-%j.out")
    spec.error = choices.last("error") or ""
    mode = choices.last("open-mode") or "truncate"
    if mode[:1] not in ("a", "t"):
        raise choices.wrong(f"--open-mode {mode}: expected append or truncate")
    spec.output_overwrite = spec.error_overwrite = mode[0] == "t"


def _umask(choices: "Choices", io: "Io") -> int:
    text = io.environ.get("SLURM_UMASK") if choices.command == "sbatch" else None
    if text is None:
        return io.umask
    try:
        return int(text, 8) & 0o777
    except ValueError:
        raise choices.wrong(f"SLURM_UMASK={text}: expected a mask in octal, such as 0022") from None


def _describe(spec: messages.JobSpec, choices: "Choices", io: "Io") -> None:
    spec.project = choices.last("account") or io.environ.get("LSB_DEFAULTPROJECT", "")
    spec.description = choices.last("comment") or ""
    spec.queues.extend(_names(choices.last("partition") or io.environ.get("LSB_DEFAULTQUEUE", "")))
    spec.reservation = choices.last("reservation") or ""
    spec.hold = "hold" in choices
    spec.dependency = condition(choices.last("dependency"), Asker(choices.command, spec.name, io))
    spec.ends_orphan = (choices.last("kill-on-invalid-dep") or "no").lower() == "yes"
    rerun = choices.which("requeue", "no-requeue")
    spec.rerunnable, spec.not_rerunnable = rerun == "requeue", rerun == "no-requeue"


def _names(text: str) -> list[str]:
    return [name for name in re.split(r"[,\s]+", text) if name]


def _limit(spec: messages.JobSpec, choices: "Choices", shape: Shape, io: "Io") -> None:
    expected = "minutes, h:m:s or days-h:m:s"
    spec.run_limit_s = choices.read("time", values.read_time_s, expected) or 0
    spec.memory_limit_mib = shape.memory_limit_mib
    moment = "a time such as now+1hour, 16:00 or 2026-11-21T09:30"
    begin = choices.read("begin", lambda text: values.read_moment(text, io.now()), moment)
    if begin is not None and begin > io.now():
        spec.begin_time = begin
    if (text := choices.last("signal")) is not None:
        spec.warning_action, spec.warning_time_s = warning(text, choices, io)


def _place(spec: messages.JobSpec, choices: "Choices", shape: Shape, io: "Io") -> None:
    sections = [*_selected(choices), *_licences(choices), *shape.sections, *([shape.span] if shape.span else [])]
    role = spec.roles.add(tasks_min=shape.tasks[0], tasks_max=shape.tasks[1], slots_per_task=shape.slots)
    role.requirement = spec.requirement_text = " ".join(sections)
    if shape.gpu_text:
        role.gpu.CopyFrom(job_options.gpu_request(shape.gpu_text))
    kind = choices.last("exclusive")
    if kind:
        raise choices.wrong(f"--exclusive={kind}: only --exclusive, for whole hosts, is supported")
    spec.exclusive = kind is not None or shape.takes_whole_hosts
    if shape.takes_whole_hosts and kind is None and "quiet" not in choices:
        io.error(f"{choices.command}: --mem=0 asks for all memory of each host: the job gets whole hosts.")
    spec.hosts.extend(_hosts(choices, io))


def _selected(choices: "Choices") -> list[str]:
    """Condition on hosts."""
    parts = []
    if (text := choices.last("constraint")) is not None:
        if not re.fullmatch(r"[A-Za-z0-9_.|&()!, ]+", text):
            raise choices.wrong(f"--constraint {text}: only names with &, | and parentheses are supported")
        parts.append("(" + re.sub(r"\s*[&,]+\s*", " && ", re.sub(r"\s*\|+\s*", " || ", text)) + ")")
    if number := choices.read("mincpus", values.read_count, "a number of at least 1"):
        parts.append(f"ncpus>={number}")
    if mib := choices.read("tmp", values.read_mib, "a size such as 4G"):
        parts.append(f"tmp>={mib}MB")
    return [f"select[{' && '.join(parts)}]"] if parts else []


def _licences(choices: "Choices") -> list[str]:
    text = choices.last("licenses")
    if not text:
        return []
    if not re.fullmatch(r"[A-Za-z0-9_]+([:=][0-9]+)?(,[A-Za-z0-9_]+([:=][0-9]+)?)*", text):
        raise choices.wrong(f"--licenses {text}: expected name:count, with commas between several")
    words = (part.replace("=", ":").partition(":") for part in text.split(","))
    return [f"rusage[{','.join(f'{name}={count or 1}' for name, _, count in words)}]"]


def _hosts(choices: "Choices", io: "Io") -> list[str]:
    wanted = choices.read("nodelist", expanded, HOSTS) or []
    if (path := choices.last("nodefile")) is not None:
        wanted += _hosts_of_file(path, choices, io)
    excluded = choices.read("exclude", expanded, HOSTS) or []
    left = [host for host in wanted if host not in set(excluded)]
    if not left and ("nodelist" in choices or "nodefile" in choices):
        raise choices.wrong("no host is left of those that --nodelist and --nodefile name")
    return left or (["others", *(f"~{host}" for host in excluded)] if excluded else [])


def _hosts_of_file(path: str, choices: "Choices", io: "Io") -> list[str]:
    data = io.read_file(io.path(path), 1 << 20)
    if data is None:
        raise choices.wrong(f"--nodefile {path}: the file cannot be read")
    try:
        return expanded(data.decode().replace("\r", " "))
    except ValueError:
        raise choices.wrong(f"--nodefile {path}: expected {HOSTS} in the file") from None


def _environment(spec: messages.JobSpec, choices: "Choices", shape: Shape, io: "Io") -> list[bytes]:
    """Variables of the job: the caller's as --export says, then what was asked for."""
    text = choices.last("export") if choices.command == "sbatch" else None
    kept = exported(text, job_options.job_environment(io.raw_environ, []))
    asked = {name: value for name, value in _asked(spec, choices, shape).items() if value}
    return [*kept, *(os.fsencode(f"{name}={value}") for name, value in asked.items())]


def exported(text: str | None, entries: list[bytes]) -> list[bytes]:
    """Entries of an environment that --export passes on, without those of Slurm's own."""
    known = {entry.partition(b"=")[0]: entry for entry in entries if not entry.startswith(NOT_INHERITED)}
    words = [word.strip() for word in (text or "ALL").split(",") if word.strip()]
    chosen = dict(known) if "ALL" in words else {}
    for word in (*KEPT_ALWAYS, *words):
        if word in ("ALL", "NONE", "NIL"):
            continue
        name, equals, value = word.partition("=")
        raw = os.fsencode(name)
        if equals:
            chosen[raw] = raw + b"=" + os.fsencode(value)
        elif raw in known:
            chosen[raw] = known[raw]
    return list(chosen.values())


def _asked(spec: messages.JobSpec, choices: "Choices", shape: Shape) -> dict[str, str]:
    tasks = str(shape.tasks[0]) if shape.is_counted else ""
    name = choices.which("mem", "mem-per-cpu", "mem-per-gpu")
    mib = choices.read(name, values.read_mib, "a size such as 4G") if name else 0
    memory = {"mem": "NODE", "mem-per-cpu": "CPU", "mem-per-gpu": "GPU"}.get(name, "")
    found = {
        "SLURM_NTASKS": tasks,
        "SLURM_NPROCS": tasks,
        "SLURM_NTASKS_PER_NODE": str(shape.asked_per_node or ""),
        "SLURM_CPUS_PER_TASK": str(shape.slots) if "cpus-per-task" in choices else "",
        "SLURM_GPUS": choices.last("gpus") or "",
        "SLURM_GPUS_PER_NODE": choices.last("gpus-per-node") or "",
        "SLURM_GPUS_PER_TASK": choices.last("gpus-per-task") or "",
        "SLURM_JOB_DEPENDENCY": choices.last("dependency") or "",
        "SLURM_JOB_RESERVATION": choices.last("reservation") or "",
        "SLURM_JOB_LICENSES": choices.last("licenses") or "",
        "SLURM_JOB_COMMENT": spec.description,
    }
    if mib and memory:
        found[f"SLURM_MEM_PER_{memory}"] = str(mib)
    return found
