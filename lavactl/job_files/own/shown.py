"""The job file of a job that exists: its submission as the master has it, under the keys of lava's own form.

The inverse of bsub's command line: each option's text is one that bsub would read as the same field. Read again, the
file gives an equal job, its environment apart, which the master keeps to itself. -nnodes is
written as what it means.
"""

import time

from lavactl.errors import CommandError
from lavactl.job_files.model import JobFile
from lavactl.job_files.text.nodes import Place
from lavactl.submit.checkpoints import checkpoint_text
from lavactl.submit.hang_rule import hang_text
from lavactl.submit.submission import COUNTS, FLAGS, RLIMITS, TEXTS, WORDS
from lavactl.text import units
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def job_file_of(spec: messages.JobSpec, where: str) -> JobFile:
    """Job file of a submission.

    Raises:
        CommandError: the job was submitted in a way that job files have no words for.
    """
    if spec.script_arguments:
        raise CommandError(f"{where} is a script that was submitted with arguments (-Zs): no job file says that.")
    job = JobFile(where, Place(1, 1), "job", command=spec.command, is_script=spec.is_script)
    job.options = [*_plain(spec), *_limits(spec), *_files(spec)]
    job.umask = spec.umask_plus_one - 1 if spec.umask_plus_one else None
    job.submit_cwd = spec.submit_cwd
    if spec.run_limit_s % 60:
        job.run_limit_s = spec.run_limit_s
    elif spec.run_limit_s:
        job.options.append(("W", _minutes(spec.run_limit_s)))
    if spec.HasField("tasks"):
        job.roles, job.rules = list(spec.roles), spec.tasks
    elif len(spec.roles) > 1:
        raise CommandError(f"{where} has several roles without rules for their tasks: no job file says that.")
    else:
        job.options += [one for role in spec.roles for one in _request(role)]
    return job


def _plain(spec: messages.JobSpec) -> "Iterator[tuple[str, str]]":
    if spec.name:
        yield "J", _name(spec)
    for option, field in WORDS.items():
        if words := " ".join(getattr(spec, field)):
            yield option, words
    for option, field in TEXTS.items():
        if text := getattr(spec, field):
            yield option, text
    for option, field in FLAGS.items():
        if getattr(spec, field):
            yield option, ""
    if spec.rerunnable or spec.not_rerunnable:
        yield "r" if spec.rerunnable else "rn", ""
    if spec.priority:
        yield "sp", str(spec.priority)


def _name(spec: messages.JobSpec) -> str:
    if not spec.array:
        return spec.name
    indices = units.index_text((one.first, one.last, one.step) for one in spec.array)
    return f"{spec.name}[{indices}]" + (f"%{spec.array_limit}" if spec.array_limit else "")


def _limits(spec: messages.JobSpec) -> "Iterator[tuple[str, str]]":
    if spec.runtime_estimate_s:
        yield "We", _minutes(spec.runtime_estimate_s)
    if spec.warning_time_s:
        yield "wt", f"{spec.warning_time_s:.0f}s"
    if spec.migration_min_plus_one:
        yield "mig", str(spec.migration_min_plus_one - 1)
    if spec.memory_limit_mib:
        yield "M", f"{spec.memory_limit_mib}M"
    if spec.begin_time:
        yield "b", _date(spec.begin_time)
    if spec.terminate_time:
        yield "t", _date(spec.terminate_time)
    for copy in spec.file_copies:
        yield "f", copy
    if spec.HasField("checkpoint"):
        yield "k", checkpoint_text(spec.checkpoint)
    if spec.HasField("hang"):
        yield "hang", hang_text(spec.hang)
    options = {name: option for option, name in (RLIMITS | COUNTS).items()}
    for limit in spec.rlimits:
        if limit.name == "cpu":
            yield "c", _minutes(limit.soft)
        else:
            yield options[limit.name], str(limit.soft if limit.name in COUNTS.values() else limit.soft >> 10)


def _minutes(seconds: int) -> str:
    minutes = -(-seconds // 60)
    return f"{minutes // 60}:{minutes % 60:02}"


def _date(seconds: float) -> str:
    return time.strftime("%Y:%m:%d:%H:%M", time.localtime(seconds))


def _files(spec: messages.JobSpec) -> "Iterator[tuple[str, str]]":
    if spec.cwd and spec.cwd != spec.submit_cwd:
        yield "cwd", spec.cwd
    if spec.output_dir:
        yield "outdir", spec.output_dir
    if spec.input:
        yield "is" if spec.input_spooled else "i", spec.input
    if spec.output:
        yield "oo" if spec.output_overwrite else "o", spec.output
    if spec.error:
        yield "eo" if spec.error_overwrite else "e", spec.error


def _request(role: messages.Role) -> "Iterator[tuple[str, str]]":
    if role.tasks_min:
        most = max(role.tasks_min, role.tasks_max)
        yield "n", str(role.tasks_min) if most == role.tasks_min else f"{role.tasks_min},{most}"
    if role.requirement:
        yield "R", role.requirement
    if role.gpu.text or role.gpu.num:
        yield "gpu", role.gpu.text or f"num={role.gpu.num}"
