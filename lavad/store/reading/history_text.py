"""Event lines of a job in LSF's words, and the seconds spent in each state. Pure."""

import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from lavad.core.language.numbers import number_text
from lavad.core.model import JobState, Shared, unpack_text
from lavad.core.model.reasons import FOUND_ON_HOST, is_done
from lavad.core.state.attempts import JobEnd

S = JobState

# The columns of LSF's summary, and the states counted in each.
COLUMNS = {
    S.PEND: "PEND",
    S.PSUSP: "PSUSP",
    S.STAGING: "RUN",
    S.RUN: "RUN",
    S.USUSP: "USUSP",
    S.SSUSP: "SSUSP",
    S.UNKWN: "UNKWN",
    S.ZOMBI: "UNKWN",
}


@dataclass(frozen=True, slots=True)
class Moment:
    """A row of ``job_events``."""

    at: float
    kind: str
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Note:
    """One line of a job's history, and the state from then on."""

    at: float
    text: str
    state: JobState


def state_after(moment: Moment, before: JobState, earlier: JobState) -> JobState:
    """Return the state after this event. ``earlier`` is the one before the host was lost."""
    detail = moment.detail
    match moment.kind:
        case "started" if before is S.UNKWN:  # another host of the job is silent
            return S.UNKWN
        case "submitted" | "requeued" | "revived":
            return S.PSUSP if detail.get("hold") else S.PEND
        case "finished":
            return S.DONE if is_done(detail.get("status") or 0, detail.get("reason") or "") else S.EXIT
        case "suspended" | "resumed" if "state" in detail:
            return JobState[detail["state"]]
        case "found":
            return earlier
    return _LEADS_TO.get(moment.kind, before)


_LEADS_TO = {
    "dispatched": S.STAGING,
    "started": S.RUN,
    "resumed": S.RUN,
    "lost": S.UNKWN,
    "abandoned": S.ZOMBI,
    "killed": S.EXIT,
    "completed": S.DONE,
    "held": S.PSUSP,
    "freed": S.PEND,
}


def with_start(moments: Sequence[Moment], end: JobEnd | None) -> list[Moment]:
    """Return the events with a start added for a short job: only its end reports the start time."""
    told, place = list(moments), _place_of_end(moments)
    if end is None or not end.started_at or place < 0:
        return told
    for moment in reversed(told[: place + 1]):
        if moment.kind == "started":
            return told
        if moment.kind == "dispatched":
            break
    at = min(max(end.started_at, moment.at), told[place].at)
    return [*told[:place], Moment(at, "started", {"pid": end.pid}), *told[place:]]


def _place_of_end(moments: Sequence[Moment]) -> int:
    """Return the place of the end of the job, after which only its post-execution commands end; -1 for none."""
    for place in range(len(moments) - 1, -1, -1):
        if moments[place].kind not in ("posted", "reason given"):
            return place if moments[place].kind == "finished" else -1
    return -1


def with_figures(moments: Sequence[Moment], end: JobEnd | None) -> list[Moment]:
    """Return the events with the job's total usage in the last one: hosts may report theirs after the end."""
    place = _place_of_end(moments)
    if end is None or place < 0:
        return list(moments)
    last = moments[place]
    figures = {"cpu_s": end.cpu_s, "memory_mib_max": end.memory_mib_max}
    return [*moments[:place], Moment(last.at, last.kind, {**last.detail, **figures}), *moments[place + 1 :]]


@dataclass(frozen=True, slots=True)
class CpuFactors:
    """Factors by which the CPU times of attempts are multiplied, by their first host; ``other`` for any other host."""

    of_hosts: Mapping[str, float]
    other: float = 1.0


