"""A second, slow and obvious replay of the plain policies, written from their rules alone: the real one must equal it.

It shares no code with the master. Machine: a number of interchangeable processors. Whole seconds.
"""

from dataclasses import dataclass


@dataclass
class TwinJob:
    """A job as the rules see it."""

    name: int
    submit: int
    run: int
    width: int
    estimate: int
    start: int | None = None
    reserved: int | None = None


def replay(jobs: list[TwinJob], processors: int, policy: str, overrun: str = "kill") -> dict[int, int]:
    """Start time of each job by name. Jobs come in queue order."""
    for job in jobs:
        if overrun == "kill":
            job.run = min(job.run, job.estimate)
        elif overrun == "extend":
            job.estimate = max(job.run, job.estimate)
    decide = {"fcfs": _fcfs, "easy": _easy, "conservative": _conservative}[policy]
    to_come, waiting, running = list(jobs), [], []
    while to_come or waiting or running:
        now = min([job.submit for job in to_come[:1]] + [_end(job) for job in running])
        ended = [job for job in running if _end(job) == now]
        running = [job for job in running if _end(job) > now]
        arrived = [job for job in to_come if job.submit == now]
        to_come = to_come[len(arrived) :]
        waiting += arrived
        surprise = any(job.start + job.estimate != now for job in ended)
        surprise |= any(job.start + job.estimate <= now for job in running)
        decide(now, waiting, running, processors, surprise)
        waiting = [job for job in waiting if job.start is None]
    return {job.name: job.start for job in jobs}


def _end(job: TwinJob) -> int:
    return job.start + job.run


def _expected_end(job: TwinJob, now: int) -> int:
    return max(job.start + job.estimate, now + 1)


def _free(running: list[TwinJob], processors: int) -> int:
    return processors - sum(job.width for job in running)


def _start(job: TwinJob, now: int, running: list[TwinJob]) -> None:
    job.start = now
    running.append(job)


def _fcfs(now: int, waiting: list[TwinJob], running: list[TwinJob], processors: int, surprise: bool) -> None:
    for job in waiting:
        if job.width > _free(running, processors):
            break
        _start(job, now, running)


def _easy(now: int, waiting: list[TwinJob], running: list[TwinJob], processors: int, surprise: bool) -> None:
    _fcfs(now, waiting, running, processors, surprise)
    blocked = [job for job in waiting if job.start is None]
    if not blocked:
        return
    head = blocked[0]
    for shadow in sorted({_expected_end(job, now) for job in running}):
        free = _free([job for job in running if _expected_end(job, now) > shadow], processors)
        if free >= head.width:
            break
    extra = free - head.width
    for job in blocked[1:]:
        if job.width > _free(running, processors):
            continue
        if now + job.estimate <= shadow:
            _start(job, now, running)
        elif job.width <= extra:
            extra -= job.width
            _start(job, now, running)


def _conservative(now: int, waiting: list[TwinJob], running: list[TwinJob], processors: int, surprise: bool) -> None:
    if surprise:
        for job in waiting:
            job.reserved = None
    for at, job in enumerate(waiting):
        if job.reserved is None:
            booked = [(other.start, _expected_end(other, now), other.width) for other in running]
            booked += [(o.reserved, o.reserved + o.estimate, o.width) for o in waiting[:at]]
            job.reserved = _earliest_hole(now, job, booked, processors)
    for job in waiting:
        if job.reserved <= now:
            _start(job, now, running)


def _earliest_hole(now: int, job: TwinJob, booked: list[tuple[int, int, int]], processors: int) -> int:
    for start in sorted({now} | {end for _, end, _ in booked if end > now}):
        end = start + job.estimate
        moments = {start} | {begin for begin, _, _ in booked if start < begin < end}
        if all(_used(moment, booked) + job.width <= processors for moment in moments):
            return start
    raise AssertionError("a job wider than the machine")


def _used(moment: int, booked: list[tuple[int, int, int]]) -> int:
    return sum(width for begin, end, width in booked if begin <= moment < end)
