"""bjobs: list jobs.

Exit code: 0, also when no job, or none with the ids given, was found, as portals expect of a job that is forgotten; 255
when no job has a name given without wildcards. LSB_BJOBS_CONSISTENT_EXIT_CODE=Y makes it 255 whenever no job, or not
every id, was found. 99 for an unknown -o field.
"""

from lavactl.errors import FAILURE
from lavactl.jobrefs import read_ref, read_refs, ref_text
from lavactl.options import FLAG, VALUE, Grammar, Options, answered
from lavactl.text.render import clean, long_time
from lavactl.text.unknown import nothing_so_named, unknown_name, where
from lavactl.views import job_conditions, job_table, run_time
from lavactl.views.job_details import Completion
from lavactl.wire import messages
from lavactl.wire.listed import jobs_of, number_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lavactl.io import Io
    from lavactl.views.hosts import CpuFactors

    Printer = Callable[[messages.JobPage], None]

USAGE = """\
Usage: bjobs [-a | -d | -p | -p0 | -p1 | -p2 | -p3 | -pe | -pi | -pei | -r | -s] [-x] [-noheader] [-gpu] [-hostfile]
             [-l | -w | -W | -WL | -WF | -WP | -UF | -A | -sum | -psum | -aps [-l | -w] | -o "field ..." [-json] [-hms]]
             [-u user | -u all] [-q queue] [-m "host ... | host_group ... | cluster"] [-J name] [-Jd description]
             [-P project] [-G user_group] [-U reservation] [-rusage resource,...] [-N host | model | factor]
             [-g /job/group] [-app profile] [-sla class] [-Lp project] [-h] [-V] [job_id | "job_id[index]" ...]
       bjobs -script | -env job_id
  -p0 -p1 -p2 -p3   pending reasons: all; the main one; by candidate hosts; by all hosts
  -WL -WF -WP       as -w, with the time left, the finish time, the completed part
  -pe -pi -pei      pending jobs that may be considered; those that may not; the ones and then the others
  -x                jobs that hang, or of which there is a warning
  -N                CPU times as that host, host model or CPU factor would have taken them
  -rusage           jobs that reserve all these resources
  -aps              pending jobs by their absolute priority (APS_PRIORITY); with -l what each factor adds to it
  -prio             as -aps -l
  -hms              with -o: durations as hours:minutes:seconds
  -script           the script of a job, or its command
  -env              the environment that a job was submitted with
  -aff              with -l or -UF: also the processors that each task is bound to
  -gpu              with -l or -UF: also the devices of each job, and their use
  -hostfile         with -l or -UF: also the hosts and slots of the host file of each job (bsub -hostfile)
"""
GRAMMAR = Grammar(
    "bjobs",
    USAGE,
    {
        **dict.fromkeys(
            ("a", "A", "d", "p", "p0", "p1", "p2", "p3", "r", "s", "w", "l", "W", "WL", "WF", "WP", "UF", "json", "sum",
             "psum", "noheader", "X", "gpu", "x", "pe", "pi", "pei", "hms", "script", "env", "aps", "prio", "aff",
             "hostfile"),
            FLAG,
        ),
        **dict.fromkeys(("J", "m", "P", "q", "u", "o", "g", "app", "sla", "Lp", "G", "Jd", "U", "N", "rusage"), VALUE),
        **dict.fromkeys(("nonode", "Wd", "US"), "the manual of LSF's bjobs describes no such option."),
        "pri": "bjobs -o job_priority and bjobs -aps show the priorities of jobs.",
        "plan": "starts are not planned ahead; bjobs -l estimates that of a pending job.",
        "ss": "there is no session scheduler; an array or a job of tasks takes its place.",
        "data": "there is no data manager: lava expects a shared file system.",
        "rsvid": "bjobs -U shows the jobs of a reservation.",
        **dict.fromkeys(("fwd", "cname"), "lava neither forwards jobs to other clusters nor receives any."),
    },
)  # fmt: skip

