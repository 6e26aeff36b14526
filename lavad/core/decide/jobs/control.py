"""Kill, signal, stop, resume: by the owner or an administrator, of a job or of some elements of an array.

A running job may be suspended for several causes at once and resumes when the last of them ends: USUSP while the user's
request is among the causes, SSUSP while there are only others. A job that is being staged, or whose hosts are silent,
cannot be stopped yet: the cause is noted and takes effect when the job has started or its hosts are back.
"""

from collections.abc import Callable, Collection, Iterator, Sequence

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.apply.jobs import CONT, STOP
from lavad.core.cluster import Cluster
from lavad.core.decide.contact import is_in_contact, named, silent_hosts, when_back
from lavad.core.decide.decision import Decision, administers, check_control, is_owner
from lavad.core.model import BY_USER, FINAL, SUSPENDED, WAITING, JobState, Key, PostState, serial_of
from lavad.core.model import reasons as r
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from lavad.core.orders import TERMINATE, Order, SignalOrder
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import ArrayRecord, Job

S = JobState
SIGKILL = 9
_ENDING = (SIGKILL, 2, 15)  # signals that end a job that has not started
_JOB_ITSELF = Ranges([range(1)])  # of a plain job, in events: what they hold is never changed


def find(cluster: Cluster, target: c.Target, caller: c.Caller) -> Job | ArrayRecord:
    """The job of a target.

    Raises:
        Refused: there is none, the caller may not, or elements of a plain job were named.
    """
    record = cluster.jobs.get(target.job)
    if record is None:
        raise Refused("No matching job found")
    check_control(cluster, record, caller)
    if target.role:
        raise Refused("Tasks can only be ended or signalled (bkill); this is for the whole job")
    if target.indices is not None and not isinstance(record, ArrayRecord):
        raise Refused("Job array index error: the job is not an array")
    return record


def waiting_of(record: Job | ArrayRecord, indices: Ranges | None, *states: JobState) -> Ranges:
    """Pending elements of a target; a plain job counts as index 0."""
    if isinstance(record, Job):
        return Ranges([range(1)]) if record.state in states else Ranges()
    found = Ranges()
    for state in (S.PEND, S.PSUSP):
        if state in states:
            waiting = record.all_waiting(state)
            found.update(waiting if indices is None else waiting.intersection(indices))
    return found


def live_of(record: Job | ArrayRecord, indices: Ranges | None) -> Iterator[Job]:
    """Elements of a target that hold hosts."""
    if isinstance(record, Job):
        if record.attempt is not None:
            yield record
        return
    yield from (job for index, job in list(record.live.items()) if indices is None or index in indices)


def _decide(
    cluster: Cluster,
    target: c.Target,
    caller: c.Caller,
    waiting_states: tuple[JobState, ...],
    on_waiting: Callable[[int, Ranges], e.Event | None],
    on_live: Callable[[Job], list[e.Event]],
    ends: Sequence[Order] = (),
    why_not: Callable[[Job | ArrayRecord, Ranges | None], str] | None = None,
) -> Decision:
    """Events for the pending elements together and for each live one, and orders for ended ones; refused if there are
    none."""
    record = find(cluster, target, caller)
    decision = Decision()
    waiting = waiting_of(record, target.indices, *waiting_states)
    if waiting and (event := on_waiting(record.id, waiting)) is not None:
        decision.events.append(event)
    for job in live_of(record, target.indices):
        decision.events.extend(on_live(job))
    decision.orders.extend(ends)
    if not (decision.events or decision.orders):
        raise Refused((why_not or why_nothing)(record, target.indices))
    return decision


def shown(state: JobState) -> str:
    """The state's name as bjobs shows it."""
    return S.RUN.name if state is S.STAGING else state.name


def states_of(record: Job | ArrayRecord, indices: Ranges | None) -> str:
    """Names of the states of the target's unfinished elements."""
    if isinstance(record, Job):
        return shown(record.state)
    found = {shown(job.state) for job in live_of(record, indices)}
    found.update(state.name for state in (S.PEND, S.PSUSP) if waiting_of(record, indices, state))
    return ", ".join(sorted(found))


