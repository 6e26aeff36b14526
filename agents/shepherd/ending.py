"""End of an attempt: limits of the kernel that caused it, usage of other hosts, the job report.

The report has the form that tools of LSF users expect. Output goes straight to the file while the job runs, so the
report comes after it. Times are local, as `ctime` writes them.

Usage on a job's other hosts is gathered by the shepherd of the lead host. It is requested when the command has ended
and nothing of the job is left on the lead host. Invariant: the end is reported within a bounded time, even if hosts are
silent; missing hosts are named.
"""

import functools
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from agents.shepherd.clock import NEVER
from agents.shepherd.messages import Finish, JobSetup, write_all
from agents.shepherd.process.start import Streams, is_regular
from protos import endings

RULE = "-" * 60
COMMAND_LINES_MAX = 50

USAGE = """\
    CPU time :                                   %.2f sec.
    Max Memory :                                 %d MB
    Average Memory :                             %.2f MB
    Total Requested Memory :                     %s
    Delta Memory :                               %s
    Max Swap :                                   %s
    Max Processes :                              %d
    Max Threads :                                %d
    Run time :                                   %.0f sec.
    Turnaround time :                            %.0f sec.
"""


class Heading(NamedTuple):
    """Fields of a report that do not depend on the job's end; prepared once by the agent."""

    sender: str  # user@host
    cluster: str
    user: str
    submit_host: str
    submit_time: float
    hosts: tuple[str, ...]  # as printed: "4*n001", "n002"
    queue: str
    home: str
    command: str
    memory_requested_mib: int
    error_file: bool  # standard error went to a file of its own
    given_up: tuple[str, ...] = ()  # hosts that the job released before its end


class Ending(NamedTuple):
    """Fields of a report about this end."""

    label: str  # "12" or "12[3]"
    name: str  # "sweep[3]" for an element
    cwd: str
    finish: Finish
    error_path: str
    gpus: str = ""  # the part about GPUs
    success_codes: tuple[int, ...] = ()


def render(heading: tuple[Any, ...], ending: Ending) -> bytes:
    """Render the whole report, beginning with an empty line. ``heading`` has the fields of a `Heading`."""
    finish = ending.finish
    started, ended = date(finish.started or finish.time), date(finish.time)
    name = ending.name
    is_done = is_success(finish, ending.success_codes)
    status = "Done" if is_done else "Exited"
    form, asked = _form(heading)
    text = form % (
        ending.label, name, status, name, started, ending.cwd, started, ended, ended, _result(finish, is_done),
        *_usage(asked, ending), f"{ending.gpus}\n" if ending.gpus else "",
    )  # fmt: skip
    if finish.missing:
        text += f"\nNot counted in it: what was used on {', '.join(finish.missing)}, which did not answer in time.\n"
    if asked.given_up:
        text += f"\nNot counted in it: what was used on {', '.join(asked.given_up)}, given up before the job's end.\n"
    if asked.error_file and ending.error_path:
        text += f"\nPS:\n\nRead file <{ending.error_path}> for stderr output of this job.\n\n"
    return text.encode("utf-8", "surrogateescape")


def with_hosts(setup: JobSetup, hosts: tuple[str, ...], given_up: tuple[str, ...]) -> JobSetup:
    """Return the setup of a job with these hosts in its report."""
    if setup.report is None:
        return setup
    return setup._replace(report=Heading(*setup.report)._replace(hosts=hosts, given_up=given_up))


def with_error_file(setup: JobSetup, has_one: bool) -> JobSetup:
    """Return the setup of a job whose report names a file of its errors, or does not."""
    if setup.report is None:
        return setup
    return setup._replace(report=Heading(*setup.report)._replace(error_file=has_one))


def write_report(
    setup: JobSetup, finish: Finish, cwd: str, streams: Streams | None, gpus: str = "", more: str = ""
) -> None:
    """Write the report at the end of the job's output file, if it has one and wants a report; then ``more``."""
    if streams is None or not streams.output_path or not is_regular(streams.output):
        return
    if setup.report is None and not more:
        return
    job, index, _ = finish.key
    label, name = (f"{job}[{index}]", f"{setup.name}[{index}]") if index else (str(job), setup.name)
    ending = Ending(label, name, cwd, finish, streams.error_path, gpus, setup.around.success_codes)
    report = b"" if setup.report is None else render(setup.report, ending)
    try:
        write_all(streams.output, report + os.fsencode(more))
    except OSError as error:  # the user's disk is full: the end itself is recorded
        print(f"event=report_not_written job={label} error={error.strerror!r}", file=sys.stderr)


