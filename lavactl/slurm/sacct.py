"""sacct: jobs that have ended and those that have not, with their usage.

A job has its own line, and one of its batch step, where its usage stands; steps of srun are not recorded apart.
"""

import math
import re

from lavactl.slurm.words import accounting_fields, formats, values
from lavactl.slurm.words.ids import Array, read_id
from lavactl.slurm.words.jobs import JobView, Waiting
from lavactl.slurm.words.json_text import jobs_text
from lavactl.slurm.words.options import FLAG, MAYBE, STANDARD, Given, Option, Parser, answered, fail, ignored, refused
from lavactl.slurm.words.selection import hosts_of, listed, split_ids, states_of
from lavactl.slurm.words.states import ENDED, may_have
from lavactl.slurm.words.variables import with_variables
from lavactl.views.job_details import Completion
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from lavactl.io import Io

USAGE = "Usage: sacct [options]"
OPTIONS = (
    *STANDARD,
    Option("accounts", "A", words="jobs of these projects"),
    Option("allocations", "X", FLAG, words="no lines of steps"),
    Option("allusers", "a", FLAG, words="jobs of all users"),
    Option("array", "", FLAG, words="a line for each pending element of an array"),
    Option("brief", "b", FLAG, words="jobid,state,exitcode"),
    Option("delimiter", words="between the columns of -p and -P"),
    Option("endtime", "E", words="jobs that were there before this time"),
    Option("format", "o", words="names of fields, with %width; all", env="FORMAT"),
    Option("helpformat", "e", FLAG, words="the names of all fields"),
    Option("jobs", "j", words="these jobs, or with .batch their steps"),
    Option("json", "", MAYBE, words="the main fields of Slurm's JSON"),
    Option("long", "l", FLAG, words="many fields"),
    Option("name", words="jobs of these names"),
    Option("nodelist", "N", words="jobs on these hosts"),
    Option("noheader", "n", FLAG, words="no line of titles"),
    Option("parsable", "p", FLAG, words="columns with | after each"),
    Option("parsable2", "P", FLAG, words="columns with | between them"),
    Option("partition", "r", words="jobs of these queues"),
    Option("starttime", "S", words="jobs that were there after this time; today without -j"),
    Option("state", "s", words="jobs of these states"),
    Option("user", "u", words="jobs of these users"),
    Option("uid", words="jobs of these users"),
    ignored("duplicates", "a job that ran again has one line, of its last run", FLAG, "D"),
    ignored("allclusters", "there is one cluster", FLAG, "L"),
    ignored("local", "there is one cluster", FLAG),
    ignored("noconvert", "units are fixed", FLAG),
    ignored("use-local-uid", "users are told by their names", FLAG),
    ignored("verbose", "there is nothing more to tell", FLAG, "v"),
    ignored("whole-hetjob", "a job has one line, whatever its roles", MAYBE),
    refused("associations", "filter by -A", letter="x"),
    refused("constraints", "filter by -o submitline"),
    ignored("truncate", "times are those of the job", FLAG, "T"),
    ignored("units", "units are fixed"),
    refused("batch-script", "bjobs -l shows it", FLAG, "B"),
    refused("clusters", "a command speaks to the one cluster of its agent", letter="M"),
    refused("completion", "lava keeps one record of a job", FLAG, "c"),
    refused("env-vars", "they are not shown", FLAG),
    refused("federation", "there is one cluster", FLAG),
    refused("file", "lava keeps its records in its database", letter="f"),
    refused("flags", "lava keeps no such marks", letter="F"),
    refused("gid", "lava keeps no groups of jobs"),
    refused("group", "lava keeps no groups of jobs", letter="g"),
    refused("ncpus", "filter by -o ncpus", letter="I"),
    refused("nnodes", "filter by -o nnodes", letter="i"),
    refused("qos", "lava has no quality of service", letter="q"),
    refused("reason", "filter by -o reason", letter="R"),
    refused("timelimit-max", "filter by -o timelimit"),
    refused("timelimit-min", "filter by -o timelimit", letter="k"),
    refused("wckeys", "lava has no such keys", letter="W"),
    refused("yaml", "use --json", MAYBE),
)
PARSER = Parser("sacct", OPTIONS)
DEFAULT = "jobid,jobname,partition,account,alloccpus,state,exitcode"
BRIEF = "jobid,state,exitcode"
LONG = (
    "jobid,jobidraw,jobname,partition,maxvmsize,maxrss,averss,ntasks,alloccpus,elapsed,state,exitcode,reqmem,alloctres"
)
RUNNING = (messages.STAGING, messages.RUN, messages.UNKWN, messages.USUSP, messages.SSUSP)
BATCH = "batch"
NO_ARRAY = Array(0, 0)
AT_ONCE = 1000  # jobs named in one request
CLOCK = "a time such as 2026-11-21, 16:00, now-2days"