SELECTIONS = {
    "p": (messages.PEND, messages.PSUSP),
    "r": (messages.RUN, messages.STAGING, messages.UNKWN),
    "s": (messages.USUSP, messages.SSUSP, messages.PSUSP),
    "d": (messages.DONE, messages.EXIT),
}
NOTHING = {
    "p": "No pending job found",
    "r": "No running job found",
    "s": "No suspended job found",
    "d": "No DONE/EXIT job found",
}
FORMS = ("l", "UF", "o", "A", "sum", "psum", "W", "WL", "WF", "WP", "script", "env")
PARTS = {"EPEND": "PENDING JOBS ELIGIBLE FOR SCHEDULING", "IPEND": "PENDING JOBS INELIGIBLE FOR SCHEDULING"}  # of -pei
PENDING = ("p", "p0", "p1", "p2", "p3")
ELIGIBLE = (*job_conditions.ELIGIBLE, "pei")
OF_PENDING = (*PENDING, *ELIGIBLE, "psum", "aps")  # options that select pending jobs
NEVER_SET = ("Lp",)  # what no job has: a name given here matches none


class Listing:
    """Query of one bjobs command, with the counts of jobs found and the ids not found."""

    def __init__(self, options: Options, io: "Io") -> None:
        self.options = options
        self.io = io
        self.is_json = "json" in options
        self.refs = read_refs(options.words)
        self.conditions = job_conditions.conditions(options, io.now())
        self.factors = _factors(options, io)
        self.found = 0
        self.missing: list[messages.JobRef] = []

    def lines(self, form: "job_table.Form") -> "Iterator[str]":
        """Rows of jobs in a form that needs no details, page by page; counts as `pages` does."""
        if self.conditions or self.factors is not None or any(name in self.options for name in ELIGIBLE):
            yield from map(form.rows, self.pages())
            return
        figures = {"hosts_alone": not form.has_figures, "end_columns": form.has_figures}
        for page in self._asked(columns=True, time_unit_s=form.unit_s, **figures):
            self.found += len(page.jobs) + number_of(page.columns)
            if page.jobs:  # of a master that knows no columns, or of jobs that it reads from its store
                yield form.rows(page.jobs)
            if page.columns.job:
                yield form.rows_of(page.columns)

    def pages(
        self, *, details: bool = False, reasons: bool = False, arrays: bool = False, basic_too: bool = False
    ) -> "Iterator[list[Job]]":
        """Job records, page by page; counts them and collects the ids that were not found.

        Args:
            basic_too: also jobs of which the caller may see no details, without these.
        """
        details = details or bool(self.conditions)
        reasons = reasons or any(name in self.options for name in ELIGIBLE)
        completion = Completion() if details else None
        wanted = {"details": details, "reasons": reasons, "arrays": arrays, "basic_too": basic_too}
        is_plain = not (details or reasons or arrays or "aps" in self.options)
        for page in self._asked(shares_details=details, columns=is_plain, **wanted):
            jobs = jobs_of(page) if completion is None else completion.complete(list(page.jobs))
            jobs = [job for job in jobs if all(holds(job) for holds in self.conditions)]
            self.found += len(jobs)
            if self.factors is not None:
                self.factors.normalize(jobs)
            if jobs:
                yield jobs

    def _asked(self, *, time_unit_s: int = 0, **wanted: bool) -> "Iterator[messages.JobPage]":
        """Pages of answers of the master, a request for each user; collects the ids that were not found."""
        if any(name in self.options for name in NEVER_SET):
            return
        client = self.io.client()
        for user in asked_users(self.options.last("u") or ""):
            request = messages.ListJobsRequest(
                filter=self.filter(user), absolute="aps" in self.options, time_unit_s=time_unit_s, **wanted
            )
            for page in client.list_jobs(request):
                self.missing.extend(page.missing)
                yield page

    @property
    def level(self) -> int:
        """Pending reasons to be shown: 0 all, 1 the main one, 2 those of candidate hosts, 3 those of all hosts."""
        given = [int(name[1:]) for name in PENDING[1:] if name in self.options]
        if given:
            return given[-1]
        setting = self.io.setting("LSB_BJOBS_PENDREASON_LEVEL") or "0"
        return int(setting) if setting in ("1", "2", "3") else 0

    def filter(self, user: str) -> messages.JobFilter:
        """Job filter: jobs named by id in any state and of any owner, unless options restrict them."""
        options = self.options
        named = any(ref.job for ref in self.refs)
        chosen = {state for letter, states in SELECTIONS.items() if self.selects(letter) for state in states}
        return messages.JobFilter(
            refs=[ref for ref in self.refs if ref.job],
            user=user or ("all" if named else ""),
            queue=options.last("q") or "",
            host=options.last("m") or "",
            name=options.last("J") or "",
            project=options.last("P") or "",
            job_group=options.last("g") or "",
            application=options.last("app") or "",
            service_class=options.last("sla") or "",
            states=sorted(chosen),
            finished_too="a" in options or (named and not chosen),
        )

    def is_by_id_alone(self) -> bool:
        """True if ids were given without options that narrow them."""
        chosen = ("u", "q", "m", "J", "P", "g", "app", "sla", "r", "s", "d", "psum", "aps")
        narrowing = (*chosen, *PENDING, *NEVER_SET, *job_conditions.OPTIONS)
        return any(ref.job for ref in self.refs) and not any(name in self.options for name in narrowing)

    def selects(self, letter: str) -> bool:
        """True if this one of -p -r -s -d was given."""
        if letter == "p":
            return any(name in self.options for name in OF_PENDING)
        return letter in self.options


