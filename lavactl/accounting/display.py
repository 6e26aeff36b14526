"""Output of bacct: the filters, a line or paragraphs for each job, and the summary.

The summary is interface: reports look for its labels. What lava knows besides stands behind it.
"""

from lavactl.text.render import clean, keep_tail, long_time, short_time, wrap
from lavactl.views.job_long import SEPARATOR, head, reason, submitted
from lavactl.views.job_table import host_list
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from protos.accounts import Figure, Tally

BRIEF_HEADER = "U/UID      QUEUE      SUBMIT_TIME   CPU_T     WAIT       TURNAROUND FROM        EXEC_ON     JOB_NAME"
LONG_HEADER = "     CPU_T     WAIT     TURNAROUND   STATUS     HOG_FACTOR    MEM    SWAP"
_LEFT, _RIGHT = 35, 34  # columns of the summary


def figures(job: messages.JobRecord) -> tuple[float, float]:
    """Seconds from submission to dispatch (to the end of a job without one), and from submission to the end."""
    turnaround_s = max(0.0, job.end_time - job.submit_time)
    return (max(0.0, job.start_time - job.submit_time) if job.start_time else turnaround_s), turnaround_s


def brief(job: messages.JobRecord, is_wide: bool) -> str:
    """One line of -b."""
    wait_s, turnaround_s = figures(job)
    name, hosts = clean(job.name), ":".join(host_list(job, True)) or "-"
    user, queue, from_host = job.user, job.queue, job.from_host
    if not is_wide:
        user, queue, from_host, hosts = user[:10], queue[:10], from_host[:11], hosts[:11]
        name = keep_tail(name, 10)
    return (
        f"{user:<10} {queue:<10} {short_time(job.submit_time):<13} {job.usage.cpu_s:<9.2f} {wait_s:<10.0f} "
        f"{turnaround_s:<10.0f} {from_host:<11} {hosts:<11} {name}"
    )


def long(job: messages.JobRecord, home: str, is_unformatted: bool) -> str:
    """Paragraphs of -l: what was submitted, what became of it, and its figures."""
    fold = str if is_unformatted else wrap
    told = f"{long_time(job.submit_time)}: {submitted(job, is_unformatted, home)};"
    lines = [fold(head(job)), fold(told)]
    if job.start_time:
        lines.append(fold(f"{long_time(job.start_time)}: {_dispatched(job)};"))
    lines.append(fold(f"{long_time(job.end_time)}: {_completed(job)}"))
    return "\n".join([*lines, "", *_figures_of(job)])


def _dispatched(job: messages.JobRecord) -> str:
    names = " ".join(f"<{host}>" for host in host_list(job, False))
    count = sum(share.slots for share in job.hosts)
    return f"Dispatched to {count} Hosts/Processors {names}" if count > 1 else f"Dispatched to {names}"


def _completed(job: messages.JobRecord) -> str:
    word = "done" if job.state == messages.DONE else "exit"
    return f"Completed <{word}>" + (f"; {reason(job)}" if job.exit_reason else ".")


def _figures_of(job: messages.JobRecord) -> list[str]:
    wait_s, turnaround_s = figures(job)
    cpu_s = job.usage.cpu_s
    status = "done" if job.state == messages.DONE else "exit"
    memory = f"{job.usage.memory_mib_max}M" if job.usage.memory_mib_max else "-"
    hog = cpu_s / turnaround_s if turnaround_s else 0.0
    row = f"{cpu_s:>10.2f}{wait_s:>9.0f}{turnaround_s:>15.0f}{status:>9}{hog:>15.4f}{memory:>7}{'-':>8}"
    return ["Accounting information about this job:", LONG_HEADER, row]


def header(filters: "list[str]") -> str:
    """Head of the output, with what was asked for."""
    lines = [f"  - {one}" for one in filters]
    return "\n".join(["", "Accounting information about jobs that are:", *lines, SEPARATOR, ""])


def summary(tally: "Tally") -> str:
    """The block of sums."""
    hours = max(0.0, tally.last_end - tally.first_end) / 3600
    jobs = tally.done + tally.exited
    cpu, wait, turnaround, hog, run = tally.cpu_s, tally.wait_s, tally.turnaround_s, tally.hog_factor, tally.run_s
    lines = [
        "SUMMARY:      ( time unit: second )",
        _pair("Total number of done jobs:", str(tally.done), "Total number of exited jobs:", str(tally.exited)),
        _pair("Total CPU time consumed:", _one(cpu.total), "Average CPU time consumed:", _one(cpu.mean)),
        _pair("Maximum CPU time of a job:", _one(cpu.most), "Minimum CPU time of a job:", _one(cpu.least)),
        _left("Total wait time in queues:", _one(wait.total)),
        _left("Average wait time in queue:", _one(wait.mean)),
        _pair("Maximum wait time in queue:", _one(wait.most), "Minimum wait time in queue:", _one(wait.least)),
        f"{_left('Average turnaround time:', _whole(turnaround.mean))} (seconds/job)",
        _whole_pair("turnaround time:", turnaround),
        f"{_left('Average hog factor of a job:', _two(hog.mean))} ( cpu time / turnaround time )",
        _pair("Maximum hog factor of a job:", _two(hog.most), "Minimum hog factor of a job:", _two(hog.least)),
        f"{_left('Average expansion factor of a job:', f'{tally.expansion_factor.mean:5.2f}')}"
        " ( turnaround time / run time )",
        _pair("Total Run time consumed:", _whole(run.total), "Average Run time consumed:", _whole(run.mean)),
        f"{_left('Total throughput:', _two(jobs / hours if hours else 0.0))} (jobs/hour)  during {hours:7.2f} hours",
        _pair("Beginning time:", _date(tally.first_end), "Ending time:", _date(tally.last_end)),
    ]
    return "\n".join(lines)


def slot_lines(tally: "Tally") -> str:
    """Slots times seconds, in all and by class of host: lava's own lines."""
    other_s = max(0.0, tally.slot_s - tally.revocable_slot_s)
    total = _left("Total slot time consumed:", _whole(tally.slot_s))
    return f"{total}\n" + _pair(
        "Slot time on other hosts:", _whole(other_s), "On revocable hosts:", _whole(tally.revocable_slot_s)
    )


def _left(label: str, value: str) -> str:
    return f" {label}" + f" {value}".rjust(_LEFT - 1 - len(label))


def _pair(label: str, value: str, other: str, other_value: str) -> str:
    return f"{_left(label, value)}      {other}{f' {other_value}'.rjust(_RIGHT - len(other))}"


def _whole_pair(label: str, figure: "Figure") -> str:
    return _pair(f"Maximum {label}", _whole(figure.most), f"Minimum {label}", _whole(figure.least))


def _one(value: float) -> str:
    return f"{value:.1f}"


def _two(value: float) -> str:
    return f"{value:.2f}"


def _whole(value: float) -> str:
    return str(int(value + 1e-6))


def _date(moment: float) -> str:
    return short_time(moment) if moment else ""
