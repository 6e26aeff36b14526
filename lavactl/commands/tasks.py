"""lavactl tasks: tasks of a job, with their hosts, runs and exit codes."""

from lavactl.errors import FAILURE, CommandError
from lavactl.jobrefs import read_ref
from lavactl.options import FLAG, Grammar, answered
from lavactl.taskrefs import job_of, names_tasks, read_task_ref
from lavactl.tasks.task_table import HEADER, task_rows
from lavactl.text.columns import table
from lavactl.text.progress import progress_text
from lavactl.text.render import json_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lavactl tasks [-json] [-noheader] job_id | "job_id[index]" | "job_id[role]" | "job_id[role/task]"
"""
GRAMMAR = Grammar("tasks", USAGE, {"json": FLAG, "noheader": FLAG})


def main(argv: list[str], io: "Io") -> int:
    """Run lavactl tasks."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if len(options.words) != 1:
        raise GRAMMAR.wrong("one job is expected")
    word = options.words[0]
    chosen = read_task_ref(word) if names_tasks(word) else None
    job = job_of(chosen.job if chosen else read_ref(word), io)
    rows = task_rows(job)
    if chosen is not None:
        is_wanted = [chosen.selects(job.spec.roles[one.task.role].name, one.task.index) for one in job.tasks]
        rows = [row for row, wanted in zip(rows, is_wanted, strict=True) if wanted]
        if not rows:
            raise CommandError(f"Job <{chosen}> has no such task.", FAILURE)
    if "json" in options:
        io.print(json_text("tasks", "TASKS", [dict(zip(HEADER, row, strict=True)) for row in rows]))
    elif "noheader" in options:
        if rows:
            io.print(table(rows[0], rows[1:]))
    else:
        if report := progress_text(job, io.now()):
            io.print(f"Progress: {report}")
        io.print(table(HEADER, rows) if rows else f"Job <{job.job}> has not been dispatched.")
    return 0