def normalized(moments: Sequence[Moment], factors: CpuFactors) -> list[Moment]:
    """Return the events with the CPU time of each attempt as another host would have taken it."""
    told, factor = list[Moment](), factors.other
    for moment in moments:
        detail = moment.detail
        if moment.kind == "dispatched" and detail["hosts"]:
            factor = factors.of_hosts.get(detail["hosts"][0][0], factors.other)
        is_end = moment.kind == "finished" and "cpu_s" in detail
        told.append(replace(moment, detail={**detail, "cpu_s": factor * detail["cpu_s"]}) if is_end else moment)
    return told


def in_order(moments: Sequence[Moment]) -> list[Moment]:
    """Return the events with those of an attempt that was found on its host no earlier than the ones before.

    It may have begun before what was recorded of its job while the database knew nothing of it.
    """
    told, latest = list(moments), 0.0
    first = next((place for place, moment in enumerate(told) if _is_found_attempt(moment)), len(told))
    for place, moment in enumerate(told):
        latest = max(latest, moment.at)
        if place >= first and moment.at < latest:
            told[place] = replace(moment, at=latest)
    return _before_ends(told)


def _before_ends(told: list[Moment]) -> list[Moment]:
    """Return the events with those recorded before an end no later than that.

    An end that came while the master was away is recorded when the job's lead host is back, at the time at which it
    was; other hosts may have been back before, and what they told of the job was over by then.
    """
    bound = inf
    for place in reversed(range(len(told))):
        moment = told[place]
        if moment.kind == "finished":
            bound = moment.at
        elif moment.at > bound:
            told[place] = replace(moment, at=bound)
        if moment.kind == "dispatched":
            bound = inf
    return told


def _is_found_attempt(moment: Moment) -> bool:
    return moment.kind == "dispatched" and moment.detail.get("reason") == FOUND_ON_HOST


def walk(moments: Iterable[Moment]) -> list[tuple[Moment, JobState]]:
    """Return each event with the state after it."""
    state, earlier, steps = S.PEND, S.RUN, []
    for moment in moments:
        if moment.kind == "lost":
            earlier = state
        elif moment.kind == "started" and state is S.UNKWN:
            earlier = S.RUN
        state = state_after(moment, state, earlier)
        steps.append((moment, state))
    return steps


def seconds_by_state(steps: Sequence[tuple[Moment, JobState]], until: float) -> dict[str, float]:
    """Return the seconds in each of LSF's columns, up to ``until`` for a job that has not ended."""
    seconds = dict.fromkeys(COLUMNS.values(), 0.0)
    ends = [moment.at for moment, _ in steps[1:]] + [until]
    for (moment, state), end in zip(steps, ends, strict=True):
        column = COLUMNS.get(state)
        if column is not None:
            seconds[column] += max(0.0, end - moment.at)
    return seconds


def notes(steps: Iterable[tuple[Moment, JobState]], shared: Shared, words: bytes) -> tuple[Note, ...]:
    """Return the lines of the history."""
    written, has_started = [], True
    for moment, state in steps:
        if moment.kind in ("dispatched", "started"):
            has_started = moment.kind == "started"
        if moment.kind == "submitted":
            lines = _submitted(shared, words)
        elif moment.kind == "finished":
            lines = _finished(moment.detail, has_started)
        else:
            lines = _LINES[moment.kind](moment.detail)
        written += [Note(moment.at, line, state) for line in lines]
    return tuple(written)


def _submitted(shared: Shared, words: bytes) -> list[str]:
    said = unpack_text(words)
    parts = [
        f"Submitted from host <{shared.from_host}>",
        f"to Queue <{shared.queue}>",
        f"CWD <{said['submit_cwd'] or said['cwd']}>",
    ]
    files = (("input", "Input File"), ("output", "Output File"), ("error", "Error File"))
    parts += [f"{label} <{said[name]}>" for name, label in files if said[name]]
    slots = shared.request.slots_min
    if slots > 1:
        parts.append(f"{slots} Processors Requested")
    return [", ".join(parts)]


ENDED_BEFORE_START = "the job ended before it started"
_TOLD = ("backfilled", "preempting", "reclaiming", "in room", "in slots")  # shown: other jobs passed over or paid