def main(argv: list[str], io: "Io") -> int:
    """Run sacct."""
    given = PARSER.parse(argv)
    if answered(given, PARSER, USAGE, io):
        return 0
    if "helpformat" in given:
        io.print("\n".join(sorted(accounting_fields.TITLES.values())))
        return 0
    given = with_variables(PARSER, given, io, {"format": ("brief", "long")})
    PARSER.say_ignored(given, io)
    show(Query(given, io), given, io)
    return 0


def show(query: "Query", given: Given, io: "Io") -> None:
    """Print the jobs."""
    if "json" in given:
        return io.print(jobs_text(query.views()))
    columns, between, end = layout_of(given, io)
    formats.check(columns, io)
    if "noheader" not in given:
        io.print(formats.head(columns, between) + end)
        if not between.strip():
            io.print(between.join("-" * column.width for column in columns))
    readers = [
        {name: accounting_fields.reader(name, of_step=of_step) for name in formats.names_of(columns)}
        for of_step in (False, True)
    ]
    for view in query.views():
        with_step = view.job.start_time and "allocations" not in given
        for read in readers[int(query.is_of_steps) : 2 if with_step else 1]:
            io.print(between.join(fitted(column, read[column.name](view)) for column in columns) + end)
    return None


def fitted(column: formats.Column, value: str) -> str:
    """Value in its column; one that is cut ends in +."""
    if column.width and len(value) > column.width:
        value = value[: column.width - 1] + "+"
    return column.fit(value)


def layout_of(given: Given, io: "Io") -> tuple[list[formats.Column], str, str]:
    """(columns, text between them, text at the end of a line)."""
    chosen = BRIEF if "brief" in given else LONG if "long" in given else ""
    text = ",".join(given.all("format")) or chosen or DEFAULT
    text = re.sub(r"(?i)\ball\b", ",".join(accounting_fields.FIELDS), text)
    try:
        columns = formats.read_names(text, accounting_fields.BY_NAME, accounting_fields.width, percent=True)
    except ValueError as error:
        raise fail("sacct", f'Invalid field requested: "{error}"') from None
    if "parsable" not in given and "parsable2" not in given:
        left = ("jobid", "jobidraw")
        return [column._replace(right=column.right and column.name not in left) for column in columns], " ", " "
    delimiter = given.last("delimiter") or "|"
    return [column._replace(width=0) for column in columns], delimiter, delimiter if "parsable" in given else ""


