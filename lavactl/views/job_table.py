"""The tables of bjobs: default, -w, -W, -A, -p, -sum. Headers and widths are interface: parsers locate columns by them.

A line is built by one f-string, for the speed of lists of 10,000 jobs; lines of jobs alike, which have one entry
of the columns, are built at once: 0.1 us each.
"""

from lavactl.text.render import MISSING, clean, compact_time, keep_tail, short_time
from lavactl.wire import messages
from lavactl.wire.listed import entries_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

HEADER = "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME"
EXTENDED_HEADER = (
    "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST   JOB_NAME   SUBMIT_TIME    PROJ_NAME  "
    "CPU_USED     MEM     SWAP    PIDS   START_TIME     FINISH_TIME"
)
ARRAY_HEADER = "JOBID    ARRAY_SPEC  OWNER   NJOBS PEND DONE  RUN EXIT SSUSP USUSP PSUSP"
PENDING_HEADER = "JOBID   USER    STAT  QUEUE       FROM_HOST      JOB_NAME           SUBMIT_TIME"
SUMMARY_HEADER = "RUN        SSUSP       USUSP      UNKNOWN    PEND       FWD_PEND  PSUSP"

NO_HOST = "   -    "
HOST_INDENT = " " * 45

# A job that is being staged holds its hosts: users see it as running.
STATES = {
    messages.JOB_STATE_UNSPECIFIED: "-",
    messages.PEND: "PEND",
    messages.PSUSP: "PSUSP",
    messages.STAGING: "RUN",
    messages.RUN: "RUN",
    messages.USUSP: "USUSP",
    messages.SSUSP: "SSUSP",
    messages.DONE: "DONE",
    messages.EXIT: "EXIT",
    messages.UNKWN: "UNKWN",
    messages.ZOMBI: "ZOMBI",
}
SUMMARY_STATES = (
    (messages.RUN, messages.STAGING), (messages.SSUSP,), (messages.USUSP,),
    (messages.UNKWN, messages.ZOMBI), (messages.PEND,), (), (messages.PSUSP,),
)  # fmt: skip


def host_list(job: messages.JobRecord, short: bool) -> list[str]:
    """Execution hosts: a name for each slot, or ``4*n001`` with LSB_SHORT_HOSTLIST."""
    if short:
        return [f"{share.slots}*{share.host}" if share.slots > 1 else share.host for share in job.hosts]
    return [share.host for share in job.hosts for _ in range(share.slots or 1)]


class Form:
    """A table with one line for a job: cells before its name and after its time, and these two themselves.

    ``name`` has to fit a printable name into its cell, ``moment`` writes the same for ``unit_s`` seconds.
    Those before and after are the same for many jobs of a list by columns, and are written once for these.
    ``ended`` returns for jobs of a kind the text after the time, by the start, the end and the CPU time of each;
    without it a form shows nothing of runs but their hosts.
    """

    def __init__(
        self,
        before: "Callable[[messages.JobRecord, list[str]], str]",
        name: "Callable[[str], str]",
        moment: "Callable[[float], str]",
        unit_s: int,
        after: "Callable[[messages.JobRecord, list[str]], str]",
        short: bool,
        ended: "Callable[[messages.JobRecord], Callable[[float, float, float], str]] | None" = None,
    ) -> None:
        self._before, self._name, self._after, self._short = before, name, after, short
        self._moment, self.unit_s, self._ended = moment, unit_s, ended
        self.has_figures = ended is not None

    def rows(self, jobs: "Iterable[messages.JobRecord]") -> str:
        """Rows of records."""
        lines = []
        for job in jobs:
            before, after = self._around(job)
            lines.append(
                f"{job.job:<7} {before} {self._name(clean(job.name))} {self._moment(job.submit_time)}{after}\n"
            )
        return "".join(lines)

    def rows_of(self, page: "messages.JobColumns") -> str:
        """Rows of jobs by columns. Those of one entry differ in their numbers or indices only."""
        around, names = [self._around(kind) for kind in page.kinds], [clean(name) for name in page.names]
        cells, ended, rows = [self._name(name) for name in names], self._endings(page), list[str]()
        unit, moment = -1.0, ""
        for job, index, count, kind, name, time in entries_of(page):
            if time // self.unit_s != unit:
                unit, moment = time // self.unit_s, self._moment(time)
            before, after = around[kind]
            if kind in ended:
                after = ended[kind]()
            if index:
                start, rest = f"{job:<7} {before} ", f" {moment}{after}\n"
                named = [self._name(f"{names[name]}[{one}]") for one in range(index, index + count)]
                rows += (start, (rest + start).join(named), rest)
            elif count == 1:
                rows.append(f"{job:<7} {before} {cells[name]} {moment}{after}\n")
            else:
                rows.append(_numbered(job, count, f" {before} {cells[name]} {moment}{after}\n"))
        return "".join(rows)

    def _endings(self, page: "messages.JobColumns") -> "dict[int, Callable[[], str]]":
        """Text after the time of the next ended job, by the number of its kind."""
        if not page.ended:
            return {}
        assert self._ended is not None, "figures of ended jobs were not asked for"
        figures = zip(page.start_time[:], page.end_time[:], page.cpu_s[:], strict=True)

        def next_of(text: "Callable[[float, float, float], str]") -> "Callable[[], str]":
            return lambda: text(*next(figures))

        return {number: next_of(self._ended(page.kinds[number])) for number in page.ended}

    def _around(self, job: messages.JobRecord) -> tuple[str, str]:
        hosts = host_list(job, self._short)
        return self._before(job, hosts), self._after(job, hosts)