def _dispatched(detail: dict[str, Any]) -> list[str]:
    names = [f"<{share[0]}>" for share in detail["hosts"] for _ in range(share[1])]
    count = f"{len(names)} Hosts/Processors " if len(names) > 1 else ""
    why = detail.get("reason", "")
    told = f", {why}" if why.startswith(_TOLD) else ""
    return [f"Dispatched to {count}{' '.join(names)}{told}"]


def _started(detail: dict[str, Any]) -> list[str]:
    lines, pid = [f"Starting (Pid {detail['pid']})"], detail["pid"]
    if detail.get("home") or detail.get("cwd"):
        place = f"execution home <{detail['home']}>, Execution CWD <{detail['cwd']}>"
        lines.append(f"Running with {place}, Execution Pid <{pid}>")
    return lines


def _finished(detail: dict[str, Any], has_started: bool) -> list[str]:
    cpu = f"The CPU time used is {detail.get('cpu_s', 0.0):.1f} seconds"
    status, reason = detail["status"], detail.get("reason") or ""
    reason = reason or (detail.get("detail") or "" if status else "")
    if is_done(status, reason):
        return [f"Done successfully. {cpu}", *([f"Completed <done>; {reason}"] if reason else ())]
    lines = [f"{_ending(status)}. {cpu}" if has_started else f"{_ending(status)}; {ENDED_BEFORE_START}"]
    return [*lines, f"Completed <exit>; {reason}"] if reason else lines


def _ending(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"Exited by signal {os.WTERMSIG(status)}"
    return f"Exited with exit code {os.WEXITSTATUS(status)}"


def _killed(detail: dict[str, Any]) -> list[str]:
    lines = [_asked_for("KILL", detail), "Exited"]
    return [*lines, f"Completed <exit>; {detail['reason']}"] if detail.get("reason") else lines


def _asked_for(name: str, detail: dict[str, Any]) -> str:
    return f"Signal <{name}> requested by user or administrator <{detail.get('by', '')}>"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number or signal.SIGKILL).name.removeprefix("SIG")
    except ValueError:
        return str(number)


def _suspended(detail: dict[str, Any]) -> list[str]:
    if detail["state"] == S.USUSP.name:
        return ["Suspended by the user or administrator"]
    return [f"Suspended: {detail.get('reason') or detail.get('by') or 'by the system'}"]


def _resumed(detail: dict[str, Any]) -> list[str]:
    if detail.get("state", S.RUN.name) != S.RUN.name:
        return []
    return [f"Running: {detail['reason']}"] if detail.get("reason") else ["Running"]


def _claimed(detail: dict[str, Any]) -> list[str]:
    return [f"Room is kept: {detail.get('reason', '')}"]


def _unclaimed(detail: dict[str, Any]) -> list[str]:
    return [f"Room is no longer kept: {detail.get('reason', '')}"]


def _posted(detail: dict[str, Any]) -> list[str]:
    return ["Post job process done successfully" if detail.get("state") == "DONE" else "Post job process failed"]


def _requeued(detail: dict[str, Any]) -> list[str]:
    reason = f": {detail['reason']}" if detail.get("reason") else ""
    return [f"Pending: Job has been requeued{reason}"]


def _moved(detail: dict[str, Any]) -> list[str]:
    place = int(detail.get("place", 1))
    where = f"position {abs(place)} from {'top' if place > 0 else 'bottom'}"
    return [f"Job is moved to {where} by user or administrator <{detail.get('by', '')}>"]


def _hosts_named(detail: dict[str, Any]) -> str:
    """Format an allocation as LSF lists hosts with their slots: ``<2*h1> <h2>``."""
    return " ".join(f"<{share[1]}*{share[0]}>" if share[1] > 1 else f"<{share[0]}>" for share in detail["hosts"])