class Query:
    """Jobs that the options select."""

    def __init__(self, given: Given, io: "Io") -> None:
        self.io = io
        self.is_expanded = "array" in given
        words = [word.partition(".") for text in (*given.all("jobs"), *given.words) for word in split_ids(text)]
        ids = [(read_id(word, "sacct", io), step.strip()) for word, _, step in words]
        self.refs = [ref for ref, step in ids if step in ("", BATCH)]
        self.is_of_steps = bool(words) and all(dot for _, dot, _ in words)
        self._is_of_none = bool(words) and not self.refs  # of steps of srun, which are not recorded
        self.wanted = states_of(listed(given, "state"), "sacct")
        self.users = [*listed(given, "user"), *listed(given, "uid")]
        if not self.users:
            self.users = ["all"] if self.refs or "allusers" in given else [""]
        self.queues, self.names = listed(given, "partition"), listed(given, "name")
        self.projects = listed(given, "accounts")
        self.hosts = hosts_of(given, "nodelist", "sacct")
        self.since = self._moment(given, "starttime", 0.0 if self.refs else values.read_moment("today", io.now()))
        self.until = self._moment(given, "endtime", math.inf)  # the master's clock may be ahead of this host's

    def _moment(self, given: Given, name: str, default: float) -> float:
        text = given.last(name)
        if text is None:
            return default
        try:
            return values.read_moment(text, self.io.now(), is_past=True)
        except (ValueError, OverflowError):
            raise fail("sacct", f"--{name} {text}: expected {CLOCK}.") from None

    def views(self) -> "Iterator[JobView]":
        """The jobs, in order of their ids."""
        now = self.io.now()
        known: dict[int, Array] = {}
        waiting = Waiting()
        for page in self._pages():
            known |= {job.job: Array(job.spec.slurm.array_base, job.spec.array_limit) for job in page if job.index}
            for job in page:
                array = known.get(job.job, NO_ARRAY)
                view = JobView(job, array.base, now)
                if not self._is_wanted(view):
                    continue
                is_joined = bool(job.index) and view.is_waiting and not self.is_expanded
                if not (is_joined and waiting.takes(job)):
                    yield from waiting.drained()
                if is_joined:
                    waiting.add(view, array.limit)
                else:
                    yield view
        yield from waiting.drained()

    def _pages(self) -> "Iterator[list[messages.JobRecord]]":
        if self._is_of_none or (self.wanted is not None and not self.wanted):
            return  # only states that no job here has
        states = sorted({number for state in self.wanted or () for number in may_have(state)})
        for user in dict.fromkeys(self.users):
            for queue in dict.fromkeys(self.queues or [""]):
                wanted = messages.JobFilter(refs=self.refs, user=user, queue=queue, finished_too=True)
                wanted.states.extend(states)  # type: ignore[arg-type]
                yield from self._told(wanted)

    def _told(self, wanted: messages.JobFilter) -> "Iterator[list[messages.JobRecord]]":
        """Pages of memory for named jobs, which may be newer than the store; else of the history."""
        completion = Completion()
        if self.refs:
            request = messages.ListJobsRequest(
                filter=wanted, details=True, shares_details=True, reasons=True, basic_too=True
            )
            for page in self.io.client().list_jobs(request):
                yield completion.complete(list(page.jobs))
            return
        history = messages.HistoryRequest(filter=wanted, details=True, shares_details=True)
        until = 0.0 if math.isinf(self.until) else max(self.until, 1.0)
        history.between.CopyFrom(messages.TimeRange(first=max(self.since, 0.0), last=until))
        for found in self.io.client().history(history):
            yield self._present(completion.complete([job.record for job in found.jobs]))

    def _present(self, jobs: "list[messages.JobRecord]") -> "list[messages.JobRecord]":
        """Records, of jobs that run those of memory: the history tells their hosts and times when they have ended."""
        running = [job for job in jobs if job.state in RUNNING]
        known: dict[tuple[int, int], messages.JobRecord] = {}
        for start in range(0, len(running), AT_ONCE):
            refs = [_ref(job) for job in running[start : start + AT_ONCE]]
            wanted = messages.JobFilter(refs=refs, user="all", finished_too=True)
            request = messages.ListJobsRequest(filter=wanted, details=True, shares_details=True, basic_too=True)
            completion = Completion()
            for page in self.io.client().list_jobs(request):
                known |= {(job.job, job.index): job for job in completion.complete(list(page.jobs))}
        return [known.get((job.job, job.index), job) for job in jobs]

    def _is_wanted(self, view: JobView) -> bool:
        job = view.job
        if self.wanted is not None and view.state not in self.wanted:
            return False
        if job.submit_time > self.until or (job.state in ENDED and job.end_time and job.end_time < self.since):
            return False
        if self.names and view.name not in self.names:
            return False
        if self.projects and (job.project or "default") not in self.projects:
            return False
        return not self.hosts or any(share.host in self.hosts for share in job.hosts)


def _ref(job: messages.JobRecord) -> messages.JobRef:
    ref = messages.JobRef(job=job.job)
    if job.index:
        ref.indices.add(first=job.index, last=job.index)
    return ref
