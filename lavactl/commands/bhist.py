"""bhist: history of jobs and the time spent in each state, as far back as the store reaches; or of a log's jobs."""

import re

from lavactl.accounting.selection import INTERVALS, interval, own_records
from lavactl.control import NOTHING as NO_JOB
from lavactl.errors import FAILURE, CommandError
from lavactl.jobrefs import key_text, read_refs
from lavactl.options import FLAG, VALUE, Grammar, Options, answered, printable
from lavactl.text.render import clean, is_output_kept, keep_tail, kept_output, long_time, wrap
from lavactl.text.units import read_count
from lavactl.views import job_conditions
from lavactl.views.gpus.usage import usage_text
from lavactl.views.job_details import Completion
from lavactl.views.job_long import SEPARATOR, head, host_file_text, limits, submitted
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from lavactl.io import Io
    from protos import jobs_pb2

    Entry = tuple[jobs_pb2.JobHistory, messages.JobRecord]

USAGE = """\
Usage: bhist [-a | -d | -e | -p | -r | -s] [-l | -UF] [-gpu] [-hostfile] [-b | -w | -t [-T time0,time1]]
             [-f file | -f - | -n files] [-u user | -u all] [-q queue] [-m host] [-J name] [-Jd description]
             [-G user_group] [-g /job/group] [-P project] [-app profile] [-sla class] [-N host | model | factor]
             [-S time0,time1] [-D time0,time1] [-C time0,time1]
             [job_id | "job_id[index]" ...]
       bhist -h | -V
  -UF         as -l, each paragraph on one line
  -b          the events of each job in few words
  -f          an lsb.events file, of lava or LSF, instead of the database, which -f - means
  -n          taken for scripts: the database is no row of files, and all of it is searched
  -N          CPU times as that host, host model or CPU factor would have taken them
  -t          the events of all jobs by their time, of the last week, of LSB_BHIST_HOURS or within -T
  -S, -D, -C  jobs in any state that were submitted, dispatched, completed then
  time: [[year/]month/]day[/hour:minute], . for now, .-n/ for n days ago
"""
GRAMMAR = Grammar(
    "bhist",
    USAGE,
    {
        **dict.fromkeys(("a", "b", "d", "e", "p", "r", "s", "l", "t", "w", "gpu", "UF", "hostfile"), FLAG),
        **dict.fromkeys(
            ("f", "n", "u", "q", "m", "J", "P", "C", "D", "S", "T", "G", "Jd", "app", "g", "sla", "N"), VALUE
        ),
        "aff": "the processors that an ended job was bound to are not recorded.",
        "cname": "there is one cluster only: no host is of another.",
        "data": "there is no data manager: lava expects a shared file system.",
        "Lp": "lava has no licence projects.",
    },
)  # fmt: skip
SELECTIONS = {
    "p": (messages.PEND, messages.PSUSP),
    "r": (messages.RUN, messages.STAGING, messages.UNKWN),
    "s": (messages.USUSP, messages.SSUSP, messages.PSUSP),
    "d": (messages.DONE, messages.EXIT),
    "e": (messages.EXIT,),
}
STATES = ("PEND", "PSUSP", "RUN", "USUSP", "SSUSP", "UNKWN")
TITLE = "Summary of time in seconds spent in various states:"
HEADER = "JOBID   USER    JOB_NAME  PEND    PSUSP   RUN     USUSP   SSUSP   UNKWN   TOTAL"
ROW = "%-7s %-7s %-9s %-7d %-7d %-7d %-7d %-7d %-7d %d"
ENDED = (messages.DONE, messages.EXIT)
TOLD = ("l", "UF", "b", "t")  # forms that show events
NOT_IN_FILES = {
    "N": "its records have no CPU factors of other hosts",
    "app": "its records do not name application profiles in an order that all have",
    "g": "its records do not name job groups in an order that all have",
    "gpu": "its records do not tell of GPUs",
    "hostfile": "its records do not tell of host files",
    "sla": "its records do not name service classes in an order that all have",
    "n": "-f names the one file",
}
SUBMITTED = "Submitted from"
WEEK_H = 7 * 24
FILES = re.compile(r"-?\d+|\d+,\d+")  # of -n: so many files, from one to another, so many blocks