def _factors(options: Options, io: "Io") -> "CpuFactors | None":
    """Factors of -N; None without it."""
    to = options.last("N")
    if to is None:
        return None
    from lavactl.views.hosts import CpuFactors

    return CpuFactors(to, io)


def asked_users(text: str) -> list[str]:
    """Users of -u, one for each request; excluded users (``^root ^ann``) make one request together."""
    words = text.split()
    return [text] if any(word.startswith("^") for word in words) else words or [""]


if TYPE_CHECKING:
    Job = messages.JobRecord


def main(argv: list[str], io: "Io") -> int:
    """Run bjobs."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if "prio" in options:
        options.items += [("aps", ""), ("l", "")]
    check(options)
    if "env" in options:
        return show_environment(options.words[0], io)
    listing = Listing(options, io)
    show(listing)
    return conclude(listing)


def check(options: Options) -> None:
    """Refuse mutually exclusive forms."""
    forms = [name for name in FORMS if name in options and not (name == "l" and "p" in options)]
    if len(forms) > 1 and set(forms) != {"l", "UF"}:
        raise GRAMMAR.wrong(f"-{forms[0]} and -{forms[1]} cannot be used together")
    if "gpu" in options and not ("l" in options or "UF" in options):
        raise GRAMMAR.wrong("-gpu needs -l or -UF")
    for name in ("aff", "hostfile"):
        if name in options and not ("l" in options or "UF" in options):
            raise GRAMMAR.wrong(f"-{name} needs -l or -UF")
    for name in job_conditions.OPTIONS:
        if "A" in options and name in options:
            raise GRAMMAR.wrong(f"-A and -{name} cannot be used together")
    if "hms" in options and "o" not in options:
        raise GRAMMAR.wrong("-hms needs -o")
    for name in ("script", "env"):
        if name in options and (len(options.words) != 1 or len(options.items) > 1):
            raise GRAMMAR.wrong(f"-{name} takes one job id and no other option")
    if "pei" in options and (other := [name for name in (*FORMS[1:], "pe", "pi") if name in options]):
        raise GRAMMAR.wrong(f"-pei and -{other[0]} cannot be used together")
    if "noheader" in options and any(name in options for name in ("l", "UF", "json")):
        raise GRAMMAR.wrong("-noheader cannot be used with -l, -UF or -json")


def show(listing: Listing) -> None:
    """Print the jobs in the form selected by the options."""
    options, io = listing.options, listing.io
    form = options.last("o")
    if form is None and not any(name in options for name in (*FORMS, *PENDING, *ELIGIBLE, "w")):
        form = io.setting("LSB_BJOBS_FORMAT") or None
    if form is not None:
        return show_fields(listing, form)
    listing.is_json = False  # without a format -json has no effect, as in LSF
    if "script" in options:
        return show_script(listing)
    if "psum" in options:
        return show_reasons(listing)
    if "aps" in options:
        return show_absolute(listing)
    if "pei" in options:
        return show_pending_apart(listing)
    if listing.selects("p") and not any(name in options for name in FORMS[1:]):
        return show_pending(listing)
    if "l" in options or "UF" in options:
        return show_long(listing)
    if "A" in options:
        return show_arrays(listing)
    if "sum" in options:
        return show_summary(listing)
    return show_table(listing)


def short_hosts(io: "Io") -> bool:
    """True if hosts are shown as ``4*n001``."""
    return (io.setting("LSB_SHORT_HOSTLIST") or "0") not in ("0", "n", "N")


def write_rows(listing: Listing, header: str, texts: "Iterator[str]") -> None:
    """Print rows under their header, which appears only if there is a row."""
    waiting = "" if "noheader" in listing.options else header + "\n"
    for text in texts:
        listing.io.print(waiting + text, end="")
        waiting = ""


def show_table(listing: Listing) -> None:
    """Default, -w and -W; -WL, -WF and -WP."""
    short = short_hosts(listing.io)
    if timed := next((name for name in run_time.COLUMNS if name in listing.options), ""):
        title, text_of = run_time.COLUMNS[timed]
        now = listing.io.now()
        form = job_table.wide(short, lambda job: text_of(job, now))
        pages = listing.pages(details=True, basic_too=True)
        return write_rows(listing, f"{job_table.HEADER}  {title}", map(form.rows, pages))
    if "W" in listing.options:
        return write_rows(listing, job_table.EXTENDED_HEADER, listing.lines(job_table.extended(short)))
    form = job_table.wide(short) if "w" in listing.options else job_table.table(short)
    return write_rows(listing, job_table.HEADER, listing.lines(form))


def show_absolute(listing: Listing) -> None:
    """-aps: all pending jobs in the order of their absolute priorities; with -l in the long form, with the factors."""
    from lavactl.views.priorities import absolute

    is_long = "l" in listing.options
    jobs = [job for page in listing.pages(details=is_long, reasons=is_long, basic_too=True) for job in page]
    jobs = absolute.in_order(jobs)
    if is_long:
        return show_long(listing, iter([jobs]), absolute.factors_text)
    rows = absolute.table(jobs, short_hosts(listing.io), "w" in listing.options)
    write_rows(listing, absolute.HEADER, iter([rows] if jobs else []))


def show_arrays(listing: Listing) -> None:
    """-A; the master returns arrays only."""
    uncut = "w" in listing.options

    def rows() -> "Iterator[str]":
        for page in listing.pages(arrays=True):
            yield job_table.arrays(page, uncut)

    write_rows(listing, job_table.ARRAY_HEADER, rows())


def show_pending(listing: Listing) -> None:
    """-p: pending jobs and their reasons; with -l the hosts by name."""
    uncut = "w" in listing.options
    named = "l" in listing.options
    level = listing.level
    servers = listing.io.client().info().servers if level > 1 else 0

    def rows() -> "Iterator[str]":
        for page in listing.pages(reasons=True):
            if named:
                name_hosts(page, listing.io)
            yield job_table.pending(page, uncut=uncut, level=level, servers=servers, named=named)

    write_rows(listing, job_table.PENDING_HEADER, rows())


def show_pending_apart(listing: Listing) -> None:
    """-pei: pending jobs that may be considered for a start, and then those that may not, each under a title."""
    conditions, missing = listing.conditions, list[messages.JobRef]()
    for name, title in PARTS.items():
        before = listing.found
        listing.missing = []
        listing.conditions = [*conditions, job_conditions.has_pendstate((name,), listing.io.now())]
        listing.io.print(f"{title}:")
        show_pending(listing)
        if listing.found == before:
            listing.io.print("None")
        missing = listing.missing
    listing.missing = missing


def show_reasons(listing: Listing) -> None:
    """-psum: number of pending jobs for each pending reason, the most frequent reason first."""
    counts: dict[str, int] = {}
    for page in listing.pages(reasons=True):
        for job in page:
            for text in dict.fromkeys(reason.text for reason in job.pending_reasons):
                counts[text] = counts.get(text, 0) + 1
    if listing.found:
        io = listing.io
        io.print(f"Pending reason summary: published {long_time(io.now())}")
        jobs, cluster = job_table.counted(listing.found, "pending job"), io.client().info().cluster
        io.print(f"Summarizing {jobs} in cluster ({cluster}):")
        io.print(job_table.reason_counts(counts), end="")


def name_hosts(page: "list[Job]", io: "Io") -> None:
    """Replace the reasons of pending jobs by those with host names."""
    refs = []
    for job in page:
        ref = messages.JobRef(job=job.job)
        if job.index:
            ref.indices.add(first=job.index, last=job.index)
        refs.append(ref)
    reply = io.client().explain(messages.ExplainRequest(refs=refs, host_names=True))
    known = {(one.job, one.index): one.reasons for one in reply.explanations}
    for job in page:
        reasons = known.get((job.job, job.index))
        if reasons is not None:
            del job.pending_reasons[:]
            job.pending_reasons.extend(reasons)


def show_summary(listing: Listing) -> None:
    """-sum: one row for all jobs."""
    jobs = [job for page in listing.pages() for job in page]
    write_rows(listing, job_table.SUMMARY_HEADER, iter([job_table.summary(jobs)] if jobs else []))


def show_long(
    listing: Listing,
    pages: "Iterator[list[Job]] | None" = None,
    more: "Callable[[Job], str]" = lambda job: "",
) -> None:
    """-l and -UF; ``more``: the text behind that of each job."""
    from lavactl.views.gpus.allocation import DevicesOfHosts, allocation_text
    from lavactl.views.gpus.usage import usage_text
    from lavactl.views.job_long import SEPARATOR, affinity_text, host_file_text, long_text

    io = listing.io
    now = io.now()
    homes: dict[str, str] = {}
    first = True
    devices = DevicesOfHosts(io) if "gpu" in listing.options else None
    for page in pages or listing.pages(details=True, reasons=True):
        known = devices.of(page) if devices is not None else {}
        for job in page:
            if job.user not in homes:
                homes[job.user] = io.home_of(job.user) or ""
            text = long_text(job, "UF" in listing.options, now, homes[job.user])
            text += allocation_text(job, known) + usage_text(job.gpus) if devices is not None else ""
            text += affinity_text(job) if "aff" in listing.options else ""
            text += host_file_text(job) if "hostfile" in listing.options else ""
            text += more(job)
            io.print(text if first else f"{SEPARATOR}\n{text}", end="")
            first = False


def show_script(listing: Listing) -> None:
    """-script: the script of a job, of an array once, or the command of a job without one."""
    job = next((page[0] for page in listing.pages(details=True)), None)
    if job is not None:
        script = job.spec.command_bytes or job.spec.command.encode()
        listing.io.show(script if script.endswith(b"\n") else script + b"\n")


def show_environment(word: str, io: "Io") -> int:
    """-env: variables that a job was submitted with; the exit code."""
    request = messages.EnvironmentRequest(ref=read_ref(word))
    reply = io.client().environment(request)
    if reply.error:
        io.error(f"Job <{ref_text(request.ref)}>: {clean(reply.error)}")
        return FAILURE
    io.show(b"".join(entry + b"\n" for entry in reply.environment))
    return 0


def show_fields(listing: Listing, text: str) -> None:
    """-o, as lines or as JSON."""
    from lavactl.text.formats import read_format
    from lavactl.views import job_fields

    form = read_format(text, job_fields.WIDTHS, job_fields.ALIASES)
    form.check(listing.io)
    table = job_fields.FieldTable(form, short_hosts(listing.io), listing.io.now(), hms="hms" in listing.options)
    details, reasons = job_fields.needs_details(form), job_fields.needs_reasons(form)
    pages = listing.pages(details=details, reasons=reasons, basic_too=True)
    if not listing.is_json:
        return write_rows(listing, form.header(), (lines for page in pages for lines in table.pieces(page)))
    from lavactl.text.render import json_text

    records = [table.record(job) for page in pages for job in page]
    records += [{"JOBID": ref_text(ref), "ERROR": not_found(ref)} for ref in listing.missing]
    return listing.io.print(json_text("bjobs", "JOBS", records))


def conclude(listing: Listing) -> int:
    """Report ids and names not found; the exit code."""
    io, options = listing.io, listing.options
    if not listing.found and not listing.missing and listing.is_by_id_alone():
        listing.missing = [ref for ref in listing.refs if ref.job]  # an element, or array, that does not exist
    if not listing.is_json:
        io.flush()
        for ref in listing.missing:
            io.error(not_found(ref, array="A" in options))
    if not listing.found and not listing.missing:
        if unknown := unknown_name(options, io):
            io.error(unknown)
            return FAILURE
        io.error(nothing_found(listing))
        name = options.last("J")
        if name and "*" not in name:  # a pattern without a match is no failure
            return FAILURE
    if (io.setting("LSB_BJOBS_CONSISTENT_EXIT_CODE") or "N").upper() == "Y":
        return FAILURE if listing.missing or not listing.found else 0
    return 0


def not_found(ref: messages.JobRef, *, array: bool = False) -> str:
    """Line for an unknown job id."""
    return f"Job {'array ' if array else ''}<{ref_text(ref)}> is not found"


def nothing_found(listing: Listing) -> str:
    """Line for a query without a match."""
    options = listing.options
    if said := nothing_so_named(options):
        return said
    text = next((NOTHING[letter] for letter in SELECTIONS if listing.selects(letter)), "")
    return (text or ("No job found" if "a" in options else "No unfinished job found")) + where(options)
