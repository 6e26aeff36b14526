"""bacct: sums over ended jobs and, on request, each of them; from the store, or from an lsb.acct file."""

from lavactl.accounting.display import BRIEF_HEADER, brief, header, long, slot_lines, summary
from lavactl.accounting.selection import filters, own_records, request_of
from lavactl.errors import FAILURE, CommandError
from lavactl.options import FLAG, VALUE, Grammar, Options, answered, printable
from lavactl.text.unknown import unknown_queue
from lavactl.views.gpus.usage import usage_text
from lavactl.views.job_long import SEPARATOR
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from lavactl.io import Io
    from protos import jobs_pb2
    from protos.accounts import Tally

USAGE = """\
Usage: bacct [-b | -l [-gpu] | -UF] [-w] [-d] [-e] [-x] [-u "user ..." | -u all] [-q "queue ..."] [-m "host ..."]
             [-P "project ..."] [-J name] [-U reservation] [-app profile] [-sla class]
             [-C time0,time1] [-D time0,time1] [-S time0,time1]
             [-N host | model | factor] [-f file | -f -] [job_id | "job_id[index]" ...]
       bacct -h | -V
  time: [[year/]month/]day[/hour:minute], . for now, .-n/ for n days ago; -f reads an lsb.acct file, -f - the database
"""
GRAMMAR = Grammar(
    "bacct",
    USAGE,
    {
        **dict.fromkeys(("b", "d", "e", "l", "w", "x", "UF", "gpu"), FLAG),
        **dict.fromkeys(("C", "D", "app", "f", "J", "m", "N", "P", "q", "S", "sla", "U", "u"), VALUE),
        "E": "lava does not record which part of the wait a job was eligible for.",
        "aff": "the processors that an ended job was bound to are not recorded.",
        "cname": "there is one cluster only: no host is of another.",
    },
)
NOT_IN_FILES = {"N": "its records have no CPU factors of other hosts", "x": "its records do not tell of hangs"}


def main(argv: list[str], io: "Io") -> int:
    """Run bacct."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    own_records(options)
    form = form_of(options)
    request = request_of(options, form, io)
    if any(not ref.job for ref in request.refs):
        raise CommandError("0: Illegal job ID.")
    source = from_file(options, request, io) if "f" in options else from_store(request, io)
    io.print(header(filters(request, io.user_name())))
    tally = show_jobs(source, options, form, io)
    if request.refs and not tally.done + tally.exited:
        io.flush()
        io.error("No matching job found")
        return FAILURE
    io.print(summary(tally))
    if "f" not in options:
        io.print(slot_lines(tally))
    io.print()
    return 0


def form_of(options: Options) -> "jobs_pb2.AccountForm":
    """Form of the answer.

    Raises:
        UsageError: options contradict each other.
    """
    is_long = "l" in options or "UF" in options
    if is_long and "b" in options:
        raise GRAMMAR.wrong("-b and -l cannot be used together")
    if "gpu" in options and not is_long:
        raise GRAMMAR.wrong("-gpu needs -l")
    return messages.ACCOUNT_LONG if is_long else messages.ACCOUNT_BRIEF if "b" in options else messages.ACCOUNT_SUMMARY


def from_store(request: messages.AccountsRequest, io: "Io") -> "Iterator[jobs_pb2.AccountPage]":
    """Pages of the master's answer.

    Raises:
        CommandError: no queue has one of the names.
    """
    for queue in request.queues:
        if unknown_queue(queue, io):
            raise CommandError(f"{printable(queue)}: No such queue")
    return io.client().accounts(request)


def from_file(options: Options, request: messages.AccountsRequest, io: "Io") -> "Iterator[jobs_pb2.AccountPage]":
    """Pages of the selected records of a file, a record each.

    Raises:
        CommandError: the file cannot be read, or an option goes beyond what it has.
    """
    for letter, why in NOT_IN_FILES.items():
        if letter in options:
            raise CommandError(f"bacct -{letter} and -f cannot be used together: {why}.")
    io.stay()  # a file of any size is read by the caller's own process
    path = io.path(options.last("f") or "")
    try:
        file = open(path, encoding="utf-8", errors="replace")  # noqa: SIM115 - closed by the reader of its pages
    except OSError as error:
        raise CommandError(f"{printable(path)}: {error.strerror}.") from None
    from lavactl.accounting.file_pages import pages_of

    return pages_of(path, file, request, io.user_name())


def show_jobs(
    pages: "Iterator[jobs_pb2.AccountPage]", options: Options, form: "jobs_pb2.AccountForm", io: "Io"
) -> "Tally":
    """Print the jobs in the form asked for, and return the sums over them."""
    from protos.accounts import Tally

    tally, is_first = Tally(), True
    for page in pages:
        tally.join(page.summary)
        for one in page.jobs if form != messages.ACCOUNT_SUMMARY else ():
            job = one.record
            if form == messages.ACCOUNT_BRIEF:
                io.print(f"{BRIEF_HEADER}\n" * is_first + brief(job, "w" in options))
            else:
                is_unformatted = "UF" in options or "w" in options
                io.print(long(job, io.home_of(job.user) or "", is_unformatted))
                if "gpu" in options:
                    io.print(usage_text(job.gpus), end="")
                io.print(f"{SEPARATOR}\n")
            is_first = False
    if form == messages.ACCOUNT_BRIEF and not is_first:
        io.print(f"{SEPARATOR}\n")
    return tally