def main(argv: list[str], io: "Io") -> int:
    """Run bhist."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    own_records(options)
    check(options)
    is_told, conditions = any(name in options for name in TOLD), conditions_of(options, io)
    within = times_of(options, io)
    pages = histories(options, request_of(options, is_told or bool(conditions), within, io), io)
    if within is not None:
        found = show_by_time(chosen(pages, conditions), within, io)
    elif is_told:
        found = show_all_long(chosen(pages, conditions), options, io)
    elif conditions:
        jobs = ([job for job, _ in page] for page in chosen(pages, conditions))
        found = show_rows(jobs, io, is_wide="w" in options)
    else:
        found = show_rows((page.jobs for page in pages), io, is_wide="w" in options)
    return 0 if found else nothing(options, io)


def request_of(
    options: Options, needs_details: bool, within: messages.TimeRange | None, io: "Io"
) -> messages.HistoryRequest:
    """The master's request for these options."""
    request = messages.HistoryRequest(
        filter=job_filter(options),
        details=needs_details,
        shares_details=needs_details,
        normalized_to=options.last("N") or "",
    )
    for letter, name, _ in INTERVALS:
        if letter in options:
            getattr(request, name).CopyFrom(interval(options, letter, "bhist", io))
    if within is not None:
        request.between.CopyFrom(within)
    return request


def conditions_of(options: Options, io: "Io") -> "list[job_conditions.Condition]":
    """Conditions on what only the details of a job tell."""
    found = job_conditions.conditions(options, io.now())
    if (group := options.last("g")) is not None:
        found.append(lambda job: job.spec.job_group == (group.rstrip("/") or "/"))
    if (name := options.last("sla")) is not None:
        found.append(lambda job: job.spec.service_class == name)
    return found


def histories(options: Options, request: messages.HistoryRequest, io: "Io") -> "Iterator[jobs_pb2.HistoryPage]":
    """Pages of the master's answer, or those of a file.

    Raises:
        CommandError: the file cannot be read.
    """
    name = options.last("f")
    if name is None:
        return io.client().history(request)
    io.stay()  # a file of any size is read by the caller's own process
    path = io.path(name)
    try:
        file = open(path, "rb")  # noqa: SIM115 - closed by the reader of its pages
    except OSError as error:
        raise CommandError(f"{printable(path)}: {error.strerror}.") from None
    return pages_of(path, file, request, io)


def pages_of(
    path: str, file: "BinaryIO", request: messages.HistoryRequest, io: "Io"
) -> "Iterator[jobs_pb2.HistoryPage]":
    """Pages of the selected histories of a file, which is closed at the end."""
    from lavactl.accounting.event_history import histories as histories_of

    with file:
        lines = (line.decode(errors="replace") for line in file)
        yield from histories_of(path, lines, request, io.user_name(), io.now())


def check(options: Options) -> None:
    """Refuse mutually exclusive forms, and options that one of the others leaves without an effect."""
    forms = [name for name in (*TOLD, "w") if name in options]
    if len(forms) > 1 and forms != ["l", "UF"]:
        raise GRAMMAR.wrong(f"-{forms[0]} and -{forms[1]} cannot be used together")
    for name in ("gpu", "hostfile"):
        if name in options and not ("l" in options or "UF" in options):
            raise GRAMMAR.wrong(f"-{name} needs -l")
    if "T" in options and "t" not in options:
        raise GRAMMAR.wrong("-T needs -t")
    if "N" in options and not forms:
        raise GRAMMAR.wrong("-N needs -l, -UF, -b or -t: no other form shows CPU times")
    if not FILES.fullmatch(options.last("n") or "0"):
        raise GRAMMAR.wrong(f"-n {printable(options.last('n') or '')}: expected a number of files, or min,max")
    for letter, why in NOT_IN_FILES.items():
        if "f" in options and letter in options:
            raise CommandError(f"bhist -{letter} and -f cannot be used together: {why}.")


def times_of(options: Options, io: "Io") -> messages.TimeRange | None:
    """Times of the events that -t shows; None without it."""
    if "t" not in options:
        return None
    if "T" in options:
        return interval(options, "T", "bhist", io)
    text = io.setting("LSB_BHIST_HOURS") or ""
    try:
        hours = read_count(text) if text else WEEK_H
    except ValueError:
        raise CommandError(f"LSB_BHIST_HOURS: {printable(text)}: expected a number of hours.") from None
    return messages.TimeRange(first=io.now() - 3600.0 * hours)


def job_filter(options: Options) -> messages.JobFilter:
    """Filter for the named jobs in any state and of any owner; otherwise for the caller's, unfinished unless options
    differ.
    """
    refs = read_refs(options.words)
    chosen = {state for letter, states in SELECTIONS.items() if letter in options for state in states}
    return messages.JobFilter(
        refs=refs,
        user=options.last("u") or ("all" if refs else ""),
        queue=options.last("q") or "",
        host=options.last("m") or "",
        name=options.last("J") or "",
        project=options.last("P") or "",
        application=options.last("app") or "",
        states=sorted(chosen),
        finished_too="a" in options or ((bool(refs) or any(name in options for name in "SDCt")) and not chosen),
    )


def nothing(options: Options, io: "Io") -> int:
    """Report that no job matched; the exit code."""
    io.error("No matching job found" if options.words or options.items else NO_JOB)
    return FAILURE