def _numbered(first: int, count: int, rest: str) -> str:
    """Rows of jobs whose numbers follow each other; numbers of one length are filled up with their rest."""
    jobs = range(first, first + count)
    digits = len(str(first))
    if digits != len(str(jobs[-1])):
        return "".join([f"{job:<7}{rest}" for job in jobs])
    rest = " " * (7 - digits) + rest
    return rest.join(map(str, jobs)) + rest


def table(short: bool) -> Form:
    """The default form; further execution hosts on lines of their own."""

    def before(job: messages.JobRecord, hosts: list[str]) -> str:
        first = hosts[0] if hosts else ""
        return f"{job.user:<7.7} {STATES[job.state]:<5} {job.queue:<10.10} {job.from_host:<11.11} {first:<11.11}"

    def name_of(name: str) -> str:
        return f"{name if len(name) <= 10 else keep_tail(name, 10):<10}"

    def after(_: messages.JobRecord, hosts: list[str]) -> str:
        return "".join(f"\n{HOST_INDENT}{one:.11}" for one in hosts[1:])

    return Form(before, name_of, short_time, 60, after, short)


def wide(short: bool, last: "Callable[[messages.JobRecord], str] | None" = None) -> Form:
    """The form of -w: one line for each job, uncut. ``last``: the text of one more column."""

    def after(job: messages.JobRecord, _: list[str]) -> str:
        return f" {last(job) or MISSING}" if last is not None else ""

    return Form(_uncut, "{:<10}".format, short_time, 60, after, short)


def extended(short: bool) -> Form:
    """The form of -W: as -w, with project, usage and times; memory in KB."""

    def project_of(job: messages.JobRecord) -> str:
        return job.project if job.project.isprintable() else clean(job.project)

    def after(job: messages.JobRecord, _: list[str]) -> str:
        usage = usage_text(job.usage) if job.HasField("usage") else NO_USAGE
        return f" {project_of(job):<10} {usage} {compact_time(job.start_time):<14} {compact_time(job.end_time)}"

    def ended(job: messages.JobRecord) -> "Callable[[float, float, float], str]":
        before, behind = f" {project_of(job):<10} ", f" {ENDED_USAGE} "
        return lambda start, end, cpu_s: (
            f"{before}{cpu_clock(cpu_s):<12}{behind}{compact_time(start):<14} {compact_time(end)}"
        )

    return Form(_uncut, "{:<10}".format, lambda moment: f"{compact_time(moment):<14}", 1, after, short, ended)


def _uncut(job: messages.JobRecord, hosts: list[str]) -> str:
    """Cells between the id and the name in -w and -W."""
    shown = ":".join(hosts) if hosts else NO_HOST
    return f"{job.user:<7} {STATES[job.state]:<5} {job.queue:<10} {job.from_host:<11} {shown:<11}"


def usage_text(usage: messages.Usage) -> str:
    """Columns CPU_USED, MEM, SWAP and PIDS."""
    pids = ",".join(map(str, usage.pids)) if usage.pids else "-"
    return f"{cpu_clock(usage.cpu_s):<12} {usage.memory_mib << 10:<7} {usage.swap_mib << 10:<7} {pids:<6}"