def _why_not_stopped(record: Job | ArrayRecord, indices: Ranges | None) -> str:
    states = states_of(record, indices)
    if not _is_unfinished(record, indices):
        return why_nothing(record, indices)
    attempts = [job.attempt for job in live_of(record, indices) if job.state is S.STAGING]
    if any(attempt is not None and BY_USER in attempt.suspended for attempt in attempts):
        return "The job is being started; it will be suspended as soon as it has started"
    if states in (S.UNKWN.name, S.ZOMBI.name):
        return f"The job can't be suspended while its host is silent; its state is {states}"
    return f"Nothing is left to suspend; the state is {states}"


def _why_not_resumed(record: Job | ArrayRecord, indices: Ranges | None) -> str:
    if not _is_unfinished(record, indices):
        return why_nothing(record, indices)
    return f"No user has suspended the job; its state is {states_of(record, indices)}"


def _why_not_in_state(record: Job | ArrayRecord, indices: Ranges | None) -> str:
    if not _is_unfinished(record, indices):
        return why_nothing(record, indices)
    return f"The job is not in the state that -stat names; its state is {states_of(record, indices)}"


def _is_unfinished(record: Job | ArrayRecord, indices: Ranges | None) -> bool:
    if isinstance(record, Job):
        return record.state not in FINAL
    return bool(states_of(record, indices))


def why_nothing(record: Job | ArrayRecord, indices: Ranges | None) -> str:
    """Reason why the command applies to no element of the target."""
    if isinstance(record, Job):
        return "Job has already finished" if record.state in FINAL else "Operation is in progress"
    if indices is not None and all(record.state_of(index) is None for index in indices):
        return "No matching job found"
    return "Job has already finished" if record.is_over else "Operation is in progress"


def _reason(cluster: Cluster, command: c.KillJob | c.SignalJob, is_forced: bool) -> str:
    """The TERM_ reason: ended by the owner or an administrator, with or without the terminate sequence."""
    record = cluster.jobs.get(command.target.job)
    if record is not None and is_owner(record, command.caller):
        return r.TERM_FORCE_OWNER if is_forced else r.TERM_OWNER
    return r.TERM_FORCE_ADMIN if is_forced else r.TERM_ADMIN


def kill(cluster: Cluster, command: c.KillJob, now: float) -> Decision:
    """Kill (bkill): pending elements end at once, running ones get the terminate sequence; ``remove`` ends the record
    in any case."""
    by = command.caller.user
    reason, states = _reason(cluster, command, command.remove), command.states
    record = find(cluster, command.target, command.caller)
    if isinstance(record, Job) and record.state in WAITING and record.end is None:
        # Many of a bkill 0, in a third of the time of what follows.
        if states and record.state not in states:
            raise Refused(_why_not_in_state(record, None))
        return Decision([e.PendingEnded(now, record.id, _JOB_ITSELF, by, reason)], reply="")

    def end_waiting(job: int, indices: Ranges) -> e.Event:
        return e.PendingEnded(now, job, indices, by, reason)

    def end_live(job: Job) -> list[e.Event]:
        assert job.attempt is not None
        if states and job.state not in states:
            return []
        if command.remove:
            return end_at_once(job.attempt, now, reason)
        as_done = r.TERM_OWNER_DONE if reason == r.TERM_OWNER else r.TERM_ADMIN_DONE
        return kill_attempt(cluster, job, job.attempt, now, by, as_done if command.as_done else reason)

    told = told_of(cluster, command.target, _removed if command.remove else _killed, (S.UNKWN, S.ZOMBI), now)
    ends = () if states else _ends_of_post(cluster, command.target, now, reason)
    waiting = tuple(state for state in (S.PEND, S.PSUSP) if not states or state in states)
    why_not = _why_not_in_state if states else None
    decision = _decide(cluster, command.target, command.caller, waiting, end_waiting, end_live, ends, why_not)
    return Decision(decision.events, decision.orders, told)


def _ends_of_post(cluster: Cluster, target: c.Target, now: float, reason: str) -> list[Order]:
    """Orders that end the jobs' own post-execution commands, which ended jobs of the target still wait for."""
    found = (cluster.attempts.get(key) for key in _awaited(cluster, target))
    attempts = [one for one in found if one is not None and one.over and one.lead in one.unreleased]
    serial = serial_of(now, TERMINATE)
    return [
        SignalOrder(one.lead, one.key, TERMINATE, reason, serial)
        for one in attempts
        if is_in_contact(cluster, one, one.lead)
    ]