def _resized(detail: dict[str, Any]) -> list[str]:
    slots = sum(share[1] for share in detail["hosts"])
    reason = f"; {detail['reason']}" if detail.get("reason") else ""
    return [f"Resized to {slots} slots on {_hosts_named(detail)} by {detail.get('by', '')}{reason}"]


def _wished(detail: dict[str, Any]) -> str:
    size = detail.get("sizes") or f"{detail['tasks']} tasks"
    return f"Size of {size} requested by <{detail.get('by', '')}>"


def _doomed(detail: dict[str, Any]) -> str:
    if not detail.get("again"):
        return f"Failed as a whole: {detail.get('reason', '')}"
    by = f" by user or administrator <{detail['by']}>" if detail.get("by") else ""
    return f"Requeue requested{by}: {detail.get('reason', '')}"


def _task_failed(detail: dict[str, Any]) -> list[str]:
    where = f" on {detail['host']}" if detail.get("host") else ""
    why = f"; {detail['reason']}" if detail.get("reason") else ""
    return [f"Task {detail['task']} {_ending(detail['status']).lower()}{where}{why}"]


def _tasks_restarted(detail: dict[str, Any]) -> list[str]:
    counted = f" ({detail['count']} of {detail['most']})" if detail.get("count") else ""
    pause = f"; it starts in {detail['pause']} s" if detail.get("pause") else ""
    return [f"{detail['what']} restarted{counted}: {_event_name(detail)}{pause}"]


def _replacement_awaited(detail: dict[str, Any]) -> list[str]:
    return [f"Job keeps its other hosts, and waits up to {detail['seconds']} s for a host for {detail['tasks']}"]


def _spares_taken(detail: dict[str, Any]) -> list[str]:
    return [f"Spare places on {detail['hosts']} are taken for {detail['tasks']}"]


def _event_name(detail: dict[str, Any]) -> str:
    return str(detail.get("event", "")).lower().replace("_", " ")


_VERDICTS = {
    "COMPLETE": "Job completed by its tasks",
    "TERMINATE": "Job failed by its tasks",
    "ABORT": "Job aborted by its tasks",
    "RESTART_JOB": "Job is restarted in another attempt",
}


def _times(count: int) -> str:
    return f" {count} times" if count > 1 else ""


def _tasks_concluded(detail: dict[str, Any]) -> list[str]:
    reason = f": {detail['reason']}" if detail.get("reason") else ""
    return [_VERDICTS.get(detail["action"], "Job is ended by its tasks") + reason]


def _hangs(detail: dict[str, Any]) -> list[str]:
    seconds = number_text(detail["seconds"])
    return [f"Hangs: no output, no progress and no use of CPU, network or GPU for {seconds} seconds"]


def _stacks(detail: dict[str, Any]) -> list[str]:
    words = f": {detail['words']}" if detail.get("words") else ""
    if not detail.get("path"):
        return [f"No stacks were saved on {detail['host']}{words}"]
    return [f"Stacks of its processes on {detail['host']} are in {detail['path']}{words}"]


def _unused(detail: dict[str, Any]) -> list[str]:
    if not detail["seconds"]:
        return [f"Host {detail['host']} has processes of the job again"]
    return [f"Host {detail['host']} has had no process of the job for {number_text(detail['seconds'])} seconds"]


def _checkpoint_asked(detail: dict[str, Any]) -> list[str]:
    why = "to migrate the job" if detail.get("migrates") else "to end the job" if detail.get("ends") else ""
    if not detail.get("by"):
        return [f"Checkpoint begun by the migration threshold {why}"]
    return [f"Checkpoint requested by user or administrator <{detail.get('by', '')}> {why}".rstrip()]


def _checkpoint(detail: dict[str, Any]) -> list[str]:
    action = {"SUSPEND": "suspend", "TERMINATE": "terminate", "WARNING": "warning"}.get(detail.get("action", ""))
    by_itself = f"Checkpoint of the {action} action" if action else "Periodic checkpoint"
    whose = "Checkpoint" if detail.get("number") else by_itself
    return [f"{whose} failed: {detail['error']}" if detail.get("error") else f"{whose} succeeded"]


