"""Remaining run time of a job: by its run limit, or by its estimate (-We), marked as LSF does.

``L``: the run limit; ``E``: the estimate, where it is shorter; ``X``: the estimate is exceeded, the run limit is not. A
job without a run limit whose estimate is exceeded has no predicted end.
"""

from lavactl.text.render import short_time
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Job = messages.JobRecord

ENDED = (messages.DONE, messages.EXIT)


def allowance(job: "Job", ran_s: float) -> tuple[int, str]:
    """(seconds from start to predicted end, mark) of a job that has run for ``ran_s``; (0, "") without a bound."""
    limit_s, estimate_s = job.spec.run_limit_s, job.spec.runtime_estimate_s
    if estimate_s and not (limit_s and limit_s < estimate_s):
        if ran_s < estimate_s:
            return estimate_s, "E"
        return (limit_s, "X") if limit_s else (0, "")
    return (limit_s, "L") if limit_s else (0, "")


def time_left(job: "Job", now: float) -> str:
    """``hh:mm L``."""
    if not job.start_time or job.state in ENDED:
        return ""
    seconds, mark = allowance(job, now - job.start_time)
    minutes = max(0, int(job.start_time + seconds - now)) // 60
    return f"{minutes // 60}:{minutes % 60:02d} {mark}" if mark else ""


def finish_at(job: "Job", now: float) -> tuple[float, str]:
    """End time of the job, or the predicted one with its mark; 0: unknown."""
    if job.end_time or not job.start_time:
        return job.end_time, ""
    seconds, mark = allowance(job, now - job.start_time)
    return (job.start_time + seconds, mark) if mark else (0.0, "")


def complete(job: "Job", now: float) -> str:
    """Used part of the predicted run time: ``12.50% L``."""
    if not job.start_time:
        return ""
    ran_s = max(0.0, (job.end_time or now) - job.start_time)
    seconds, mark = allowance(job, ran_s)
    return f"{min(100.0, 100 * ran_s / seconds):.2f}% {mark}" if mark else ""


def finish(job: "Job", now: float) -> str:
    """End time of the job, or the predicted one by its run limit or estimate (``L``, ``E``, ``X``)."""
    when, mark = finish_at(job, now)
    return f"{short_time(when)} {mark}".rstrip() if when else ""


# Option of bjobs: title and reader of the column that it adds to -w.
COLUMNS: "dict[str, tuple[str, Callable[[Job, float], str]]]" = {
    "WL": ("TIME_LEFT", time_left),
    "WF": ("FINISH_TIME", finish),
    "WP": ("%COMPLETE", complete),
}