def seconds(job: "jobs_pb2.JobHistory") -> list[int]:
    """Seconds in each state, and their sum."""
    known = job.seconds_by_state
    spent = [round(known[state]) if state in known else 0 for state in STATES]
    return [*spent, sum(spent)]


def chosen(
    pages: "Iterable[jobs_pb2.HistoryPage]", conditions: "list[job_conditions.Condition]"
) -> "Iterator[list[Entry]]":
    """Histories for which the conditions hold, page by page, each with its record: details are shared by elements."""
    completion = Completion()
    for page in pages:
        records = completion.complete([job.record for job in page.jobs])
        pairs = zip(page.jobs, records, strict=True)
        yield [(job, record) for job, record in pairs if all(holds(record) for holds in conditions)]


def show_rows(pages: "Iterable[Iterable[jobs_pb2.JobHistory]]", io: "Io", *, is_wide: bool) -> bool:
    """Print the summary, a line for each job; True if there was any."""
    found = False
    for page in pages:
        rows = [row(job, is_wide) for job in page]
        if rows:
            io.print("\n".join(rows if found else [TITLE, HEADER, *rows]))
            found = True
    return found


def row(job: "jobs_pb2.JobHistory", is_wide: bool) -> str:
    """One line of the summary."""
    name, user = clean(job.name), job.user
    if not is_wide:
        name, user = keep_tail(name, 9), user[:7]
    return ROW % (key_text(job.job, job.index), user, name, *seconds(job))


def show_all_long(pages: "Iterable[list[Entry]]", options: Options, io: "Io") -> bool:
    """Print all histories in full, or in brief; True if there was any."""
    found = False
    for page in pages:
        for job, record in page:
            show_long(job, record, options, io, first=not found)
            if "hostfile" in options:
                io.print(host_file_text(record), end="")
            if "gpu" in options:
                io.print(usage_text(job.record.gpus), end="")
            found = True
    return found


def show_long(
    job: "jobs_pb2.JobHistory", record: messages.JobRecord, options: Options, io: "Io", *, first: bool
) -> None:
    """History and summary of one job; -b leaves out what was asked for at submission, -UF breaks no line.

    Args:
        record: the job's record with the details that the elements of an array share.
    """
    is_brief, is_unformatted = "b" in options, "UF" in options
    fold = str if is_unformatted else wrap
    home = record.exec_home or io.home_of(job.user) or ""
    told = f"{long_time(record.submit_time)}: {submitted(record, is_unformatted, home, to_queue=True)};"
    notes = [note for note in job.notes if is_brief or not note.text.startswith(SUBMITTED)]
    events = [f"{long_time(note.time)}: {event_text(note)};" for note in notes]
    lines = [] if first else [SEPARATOR]
    lines += ["", fold(head(record, state=False))]
    lines += [] if is_brief else [fold(told), *limits(record)]
    lines += map(fold, events)
    lines += [""] if lines[-1] else []  # limits end in a blank line themselves
    keeps_output = "f" not in options and is_output_kept(record.spec, bool(io.site_setting("LSB_MAILPROG")))
    if record.start_time and keeps_output:
        lines += [kept_output(key_text(job.job, job.index)), ""]
    until = record.end_time if record.state in ENDED and record.end_time else io.now()
    lines.append(f"Summary of time in seconds spent in various states by  {long_time(until)}")
    lines.append("  PEND     PSUSP    RUN      USUSP    SSUSP    UNKWN    TOTAL")
    lines.append("  " + " ".join(f"{number:<8}" for number in seconds(job)).rstrip())
    io.print("\n".join(lines))


def event_text(note: "jobs_pb2.JobNote") -> str:
    """Event without the punctuation at its end."""
    return clean(note.text).rstrip(".;")


def show_by_time(pages: "Iterable[list[Entry]]", within: messages.TimeRange, io: "Io") -> bool:
    """Print the events of all jobs by their time; True if there was any.

    Jobs come in the order of their submission, and no event of a job is earlier than that: what came before the
    submission of the present job is printed at once, so that only the events of jobs that overlap are kept.
    """
    from heapq import heappop, heappush

    waiting: list[tuple[float, int, int, int, str]] = []
    found = False

    def tell(until: float) -> None:
        nonlocal found
        while waiting and waiting[0][0] < until:
            at, job, index, _, text = heappop(waiting)
            line = f"{long_time(at)}: Job <{key_text(job, index)}> {text[:1].lower()}{text[1:]};"
            io.print(wrap(line))
            found = True

    for page in pages:
        for job, record in page:
            tell(record.submit_time)
            for place, note in enumerate(job.notes):
                if note.time >= within.first and (not within.last or note.time <= within.last):
                    heappush(waiting, (note.time, job.job, job.index, place, event_text(note)))
    tell(float("inf"))
    return found
