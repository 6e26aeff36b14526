"""Progress of a running job, as it reports it: a paragraph of ``bjobs -l``, and fields of ``bjobs -o``."""

from lavactl.text.render import clean, long_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.wire import messages

    Job = messages.JobRecord


def percent_done(job: "Job") -> str:
    """``40%``; empty if the job has not reported it."""
    return f"{job.progress.percent:.4g}%" if job.progress.has_percent else ""


def progress_left(job: "Job", now: float) -> str:
    """``0:05``, the hours and minutes left by the job's own estimate; empty if it has made none."""
    if not job.progress.has_seconds_left:
        return ""
    minutes = int(left_s(job, now)) // 60
    return f"{minutes // 60}:{minutes % 60:02d}"


def left_s(job: "Job", now: float) -> float:
    """Seconds left by the job's own estimate, less what has passed since."""
    return max(0.0, job.progress.time + job.progress.seconds_left - now)


def progress_text(job: "Job", now: float) -> str:
    """``40% done; 300 seconds left; epoch 3``; empty without a report."""
    report = job.progress
    words = [
        f"{percent_done(job)} done" if report.has_percent else "",
        f"{left_s(job, now):.0f} seconds left" if report.has_seconds_left else "",
        clean(report.text),
    ]
    return "; ".join(filter(None, words))


def progress_lines(job: "Job", now: float) -> list[str]:
    """The paragraph; none without a report."""
    if not job.HasField("progress"):
        return []
    report = job.progress
    by = f"{clean(report.role)}/{report.index} on {clean(report.host)}" if report.role else f"the job on {report.host}"
    return [f"{long_time(report.time)}: Progress reported by {by}: {progress_text(job, now)};"]