def _awaited(cluster: Cluster, target: c.Target) -> Iterator[Key]:
    """Attempts of the target whose job has ended, and whose post-execution commands have not."""
    record = cluster.jobs.get(target.job)
    if isinstance(record, ArrayRecord):
        awaited = record.post_awaited
        indices = awaited if target.indices is None else awaited.intersection(target.indices)
        jobs = [job for index in indices if (job := cluster.finished.get((record.id, index))) is not None]
        yield from (job.key for job in jobs)
    elif record is not None and record.end is not None and record.end.post is PostState.AWAITED:
        yield record.key


def told_of(
    cluster: Cluster,
    target: c.Target,
    sentence: Callable[[Cluster, Attempt, float], str],
    states: Collection[JobState],
    now: float,
) -> str:
    """Note to the user about the first job of the target that is out of reach; else empty."""
    record = cluster.jobs.get(target.job)
    found = () if record is None else live_of(record, target.indices)
    attempts = (job.attempt for job in found if job.state in states)
    return next((text for one in attempts if one is not None and (text := sentence(cluster, one, now))), "")


def _killed(cluster: Cluster, attempt: Attempt, now: float) -> str:
    lead = attempt.lead
    if is_in_contact(cluster, attempt, lead):
        return ""
    return f"{lead} is silent: the job ends {when_back(cluster, attempt, [lead], now)}; bkill -r does not wait"


def _removed(cluster: Cluster, attempt: Attempt, _now: float) -> str:
    silent = silent_hosts(cluster, attempt)
    return f"{named(silent)} silent: what runs there may go on, and is killed when the host is back" if silent else ""


def kill_attempt(
    cluster: Cluster, job: Job, attempt: Attempt, now: float, by: str, reason: str, warns: str = ""
) -> list[e.Event]:
    """Events that end one attempt: at once if it was not launched, else by signal, or when its host is back.

    ``warns``: event of the notice that the job gets before the signal.
    """
    if _is_without_command(attempt):
        return [e.JobSignalled(now, attempt.key, 0, by, reason), *end_at_once(attempt, now, reason)]
    if _is_out_of_reach(cluster, job, attempt):
        return [e.JobAbandoned(now, attempt.key, by, reason)]
    return [e.JobSignalled(now, attempt.key, 0, by, reason, warns)]


def _is_out_of_reach(cluster: Cluster, job: Job, attempt: Attempt) -> bool:
    """True if the job's command can't be signalled: its lead host is silent. UNKWN also covers other silent hosts."""
    if attempt.tasks is not None:
        return job.state in (S.UNKWN, S.ZOMBI) and bool(silent_hosts(cluster, attempt))
    return job.state in (S.UNKWN, S.ZOMBI) and not is_in_contact(cluster, attempt, attempt.lead)


def _is_without_command(attempt: Attempt) -> bool:
    """True if nothing runs on the lead host, not yet or not any more, so that no end will be reported."""
    if attempt.tasks is not None:
        return not attempt.launched or not attempt.unreleased
    return not attempt.launched or attempt.lead not in attempt.unreleased


def end_at_once(attempt: Attempt, now: float, reason: str) -> list[e.Event]:
    """Event that ends the job now; its hosts are told to release it and keep their shares until they have."""
    return [
        e.JobFinished(now, attempt.key, r.EXIT_STATUS_KILLED, reason, pid=attempt.pid, started_at=attempt.started_at)
    ]


def signal(cluster: Cluster, command: c.SignalJob, now: float) -> Decision:
    """Send a signal (bkill -s): STOP, TSTP and CONT are bstop and bresume; KILL is sent at once, without the
    sequence."""
    by = command.caller.user
    if command.signal in (STOP, 20):
        return stop(cluster, c.StopJob(command.target, command.caller), now)
    if command.signal == CONT:
        return resume(cluster, c.ResumeJob(command.target, command.caller), now)
    ending = _reason(cluster, command, command.signal == SIGKILL)

    def refuse(job: int, indices: Ranges) -> e.Event:
        if command.signal in _ENDING:
            return e.PendingEnded(now, job, indices, by, ending)
        raise Refused("Job has not started yet")

    def send(job: Job) -> list[e.Event]:
        assert job.attempt is not None
        if _is_out_of_reach(cluster, job, job.attempt):
            raise Refused("Unable to contact execution host")
        if command.signal in _ENDING and _is_without_command(job.attempt):
            return kill_attempt(cluster, job, job.attempt, now, by, ending)
        reason = ending if command.signal == SIGKILL else ""
        return [e.JobSignalled(now, job.key, command.signal, by, reason)]

    ends = _ends_of_post(cluster, command.target, now, ending) if command.signal == SIGKILL else ()
    return _decide(cluster, command.target, command.caller, (S.PEND, S.PSUSP), refuse, send, ends)


