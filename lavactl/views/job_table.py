"""The tables of bjobs: default, -w, -W, -A, -p, -sum. Headers and widths are interface: parsers locate columns by them.

A line is built by one f-string, for the speed of lists of 10,000 jobs: 0.3 us each where they come by columns.
"""

from lavactl.text.render import MISSING, clean, compact_time, keep_tail, short_time
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

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
        self._moment, self._unit_s, self._ended = moment, unit_s, ended
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
        """Rows of jobs by columns."""
        around = [self._around(kind) for kind in page.kinds]
        names = [clean(name) for name in page.names]
        jobs, kinds, numbers, times = page.job[:], page.kind[:], page.name[:], page.submit_time[:]
        if page.ended:
            return self._with_ends(page, around, names)
        if page.index:
            return self._elements(around, names, (jobs, kinds, numbers, times), page.index[:])
        cells = [self._name(name) for name in names]
        # Numbers of one length are filled up with their rest, all at once: half the time.
        digits, is_even = len(str(max(jobs))), len(str(min(jobs))) == len(str(max(jobs)))
        filled = " " * (7 - digits) if is_even else ""
        alike = list(zip(kinds, numbers, self._units(times), strict=True))
        rests = {
            (kind, name, units): f"{filled} {around[kind][0]} {cells[name]} "
            f"{self._moment(units * self._unit_s)}{around[kind][1]}\n"
            for kind, name, units in set(alike)
        }
        ids = jobs if is_even else [f"{job:<7}" for job in jobs]
        return "".join([f"{job}{rests[key]}" for job, key in zip(ids, alike, strict=True)])

    def _units(self, times: list[float]) -> list[float]:
        """Times in units that are written alike; those of a page are often in one."""
        unit_s = self._unit_s
        first = min(times) // unit_s
        return [first] * len(times) if first == max(times) // unit_s else [time // unit_s for time in times]

    def _elements(
        self, around: list[tuple[str, str]], names: list[str], columns: "tuple[list[Any], ...]", indices: list[int]
    ) -> str:
        """Rows of a page with elements of arrays; if they are all of one array and alike, only their names differ."""
        name_of, moment = self._name, self._moment
        job, kind, name, time = (column[0] for column in columns)
        if all(column.count(column[0]) == len(column) for column in columns) and 0 not in indices:
            before, after = f"{job:<7} {around[kind][0]} ", f" {moment(time)}{around[kind][1]}\n"
            return before + (after + before).join([name_of(f"{names[name]}[{index}]") for index in indices]) + after
        moments = {time: moment(time) for time in set(columns[3])}  # elements of an array have one
        return "".join(
            [
                f"{job:<7} {around[kind][0]} {name_of(f'{names[name]}[{index}]' if index else names[name])} "
                f"{moments[time]}{around[kind][1]}\n"
                for job, kind, name, time, index in zip(*columns, indices, strict=True)
            ]
        )

    def _with_ends(self, page: "messages.JobColumns", around: list[tuple[str, str]], names: list[str]) -> str:
        """Rows of a page with figures of ended jobs."""
        assert self._ended is not None, "figures of ended jobs were not asked for"
        ended = {number: self._ended(page.kinds[number]) for number in page.ended}
        figures = zip(page.start_time[:], page.end_time[:], page.cpu_s[:], strict=True)
        cells, moment, indices = [self._name(name) for name in names], self._moment, page.index[:]
        named = (
            [
                self._name(f"{names[name]}[{index}]") if index else cells[name]
                for name, index in zip(page.name[:], indices, strict=True)
            ]
            if indices
            else [cells[name] for name in page.name[:]]
        )
        return "".join(
            [
                f"{job:<7} {around[kind][0]} {name} {moment(time)}"
                f"{ended[kind](*next(figures)) if kind in ended else around[kind][1]}\n"
                for job, kind, name, time in zip(page.job[:], page.kind[:], named, page.submit_time[:], strict=True)
            ]
        )

    def _around(self, job: messages.JobRecord) -> tuple[str, str]:
        hosts = host_list(job, self._short)
        return self._before(job, hosts), self._after(job, hosts)


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
