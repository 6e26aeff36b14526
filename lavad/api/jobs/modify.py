"""bmod: set named parameters of a job's spec, and describe the change for users."""

from collections.abc import Callable, Collection
from datetime import datetime, tzinfo
from typing import Any, NamedTuple

from lavad.api.translate import gpu_text
from lavad.core.decide.jobs.submit import CPU_LIMIT, FILES, PERIOD
from lavad.core.language.numbers import number_text
from lavad.core.model import OutputFiles, RunChange
from lavad.core.model.reasons import Refused
from protos import common_pb2
from protos import jobs_pb2 as pb

FILLED_IN = {"submit_host", "environment_base", "environment_unset"}  # set by the master, whatever a caller sends
# As submitted; bresume releases a held job.
FOR_GOOD = {"esub_output", "array", "hold", "notify_end", "tasks", "hang", "slurm", "interactive"}
FROM_HOST_FILE = {"hosts", "roles.tasks", "roles.requirement"}  # a job whose own are changed has no host file any more
_RLIMIT = "rlimits."  # followed by the limit's name: the other limits stay
Shown = Callable[[pb.JobSpec], str]
_SHOWN_MAX = 200  # characters of a value


def take_over(spec: pb.JobSpec, request: pb.ModifyRequest) -> None:
    """Copy the named fields of the request to the spec.

    Raises:
            Refused: one of them is not a parameter of a job.
    """
    known = set(pb.JobSpec.DESCRIPTOR.fields_by_name)
    parts = {name for name in request.fields if name.startswith("roles.")}
    if parts:
        _take_over_role(spec, request, parts)
    limits = {name for name in request.fields if name.startswith(_RLIMIT)}
    if limits:
        _take_over_limits(spec, request, {name.removeprefix(_RLIMIT) for name in limits})
    if PERIOD in request.fields:
        _take_over_period(spec, request.spec.checkpoint.period_s)
    if "host_file" not in request.fields and not FROM_HOST_FILE.isdisjoint(request.fields):
        spec.ClearField("host_file")
    wanted = set(request.fields) - parts - limits - {PERIOD}
    if unknown := wanted - (known - FILLED_IN - FOR_GOOD):
        raise Refused(f"{min(unknown)[:80]}: not a parameter of a job")
    part = pb.JobSpec()
    part.CopyFrom(request.spec)
    for name in known:
        (spec if name in wanted else part).ClearField(name)
    spec.MergeFrom(part)


def _take_over_role(spec: pb.JobSpec, request: pb.ModifyRequest, parts: set[str]) -> None:
    """Set size, requirement or GPUs of a job's only role; fields that are not named stay."""
    if unknown := parts - {"roles.tasks", "roles.requirement", "roles.gpu"}:
        raise Refused(f"{min(unknown)[:80]}: not a parameter of a job")
    if len(spec.roles) > 1:
        raise Refused("A job of several roles can't be changed so")
    role = spec.roles[0] if spec.roles else spec.roles.add()
    new = request.spec.roles[0] if request.spec.roles else common_pb2.Role()
    if "roles.tasks" in parts:
        role.tasks_min, role.tasks_max, role.slots_per_task = new.tasks_min, new.tasks_max, new.slots_per_task
    if "roles.requirement" in parts:
        role.requirement = new.requirement
    if "roles.gpu" in parts:
        role.ClearField("gpu")
        if new.HasField("gpu"):
            role.gpu.CopyFrom(new.gpu)


def _take_over_period(spec: pb.JobSpec, period_s: float) -> None:
    """Set the period of a job's checkpoints; without one there is no first one by itself, either."""
    if not spec.HasField("checkpoint"):
        raise Refused("Job is not checkpointable")
    spec.checkpoint.period_s = period_s
    if not period_s:
        spec.checkpoint.first_s = 0


def _take_over_limits(spec: pb.JobSpec, request: pb.ModifyRequest, names: set[str]) -> None:
    """Set process limits by name; those that are not named stay."""
    kept = [limit for limit in spec.rlimits if limit.name not in names]
    new = [limit for limit in request.spec.rlimits if limit.name in names]
    del spec.rlimits[:]
    spec.rlimits.extend([*kept, *new])


def run_change(spec: pb.JobSpec, fields: Collection[str]) -> RunChange:
    """Return what a running job gets by a change of these fields; spec: after the change."""
    limit = next((limit.soft for limit in spec.rlimits if limit.name == "cpu"), 0)
    files = OutputFiles(spec.output, spec.error, spec.output_overwrite, spec.error_overwrite)
    return RunChange(limit if CPU_LIMIT in fields else None, None if FILES.isdisjoint(fields) else files)


class Versions(NamedTuple):
    """A spec before and after a change; ``queue`` is the job's queue before it."""

    before: pb.JobSpec
    after: pb.JobSpec
    queue: str


def in_words(versions: Versions, zone: tzinfo) -> str:
    """Describe the differences, old value and new: ``run limit from 10.0 min to 30.0 min``."""
    words: dict[str, Shown] = {"queue": lambda spec: _queue(spec, versions.queue), **_SHOWN, **_times(zone)}
    words.update((field.name.replace("_", " "), _field(field)) for field in _BY_KIND)
    said = []
    for label, shown in words.items():
        before, after = shown(versions.before), shown(versions.after)
        if before != after:
            said.append(f"{label} from {before or 'none'} to {after or 'none'}")
    return ", ".join(said) or "nothing that was otherwise before"