def cpu_clock(seconds: float) -> str:
    """``000:01:02.25``."""
    minutes, rest = divmod(round(seconds * 100), 6000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:03d}:{minutes:02d}:{rest // 100:02d}.{rest % 100:02d}"


NO_USAGE = f"{cpu_clock(0):<12} {'-':<7} {'-':<7} {'-':<6}"
ENDED_USAGE = f"{0:<7} {0:<7} {'-':<6}"  # of memory, swap and processes


def arrays(jobs: "Iterable[messages.JobRecord]", uncut: bool) -> str:
    """Rows of -A: one line for each array."""
    lines = []
    for job in jobs:
        counts = job.array
        spec = clean(counts.spec or job.name)
        owner = job.user
        if not uncut:
            spec, owner = spec[:8], owner[:7]
        lines.append(
            f"{job.job:<8} {spec:<11} {owner:<7} {counts.total:>5} {counts.pend:>4} {counts.done:>4} {counts.run:>4} "
            f"{counts.exit:>4} {counts.ssusp:>5} {counts.ususp:>5} {counts.psusp:>5}\n"
        )
    return "".join(lines)


def pending(
    jobs: "Iterable[messages.JobRecord]", *, uncut: bool, level: int = 0, servers: int = 0, named: bool = False
) -> str:
    """Rows of -p, each followed by the pending reasons.

    Args:
        level: 0 all reasons, 1 the main one, 2 those of candidate hosts in a group, 3 those of the other hosts, too.
        servers: number of hosts that run jobs, for levels 2 and 3.
        named: with host names instead of their number.
    """
    lines = []
    for job in jobs:
        name = clean(job.name)
        user, queue, host = job.user, job.queue, job.from_host
        if not uncut:
            user, queue, host, name = user[:7], queue[:11], host[:14], keep_tail(name, 18)
        lines.append(
            f"{job.job:<7} {user:<7} {STATES[job.state]:<5} {queue:<11} {host:<14} {name:<18} "
            f"{short_time(job.submit_time)}\n"
        )
        if level > 1:
            lines += grouped_reasons(job, level, servers, named)
        else:
            reasons = job.pending_reasons[:1] if level else job.pending_reasons
            lines += [f" {reason_text(reason, named)}\n" for reason in reasons]
    return "".join(lines)


def grouped_reasons(job: messages.JobRecord, level: int, servers: int, named: bool) -> list[str]:
    """Lines of -p2 and -p3: reasons of the job, of candidate hosts, and with -p3 of the other hosts."""
    own = [reason for reason in job.pending_reasons if not reason.hosts]
    lines = [f" {reason_text(reason, named)}\n" for reason in own]
    groups = (("Candidate", False), ("Non-candidate", True))
    for title, is_ruled_out in groups[: level - 1]:
        some = [one for one in job.pending_reasons if one.hosts and one.rules_out is is_ruled_out]
        if some:
            number = min(servers, sum(reason.hosts for reason in some))
            lines.append(f" {title} host pending reasons ({number} of {counted(servers, 'host')}):\n")
            lines += [f" {reason_text(reason, named)}\n" for reason in some]
    return lines


def counted(number: int, noun: str) -> str:
    """``1 host``, ``3 hosts``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def reason_counts(counts: "Mapping[str, int]") -> str:
    """Lines of -psum: pending reasons with the number of jobs that have each, the largest first."""
    ordered = sorted(counts.items(), key=lambda one: -one[1])
    return "".join([f" {clean(text)}: {counted(number, 'job')};\n" for text, number in ordered])


def reason_text(reason: messages.PendingReason, named: bool = False) -> str:
    """``Not enough job slot(s): 3 hosts;``, or with the host names."""
    text = clean(reason.text)
    if named and reason.host_names:
        return f"{text}: {', '.join(reason.host_names)};"
    if reason.hosts:
        return f"{text}: {reason.hosts} host{'s' if reason.hosts > 1 else ''};"
    return f"{text};"


def summary(jobs: "Iterable[messages.JobRecord]") -> str:
    """The row of -sum: slots by state."""
    slots: dict[int, int] = {}
    for job in jobs:
        held = sum(share.slots for share in job.hosts) or job.slots_min or 1
        slots[job.state] = slots.get(job.state, 0) + held
    run, ssusp, ususp, unknown, pend, forwarded, psusp = (
        sum(slots.get(state, 0) for state in states) for states in SUMMARY_STATES
    )
    return f"{run:<10} {ssusp:<11} {ususp:<10} {unknown:<10} {pend:<10} {forwarded:<9} {psusp}\n"
