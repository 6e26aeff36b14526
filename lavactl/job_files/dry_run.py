"""A job file as lava understood it, in words: options as of bsub, roles with what each task gets and does, rules."""

import shlex

from lavactl.job_files.model import ACTIONS, EVENTS, LAUNCHES, RESTARTS, UNLIMITED, JobFile
from lavactl.job_files.own.writer import word_of
from lavactl.job_files.text.durations import duration_text
from lavactl.job_files.text.fields import Note
from lavactl.job_files.told import told_roles
from lavactl.job_files.understanding import Understood
from lavactl.options import FLAG
from lavactl.submit.submission import KINDS
from lavactl.tasks.task_table import autoscale_text
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LAUNCHED = {
    "each": "runs in each task",
    "first": "runs in its first task",
    "host": "runs once on each host",
    "none": "runs nothing",
}

PAUSE_MAX_S, STABLE_S = 300.0, 600.0  # without keys of their own


def describe(found: Understood) -> str:
    """Text of a dry run: each job, then all remarks."""
    lines = [line for number, job in enumerate(found.jobs, 1) for line in _job(number, job)]
    notes = sorted([*found.notes, *(note for job in found.jobs for note in job.notes)])
    if not found.jobs:
        lines.append(f"{found.file}: there is no job in this file.")
    return "\n".join([*lines, *(note_text(found.file, note) for note in notes)])


def note_text(file: str, note: Note) -> str:
    """One remark with its place."""
    return (
        f"{file}:{note.place.line}: {note.field}: {note.text}"
        if note.field
        else (f"{file}:{note.place.line}: {note.text}")
    )


def _job(number: int, job: JobFile) -> "Iterator[str]":
    yield f"Job {number}: {job.kind}, line {job.place.line}"
    yield f"  bsub {_options(job)}".rstrip()
    if job.after:
        yield f"  starts when done: {', '.join(job.after)}"
    if job.environment:
        yield f"  environment: {', '.join(entry.partition('=')[0] for entry in job.environment)}"
    if job.run_limit_s:
        yield f"  run limit: {duration_text(job.run_limit_s)}"
    if job.rules is None:
        yield f"  {'script' if job.is_script else 'command'}: {_shown(job.command)}"
        return
    yield from _rules(job.rules, job.roles)
    for role in job.roles:
        yield from _role(role, job)


def _options(job: JobFile) -> str:
    words = []
    for option, value in job.options:
        words += [f"-{option}"] if KINDS[option] == FLAG else [f"-{option}", _shown(shlex.quote(value))]
    return " ".join(words)


def _shown(text: str) -> str:
    """Command on one line."""
    return text.strip().replace("\n", "\\n")


def _rules(rules: messages.TaskRules, roles: "list[messages.Role]") -> "Iterator[str]":
    if rules.restarts_max:
        often = "without end" if rules.restarts_max >= UNLIMITED else f"at most {_times(rules.restarts_max)}"
        yield f"  restarts of the job: {often}{' when it fails' if rules.restarts_when_failed else ''}"
    if rules.succeeded_enough:
        yield f"  done when {_tasks(rules.succeeded_enough)} succeeded"
    if rules.success_min:
        yield f"  failed at the end if fewer than {_tasks(rules.success_min)} succeeded"
    if rules.final_codes:
        yield f"  never restarted after exit codes {_codes(rules.final_codes)}"
    if rules.free_codes:
        yield f"  always restarted after exit codes {_codes(rules.free_codes)}"
    if rules.has_replace:
        yield f"  waits for hosts in place of lost ones: {duration_text(rules.replace_s) if rules.replace_s else 'no'}"
    yield from (f"  {line}" for line in _pauses(rules))
    if rules.has_ttl:
        yield f"  leaves the lists {duration_text(rules.ttl_s)} after its end"
    for policy in rules.policies:
        yield f"  {_policy(policy)}"
    if rules.autoscale.role:
        yield f"  {autoscale_text(rules.autoscale)}"
    for one in rules.conventions:
        whose = _whose(told_roles(one, [role.name for role in roles]), len(roles))
        what = "each task has a copy of its code" if one.name == "code" else f"{whose} told as by {one.name}"
        yield f"  {what}" + (f": {', '.join(one.options)}" if one.options else "")
    if rules.secrets:
        yield f"  secrets: {_names(rules.secrets)}"


def _whose(told: "list[str]", count: int) -> str:
    """The tasks that are told, as the beginning of a sentence: all, those of some roles, or none."""
    return "tasks are" if len(told) == count else f"tasks of {', '.join(told)} are" if told else "no tasks are"


