"""bpeek: output of a running job so far; with -f also further output."""

from lavactl.errors import FAILURE, CommandError
from lavactl.jobrefs import read_ref
from lavactl.options import FLAG, VALUE, Grammar, answered
from lavactl.taskrefs import TaskRef, job_of, names_tasks, read_task_ref
from lavactl.text.render import clean
from lavactl.wire import messages
from lavactl.wire.listed import jobs_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bpeek [-f] [-J name] [-m host] [-q queue] [job_id | "job_id[index]" | "job_id[role]" | "job_id[role/task]"]
       bpeek -h | -V
"""
GRAMMAR = Grammar(
    "bpeek",
    USAGE,
    {"f": FLAG, "l": "the manual of LSF's bpeek describes no such option.", **dict.fromkeys(("J", "m", "q"), VALUE)},
)
OUTPUT = b"<< output from stdout >>\n"
ERRORS = b"<< output from stderr >>\n"


def main(argv: list[str], io: "Io") -> int:
    """Run bpeek."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if "f" in options:
        io.stay()
    if len(options.words) > 1:
        raise GRAMMAR.wrong("only one job at a time")
    if options.words and names_tasks(options.words[0]):
        return _peek_tasks(read_task_ref(options.words[0]), "f" in options, io)
    request = messages.PeekRequest(follow="f" in options)
    if options.words:
        request.job.ref.CopyFrom(read_ref(options.words[0]))
    request.job.filter.name = options.last("J") or ""
    request.job.filter.queue = options.last("q") or ""
    request.job.filter.host = options.last("m") or ""
    return show(request, io)


def show(request: messages.PeekRequest, io: "Io") -> int:
    """Print output as it arrives. Standard error kept in a file of its own follows under its own title."""
    shown = None
    for chunk in io.client().peek(request):
        if chunk.has_tasks:
            return _peek_all(request, io)
        if chunk.error:
            io.flush()
            raise CommandError(clean(chunk.error), FAILURE)
        if shown is not chunk.is_error_file:
            io.write(ERRORS if chunk.is_error_file else OUTPUT)
            shown = chunk.is_error_file
        io.write(chunk.data)
        io.flush()
    if shown is None:
        io.write(OUTPUT)
    return 0


def _peek_tasks(ref: TaskRef, follow: bool, io: "Io") -> int:
    """Print the output of some tasks of a job."""
    from lavactl.tasks.task_output import show_tasks

    io.write(OUTPUT)
    return show_tasks(job_of(ref.job, io), ref, io, follow=follow)


def _peek_all(request: messages.PeekRequest, io: "Io") -> int:
    """Print the output of all tasks of the job that a request selects: the newest one that matches."""
    from lavactl.tasks.task_output import show_tasks

    ref = request.job.ref
    if not ref.job:
        wanted = request.job.filter
        pages = io.client().list_jobs(messages.ListJobsRequest(filter=wanted, columns=True))
        newest = max(job.job for page in pages for job in jobs_of(page))
        ref = messages.JobRef(job=newest)
    io.write(OUTPUT)
    return show_tasks(job_of(ref, io), None, io, follow=request.follow)