def stop(cluster: Cluster, command: c.StopJob, now: float) -> Decision:
    """Stop (bstop): PEND to PSUSP, RUN to USUSP; a job that is being staged is suspended as soon as it has started."""
    by, record = command.caller.user, cluster.jobs.get(command.target.job)
    is_admins = record is not None and not is_owner(record, command.caller)

    def hold(job: int, indices: Ranges) -> e.Event:
        return e.PendingHeld(now, job, indices, by, is_admins)

    def suspend(job: Job) -> list[e.Event]:
        assert job.attempt is not None
        is_live = job.state in (S.STAGING, S.RUN, S.SSUSP)
        if not is_live or BY_USER in job.attempt.suspended:
            return []
        return suspended(job, BY_USER, r.SUSPENDED_BY_ADMIN if is_admins else r.SUSPENDED_BY_USER, by, now)

    return _decide(cluster, command.target, command.caller, (S.PEND,), hold, suspend, why_not=_why_not_stopped)


def resume(cluster: Cluster, command: c.ResumeJob, now: float) -> Decision:
    """Resume (bresume): PSUSP to PEND, USUSP to RUN, or to SSUSP if another cause keeps it suspended.

    What an administrator has suspended is left as it is, unless users may resume it.
    """
    by, record = command.caller.user, cluster.jobs.get(command.target.job)
    may_all = cluster.policy.users_resume or (record is not None and administers(cluster, record, command.caller))
    kept: list[int] = []

    def free(job: int, indices: Ranges) -> e.Event | None:
        terms, chosen = cluster.jobs[job].start_conditions, indices.copy()
        if terms is not None and not may_all:
            chosen.difference_update(terms.admin_held)
        if len(chosen) < len(indices):
            kept.append(job)
        return e.PendingFreed(now, job, chosen, by) if chosen else None

    def go_on(job: Job) -> list[e.Event]:
        assert job.attempt is not None
        causes = job.attempt.suspended
        if BY_USER not in causes or job.state not in (S.STAGING, *SUSPENDED):
            return []
        if causes[BY_USER] == r.SUSPENDED_BY_ADMIN and not may_all:
            kept.append(job.id)
            return []
        return resumed(job, BY_USER, by, now)

    def why_not(record: Job | ArrayRecord, indices: Ranges | None) -> str:
        return _ADMINS if kept else _why_not_resumed(record, indices)

    decision = _decide(cluster, command.target, command.caller, (S.PSUSP,), free, go_on, why_not=why_not)
    return Decision(decision.events, reply="elements that an administrator has suspended stay so" if kept else None)


_ADMINS = "User permission denied: an administrator has suspended the job (ENABLE_USER_RESUME in lsb.params is N)"


def suspended(job: Job, cause: str, reason: str, by: str, now: float) -> list[e.Event]:
    """Event that adds a cause of suspension; ``reason`` is the sentence for users."""
    assert job.attempt is not None, f"{job.key} holds no attempt"
    causes = {*job.attempt.suspended, cause}
    return [e.JobSuspended(now, job.key, _state(job, causes), by, cause, reason)]


def resumed(job: Job, cause: str, by: str, now: float, reason: str = "") -> list[e.Event]:
    """Event that removes a cause of suspension."""
    assert job.attempt is not None, f"{job.key} holds no attempt"
    return [e.JobResumed(now, job.key, by, reason, cause, _state(job, {*job.attempt.suspended} - {cause}))]


def _state(job: Job, causes: set[str]) -> JobState:
    if job.state in (S.STAGING, S.UNKWN):
        return job.state
    if not causes:
        return S.RUN
    return S.USUSP if BY_USER in causes else S.SSUSP


def noted(job: Job, attempt: Attempt, now: float) -> list[e.Event]:
    """Events that put the causes noted during staging into effect, now that the job has started."""
    state = S.USUSP if BY_USER in attempt.suspended else S.SSUSP
    state = S.UNKWN if job.state is S.UNKWN else state
    causes = attempt.suspended.items()
    return [e.JobSuspended(now, attempt.key, state, "", cause, reason) for cause, reason in causes]