def _tasks_stopped(detail: dict[str, Any]) -> list[str]:
    if not detail.get("by"):
        return [f"{detail.get('tasks', '')} ended: {detail.get('reason', '')}"]
    return [f"Signal <KILL> requested by user or administrator <{detail['by']}> for {detail.get('tasks', '')}"]


_LINES: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "posted": _posted,
    "message": lambda detail: [
        f'External Message "{detail["text"]}" was posted from "{detail["by"]}" to message box {detail["number"]}'
    ],
    "reason given": lambda detail: [
        f"{detail['what'].capitalize()} reason of user or administrator <{detail['by']}>: {detail['text']}"
    ],
    "task failed": _task_failed,
    "tasks failed": lambda detail: [f"{detail['count']} more tasks failed on {detail.get('host', '')}"],
    "tasks lost": lambda detail: [f"Host {detail.get('host', '')} and its tasks are lost: {detail.get('reason', '')}"],
    "tasks stopped": _tasks_stopped,
    "tasks signalled": lambda detail: [
        f"Signal <{_signal_name(detail.get('signal', 0))}> requested by user or administrator "
        f"<{detail.get('by', '')}> for {detail.get('tasks', '')}"
    ],
    "tasks restarted": _tasks_restarted,
    "replacement awaited": _replacement_awaited,
    "spares taken": _spares_taken,
    "tasks concluded": _tasks_concluded,
    "autoscale failed": lambda detail: [f"Autoscale: {detail.get('reason', '')}; the size stays"],
    "hangs": _hangs,
    "active": lambda _: ["Active again; nothing is done about the hang"],
    "stacks": _stacks,
    "unused": _unused,
    "checkpoint asked": _checkpoint_asked,
    "checkpoint": _checkpoint,
    "dispatched": _dispatched,
    "started": _started,
    "killed": _killed,
    "completed": lambda detail: [f"Done successfully. {detail.get('reason', '')};"],
    "restarted in queue": lambda detail: [
        f"Job is restarted in its queue{_times(detail.get('count', 1))}: {detail.get('reason', '')}"
    ],
    "requeued": _requeued,
    "suspended": _suspended,
    "resumed": _resumed,
    "claimed": _claimed,
    "unclaimed": _unclaimed,
    "found": lambda _: ["Running"],
    "lost": lambda detail: [f"Unknown; unable to reach the execution host {detail.get('hosts', '')}".rstrip()],
    "signalled": lambda detail: [_asked_for(_signal_name(detail.get("signal", 0)), detail)],
    "warned": lambda detail: [f"Warning: {detail.get('text', '')}"],
    "held": lambda detail: [_asked_for("STOP", detail)],
    "freed": lambda detail: [_asked_for("CONT", detail)],
    "doomed": lambda detail: [_doomed(detail)],
    "revived": lambda detail: [f"Pending: Job has been requeued by user or administrator <{detail.get('by', '')}>"],
    "switched": lambda detail: [
        f"Job switched to queue <{detail['queue']}> by user or administrator <{detail.get('by', '')}>"
    ],
    "abandoned": lambda detail: [_asked_for("KILL", detail), "Zombie; its host can't be reached"],
    "moved": _moved,
    "growing": lambda detail: [f"Additional allocation on {_hosts_named(detail)} is being made ready"],
    "ungrown": lambda detail: [f"Additional allocation given up: {detail.get('reason', '')}"],
    "resized": _resized,
    "wished": lambda detail: [_wished(detail)],
    "met": lambda _: ["Dependency condition satisfied"],
    "detached": lambda detail: [f"Detached from advance reservation <{detail.get('reservation', '')}>"],
    "modified": lambda detail: [f"Parameters of Job are changed: {detail.get('changes', '')}"],
}