def _role(role: messages.Role, job: JobFile) -> "Iterator[str]":
    least = 0 if role.may_be_absent else role.tasks_min
    number = _tasks(role.tasks_max) if least == role.tasks_max else f"{least} to {_tasks(role.tasks_max)}"
    if role.completions:
        at_once = least if least == role.tasks_max else f"{least} to {role.tasks_max}"
        number = f"{_tasks(role.completions)}, {at_once} at once"
    yield f"  role {role.name}: {number}, {role.slots_per_task} slot{'s' * (role.slots_per_task > 1)} each"
    if role.spares:
        yield f"    spares: {role.spares}"
    if role.requirement:
        yield f"    requirement: {role.requirement}"
    if role.gpu.text:
        yield f"    gpu: {role.gpu.text}"
    if role.memory_limit_mib:
        yield f"    memory limit of a task: {role.memory_limit_mib} MiB"
    if role.spread:
        yield f"    placement: {role.spread}"
    command = role.command or shlex.join(role.argv) or job.command
    how = LAUNCHED[word_of(LAUNCHES, role.launch)]
    shown = _shown(command) if command else "a command that is given beside the file"
    yield f"    {how}" if role.launch == messages.LAUNCH_NONE else f"    {how}: {shown}"
    if role.image:
        yield f"    image: {role.image}"
    if role.cwd:
        yield f"    directory: {role.cwd}"
    if role.environment:
        yield f"    environment: {_names(role.environment)}"
    yield from _life(role, job.rules is not None and job.rules.needs_each)


def _life(role: messages.Role, job_needs_each: bool) -> "Iterator[str]":
    if role.ports:
        yield f"    ports: {', '.join(map(_port, role.ports))}"
    if role.after:
        yield f"    starts after: {(' or ' if role.after_any else ', ').join(role.after)}"
    if role.after_done:
        yield f"    starts when done: {', '.join(role.after_done)}"
    if role.restart != messages.RESTART_NEVER and role.restarts_max:
        whose = f"for each {role.group} of them".replace(" 1 ", " ") if role.group else "in all"
        often = "" if role.restarts_max >= UNLIMITED else f", at most {_times(role.restarts_max)} {whose}"
        yield f"    restarted in place: {word_of(RESTARTS, role.restart)}{often}"
    yield from (f"    {line}" for line in _pauses(role))
    if role.failed_enough:
        yield f"    the job fails when {_tasks(role.failed_enough)} failed"
    if role.succeeded_enough:
        others = " and the other roles have enough" * job_needs_each
        yield f"    the job is done when {_tasks(role.succeeded_enough)} succeeded{others}"
    if role.success_min:
        yield f"    the job failed at the end if fewer than {_tasks(role.success_min)} succeeded"
    if role.run_limit_s:
        yield f"    run limit of a task: {duration_text(role.run_limit_s)}"
    for policy in role.policies:
        yield f"    {_policy(policy)}"


def _pauses(given: "messages.Role | messages.TaskRules") -> "Iterator[str]":
    if given.restart_pause_s:
        least, most = duration_text(given.restart_pause_s), duration_text(given.restart_pause_max_s or PAUSE_MAX_S)
        yield f"pause before a restart in place: {least}, with each failure in a row up to {most}"
        yield f"a run of {duration_text(given.stable_s or STABLE_S)} ends a row of failures"


def _names(entries: "Iterable[bytes]") -> str:
    return ", ".join(entry.partition(b"=")[0].decode("utf-8", "replace") for entry in entries)


def _tasks(count: int) -> str:
    return f"{count} task{'s' * (count != 1)}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _codes(codes: "Iterable[int]") -> str:
    """Codes, runs of three and more as FIRST-LAST."""
    runs: list[list[int]] = []
    for code in codes:
        if runs and code == runs[-1][-1] + 1:
            runs[-1].append(code)
        else:
            runs.append([code])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs)


def _port(port: messages.PortRequest) -> str:
    count = f" x {port.count}" if port.count > 1 else ""
    where = f" at {port.number}{' or another' * port.is_preferred}" if port.number else ""
    return f"{port.name}{count}{where}"


def _policy(policy: messages.TaskPolicy) -> str:
    events = [word_of(EVENTS, event) for event in policy.events]
    when = " or ".join(events) if events else f"exit code {_codes(policy.exit_codes)}"
    which = f" of task {policy.index_plus_one - 1}" if policy.index_plus_one else ""
    later = f" after {duration_text(policy.timeout_s)}" if policy.timeout_s else ""
    return f"on {when}{which}: {word_of(ACTIONS, policy.action)}{later}{', uncounted' * policy.uncounted}"