@functools.lru_cache(maxsize=4)
def _form(fields: tuple[Any, ...]) -> tuple[str, Heading]:
    """Format all fields known before the end: the same for all elements of an array."""
    told = [_escaped(field) for field in fields]
    heading = Heading._make(told)
    where = f"in cluster <{heading.cluster}>"
    first, *others = heading.hosts or ("",)
    more = "".join(f"\n{' ' * 28}<{host}>" for host in others)
    form = f"""
{RULE}
Sender: LSF System <{heading.sender}>
Subject: Job %s: <%s> {where} %s

Job <%s> was submitted from host <{heading.submit_host}> by user <{heading.user}> {where} at \
{date(heading.submit_time)}
Job was executed on host(s) <{first}>, in queue <{heading.queue}>, as user <{heading.user}> {where} at %s{more}
<{heading.home}> was used as the home directory.
<%s> was used as the working directory.
Started at %s
Terminated at %s
Results reported at %s

Your job looked like:

{RULE}
# LSBATCH: User input
{_head(heading.command)}
{RULE}

%s
Resource usage summary:

{USAGE}
%sThe output (if any) is above this job summary.

"""
    return form, Heading._make(fields)


def _escaped(field: Any) -> Any:
    if isinstance(field, tuple):
        return tuple(map(_escaped, field))
    return field.replace("%", "%%") if isinstance(field, str) else field


def is_success(finish: Finish, codes: tuple[int, ...]) -> bool:
    """Return True for an exit with 0, or by itself with one of these codes."""
    by_itself = not finish.reason and os.WIFEXITED(finish.status)
    return finish.status == 0 or (by_itself and os.WEXITSTATUS(finish.status) in codes)


def _result(finish: Finish, is_done: bool) -> str:
    lines = ""
    if finish.reason:
        lines = f"{endings.sentence(finish.reason)}\n"
    if finish.detail:
        lines += f"{finish.detail}\n"
    if is_done:
        return f"{lines}Successfully completed.\n"
    if os.WIFSIGNALED(finish.status):
        return f"{lines}Exited with signal termination: {os.WTERMSIG(finish.status)}.\n"
    return f"{lines}Exited with exit code {os.WEXITSTATUS(finish.status)}.\n"


def _usage(heading: Heading, ending: Ending) -> tuple[float | int | str, ...]:
    """Return the values of `USAGE`."""
    finish, asked, used = ending.finish, heading.memory_requested_mib, ending.finish.whole
    run_s = max(0.0, finish.time - finish.started) if finish.started else 0.0
    return (
        used.cpu_s,
        used.memory_mib_max,
        used.memory_mib_mean,
        f"{asked:.2f} MB" if asked else "-",
        f"{asked - used.memory_mib_max:.2f} MB" if asked else "-",
        f"{used.swap_mib_max} MB" if used.swap_mib_max else "-",
        used.processes_max,
        used.threads_max,
        run_s,
        max(0.0, finish.time - heading.submit_time),
    )


def _head(command: str) -> str:
    lines = command.split("\n", COMMAND_LINES_MAX)
    if len(lines) > COMMAND_LINES_MAX:
        lines[COMMAND_LINES_MAX] = "(... more ...)"
    return "\n".join(lines)


def date(moment: float) -> str:
    """Format a time as the report does."""
    return _date_of_second(int(moment))


@functools.lru_cache(maxsize=64)
def _date_of_second(second: int) -> str:
    return time.asctime(time.localtime(second))


# -- usage on other hosts

# Longest wait of the report. The request is repeated meanwhile, since the agent may be a new one.
COUNT_OTHERS_S, ASK_AGAIN_S = 4.5, 1.0

Figures = tuple[tuple[str, tuple[float, ...]], ...]  # host, fields of a Used


class OthersUsed:
    """One request, repeated until it is answered or the time is up."""

    def __init__(self, is_wide: bool, has_gpus: bool = False) -> None:
        self.is_awaited = is_wide or has_gpus
        self.next_at = NEVER  # next repetition, or the end
        self._until = NEVER
        self._found: Figures = ()
        self.gpus = ""
        self._missing: tuple[str, ...] = ("the other hosts",) if is_wide else ()

    def ask(self, now: float) -> bool:
        """Return True if the request is to be sent now."""
        if not self.is_awaited or (self.next_at != NEVER and now < self.next_at):
            return False
        self._until = min(self._until, now + COUNT_OTHERS_S)
        self.next_at = min(now + ASK_AGAIN_S, self._until)
        if now >= self._until:
            self._stop()
        return self.is_awaited

    def take(self, found: Figures, missing: tuple[str, ...], gpus: str = "") -> None:
        """Take the answer; ``gpus`` is the report's part about GPUs."""
        self.gpus = gpus
        self._found, self._missing = found, missing
        self._stop()

    def _stop(self) -> None:
        self.is_awaited, self.next_at = False, NEVER

    def found(self) -> tuple[Figures, tuple[str, ...]]:
        """Return figures by host, and hosts without figures."""
        return self._found, self._missing


# -- reasons


def limit_reached(setup: JobSetup, status: int, oom_kills: Callable[[], int]) -> str:
    """Return the limit that ended a job with this wait status, as a TERM_ word; empty for none."""
    if not status:
        return ""
    if setup.memory_limit_mib and oom_kills():
        return "TERM_MEMLIMIT"
    has_cpu_limit = any(name == "cpu" for name, _ in setup.rlimits)
    return "TERM_CPULIMIT" if has_cpu_limit and _ended_by(status) == signal.SIGXCPU else ""


def _ended_by(status: int) -> int:
    """Return the signal that killed the job, or the last program that its shell ran; 0 for none."""
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status)
    return max(0, os.WEXITSTATUS(status) - 128)