def _queue(spec: pb.JobSpec, default: str) -> str:
    return _quoted(" ".join(spec.queues) or default)


def _quoted(text: str) -> str:
    """Put a value between angle brackets, as LSF's messages do; long ones are cut."""
    short = text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
    return f"<{short}>" if text else ""


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds else ""


def _tasks(spec: pb.JobSpec) -> str:
    least, most = (spec.roles[0].tasks_min or 1, spec.roles[0].tasks_max or 1) if spec.roles else (1, 1)
    return str(least) if most <= least else f"{least},{most}"


def _requirement(spec: pb.JobSpec) -> str:
    return _quoted(spec.roles[0].requirement if spec.roles else "")


def _gpu(spec: pb.JobSpec) -> str:
    role = spec.roles[0] if spec.roles else common_pb2.Role()
    return _quoted(gpu_text(role.gpu)) if role.HasField("gpu") else ""


def _file(name: str) -> Shown:
    def shown(spec: pb.JobSpec) -> str:
        text = _quoted(getattr(spec, name))
        return f"{text} (overwritten)" if text and getattr(spec, f"{name}_overwrite") else text

    return shown


def _limit(name: str) -> Shown:
    def shown(spec: pb.JobSpec) -> str:
        found = next((limit.soft for limit in spec.rlimits if limit.name == name), 0)
        return _minutes(found) if name == "cpu" else f"{found >> 10} K" if found else ""

    return shown


def _memory(spec: pb.JobSpec) -> str:
    mib = spec.memory_limit_mib
    return (f"{mib / 1024:.1f}".removesuffix(".0") + " G" if mib >= 1024 else f"{mib} M") if mib else ""


def _text(name: str) -> Shown:
    return lambda spec: _quoted(getattr(spec, name))


def _number(name: str) -> Shown:
    return lambda spec: str(getattr(spec, name) or "")


def _switch(name: str) -> Shown:
    return lambda spec: "yes" if getattr(spec, name) else "no"


def _rerunnable(spec: pb.JobSpec) -> str:
    return "yes" if spec.rerunnable and not spec.not_rerunnable else "no" if spec.not_rerunnable else ""


def _times(zone: tzinfo) -> dict[str, Shown]:
    def moment(name: str) -> Shown:
        def shown(spec: pb.JobSpec) -> str:
            at: float = getattr(spec, name)
            return f"{datetime.fromtimestamp(at, zone):%a %b %e %H:%M %Y}" if at else ""

        return shown

    return {"begin time": moment("begin_time"), "termination time": moment("terminate_time")}


def _values(name: str) -> Shown:
    return lambda spec: _quoted(" ".join(map(str, getattr(spec, name))))


def _field(field: Any) -> Shown:
    """Show a field without words of its own."""
    if field.is_repeated:
        return _values(field.name)
    if field.type == field.TYPE_DOUBLE:
        return lambda spec: f"{number_text(seconds)} seconds" if (seconds := getattr(spec, field.name)) else ""
    if field.type == field.TYPE_BYTES:
        return lambda spec: f"{len(content)} bytes" if (content := getattr(spec, field.name)) else ""
    return _switch(field.name) if field.type == field.TYPE_BOOL else _text(field.name)


def _checkpoint(spec: pb.JobSpec) -> str:
    one = spec.checkpoint
    words = [one.directory, *(_minutes(period) for period in (one.first_s, one.period_s)), one.method]
    return _quoted(" ".join(filter(None, words)))


_SHOWN: dict[str, Shown] = {
    "number of tasks": _tasks,
    "resource requirement": _requirement,
    "GPU requirement": _gpu,
    "hosts": _values("hosts"),
    "exclusive": _switch("exclusive"),
    "run limit": lambda spec: _minutes(spec.run_limit_s),
    "estimated run time": lambda spec: _minutes(spec.runtime_estimate_s),
    "memory limit": _memory,
    "CPU limit": _limit("cpu"),
    "file limit": _limit("fsize"),
    "data limit": _limit("data"),
    "stack limit": _limit("stack"),
    "core limit": _limit("core"),
    "job name": _text("name"),
    "job description": _text("description"),
    "project": _text("project"),
    "user group": _text("user_group"),
    "job group": _text("job_group"),
    "priority": _number("priority"),
    "dependency condition": _text("dependency"),
    "ended when that cannot be met": _switch("ends_orphan"),
    "requeue exit values": _text("requeue_exit_values"),
    "pre-execution command": _text("pre_exec"),
    "post-execution command": _text("post_exec"),
    "reservation": _text("reservation"),
    "rerunnable": _rerunnable,
    "input file": _text("input"),
    "output file": _file("output"),
    "error file": _file("error"),
    "working directory": _text("cwd"),
    "output directory": _text("output_dir"),
    "shell": _text("shell"),
    "elements at once": _number("array_limit"),
    "command": _text("command"),
    "checkpoints": _checkpoint,
    "migration threshold": lambda spec: f"{after - 1} min" if (after := spec.migration_min_plus_one) else "",
    "host file": lambda spec: _quoted(spec.host_file.path),
}
# Fields up to this number have their words above, or bmod does not change them; later ones are shown by name and kind.
_WITH_WORDS = pb.JobSpec.DESCRIPTOR.fields_by_name["resize_notify"].number
_BY_KIND = [
    field
    for field in pb.JobSpec.DESCRIPTOR.fields
    if field.number > _WITH_WORDS and field.name not in {*FOR_GOOD, "checkpoint", "migration_min_plus_one", "host_file"}
]
