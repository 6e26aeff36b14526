"""lavactl logs: output of the tasks of a job, of their newest or of an earlier run; with -f also further output."""

from lavactl.jobrefs import read_ref
from lavactl.options import FLAG, VALUE, Grammar, answered
from lavactl.taskrefs import TaskRef, job_of, names_tasks, read_task, read_task_ref
from lavactl.tasks.task_output import show_tasks
from lavactl.text.units import read_count
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lavactl logs [-f] [--attempt run] [--apart] job_id [role | role/task]
       lavactl logs [-f] [--attempt run] [--apart] "job_id[role/task]"
Several tasks: each line begins with the name of its task; --apart: one task after the other, each under its name.
"""
GRAMMAR = Grammar("logs", USAGE, {"f": FLAG, "-attempt": VALUE, "-apart": FLAG})
RUNS_MAX = 2**31 - 1


def main(argv: list[str], io: "Io") -> int:
    """Run lavactl logs."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    text = options.last("-attempt")
    try:
        run = read_count(text, 1, RUNS_MAX) if text is not None else 0
    except ValueError:
        raise GRAMMAR.wrong("--attempt: the number of a run, from 1, is expected") from None
    job, chosen = _chosen(options.words, io)
    if "f" in options and "-apart" in options:
        raise GRAMMAR.wrong("-f shows all tasks at once, --apart one after the other")
    return show_tasks(job, chosen, io, run=run, follow="f" in options, apart="-apart" in options)


def _chosen(words: list[str], io: "Io") -> tuple[messages.JobRecord, TaskRef | None]:
    if len(words) == 1 and names_tasks(words[0]):
        ref = read_task_ref(words[0])
        return job_of(ref.job, io), ref
    if len(words) not in (1, 2):
        raise GRAMMAR.wrong("a job, and of it one task or role, is expected")
    job = read_ref(words[0])
    chosen = TaskRef(job, *read_task(words[1])) if len(words) == 2 else None
    return job_of(job, io), chosen
