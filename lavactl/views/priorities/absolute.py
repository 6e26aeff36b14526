"""Absolute priorities: the table and order of bjobs -aps, the factors of -aps -l, APS_PRIORITY of bqueues -l."""

from lavactl.text.render import MISSING
from lavactl.views import job_table
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from protos import cluster_pb2

HEADER = f"{job_table.HEADER}{'APS':>10}"  # over its values: a time is one wider than its title
FACTORS_HEADER = f"{'':<15}{'WEIGHT FACTORS':>16}{'LIMIT FACTORS':>16}{'GRACE PERIOD':>15}"
# As bqueues -l calls the factors.
TITLES = {
    "FS": "FAIRSHARE", "RSRC": "RESOURCE", "PROC": "PROCESSORS", "MEM": "MEMORY", "SWAP": "SWAP", "WORK": "WORK",
    "JPRIORITY": "JOB PRIORITY", "QPRIORITY": "QUEUE PRIORITY", "APP": "APPLICATION",
}  # fmt: skip


def in_order(jobs: list[messages.JobRecord]) -> list[messages.JobRecord]:
    """Jobs by absolute priority: those with a system value first, those of other queues last."""
    return sorted(jobs, key=_key)


def _key(job: messages.JobRecord) -> tuple[int, float, float, int, int]:
    has_value = job.HasField("absolute")
    kind = (0 if job.absolute.is_system else 1) if has_value else 2
    return kind, -job.absolute.value if has_value else 0.0, job.submit_time, job.job, job.index


def value_text(job: messages.JobRecord) -> str:
    """The value with two decimals; a system value, as it was set, in parentheses; a dash without any."""
    if not job.HasField("absolute"):
        return MISSING
    value = job.absolute.value
    return f"({value:.10g})" if job.absolute.is_system else f"{value:.2f}"


def table(jobs: list[messages.JobRecord], short: bool, uncut: bool) -> str:
    """Rows of bjobs -aps. Pending jobs have one line each."""
    form = job_table.wide(short) if uncut else job_table.table(short)
    rows = form.rows(jobs).splitlines()
    return "".join(f"{row} {value_text(job):>8}\n" for row, job in zip(rows, jobs, strict=True))


def factors_text(job: messages.JobRecord) -> str:
    """Paragraph of bjobs -aps -l: the value, and what each factor adds to it."""
    if not job.HasField("absolute"):
        return ""
    parts: list[str] = []
    for one in job.absolute.factors:
        said = f"{one.name} <{one.value:.2f}>"
        if one.is_part:
            parts[-1] = (
                f"{parts[-1].removesuffix(')')}, {said})" if parts[-1].endswith(")") else f"{parts[-1]} ({said})"
            )
        else:
            parts.append(said)
    value = value_text(job)
    return f"\n ABSOLUTE PRIORITY: <{value}>{', ' if parts else ''}{', '.join(parts)}\n"


def queue_lines(queue: "cluster_pb2.QueueRecord") -> list[str]:
    """Lines of bqueues -l about APS_PRIORITY; none without it."""
    if not queue.absolute:
        return []
    lines = ["", "APS_PRIORITY:", FACTORS_HEADER]
    for one in queue.absolute:
        limit = f"{one.limit:.2f}" if one.limit else MISSING
        grace = _duration(one.grace_s) if one.grace_s else MISSING
        lines.append(f"{TITLES[one.name]:<15}{one.weight:>16.2f}{limit:>16}{grace:>15}")
    return lines


def _duration(seconds: float) -> str:
    """A grace period in the largest unit that it is a whole number of."""
    for unit, length in (("h", 3600), ("m", 60)):
        if seconds % length == 0:
            return f"{seconds / length:.0f}{unit}"
    return f"{seconds:.10g}s"
