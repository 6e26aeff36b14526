"""Tasks of a job as a table: bjobs -l and ``lavactl tasks``."""

from time import time

from lavactl.taskrefs import task_text
from lavactl.text.columns import table
from lavactl.text.exits import exit_code
from lavactl.text.render import clean, long_time, short_time
from lavactl.text.units import number_text
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from protos.common_pb2 import TaskState

HEADER = ("TASK", "STAT", "HOST", "RUN", "EXIT", "PID", "STARTED", "ENDED", "REASON")
PHASES = ("WAIT", "START", "RUN", "STOP", "DONE", "EXIT")
WAITING, RUNNING, DONE, EXITED = 0, 2, 4, 5
SUSPENDED = "SUSP"  # it runs, and its job is suspended


def task_rows(job: messages.JobRecord) -> list[tuple[str, ...]]:
    """A row for each task, by role and index."""
    names = [role.name for role in job.spec.roles]
    is_stopped = job.state in (messages.USUSP, messages.SSUSP)
    return [
        _row(clean(names[one.task.role]) if one.task.role < len(names) else "-", one, is_stopped) for one in job.tasks
    ]


def _row(role: str, one: "TaskState", is_stopped: bool) -> tuple[str, ...]:
    has_ended = one.phase in (DONE, EXITED) and one.task.run > 0
    return (
        task_text(role, one.task.index),
        SUSPENDED if is_stopped and one.phase == RUNNING else PHASES[one.phase],
        clean(one.host) or "-",
        str(one.task.run) if one.task.run else "-",
        str(exit_code(one.status)) if has_ended else "-",
        str(one.pid) if one.pid else "-",
        short_time(one.started) if one.started else "-",
        short_time(one.ended) if one.ended and has_ended else "-",
        clean(_waits(one) or one.detail or one.reason) or "-",
    )


def _waits(one: "TaskState") -> str:
    """Wait of a task that is to be started anew after a pause, in words; empty for others."""
    if one.phase != WAITING or not one.not_before or one.not_before <= time():
        return ""
    times = f"{one.failures} time{'s' * (one.failures != 1)} in a row"
    return f"ended {times}, starts at {long_time(one.not_before)}"


def task_lines(job: messages.JobRecord) -> list[str]:
    """Block of bjobs -l about the tasks; nothing for a job without tasks of its own."""
    if not job.tasks:
        return []
    again = f" (the job was restarted {job.restarts} time{'s' * (job.restarts != 1)})" if job.restarts else ""
    rows = [f" {line}" for line in table(HEADER, task_rows(job)).split("\n")]
    return ["", f" TASKS:{again}", *rows, *_autoscale_lines(job)]


def _autoscale_lines(job: messages.JobRecord) -> list[str]:
    rule = job.spec.tasks.autoscale
    if not rule.role:
        return []
    found = ["", f" AUTOSCALE: {clean(autoscale_text(rule))}"]
    return [*found, f" {clean(job.autoscale_error)}; the size stays"] if job.autoscale_error else found


def autoscale_text(rule: messages.Autoscale) -> str:
    """One line about the metric that a role's size follows."""
    by_script = f"`{rule.command}` every {number_text(rule.interval_s)} s"
    of = by_script if rule.metric == "script" else f"{rule.target} for each task"
    bounds = f"{rule.least or 'its minimum'} to {rule.most or 'its maximum'} tasks"
    return f"role {rule.role} by {rule.metric}, {of}; {bounds}, {number_text(rule.cooldown_s)} s between changes"


def role_text(spec: messages.JobSpec) -> str:
    """Sizes of the roles of a job of tasks: ``Roles <ps: 1, worker: 1-3>``; empty for other jobs."""
    if not spec.HasField("tasks"):
        return ""
    return f"Roles <{', '.join(f'{clean(role.name)}: {_size(role)}' for role in spec.roles)}>"


def _size(role: messages.Role) -> str:
    most = role.tasks_max or role.tasks_min or 1
    least = 0 if role.may_be_absent else role.tasks_min or 1
    at_once = str(most) if least == most else f"{least}-{most}"
    return f"{at_once} of {role.completions}" if role.completions else at_once
