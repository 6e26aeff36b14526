"""Reports of agents. A report about an attempt that is over, unknown or older is dropped; a repeated one changes
nothing.

Dropping is deliberate: agents repeat their newest report until they are told to forget, so a stale one has been
answered before, or is answered by the forget order that goes with it.
"""

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core.cluster import Cluster
from lavad.core.decide.contact import named, silent_hosts
from lavad.core.decide.decision import SYSTEM, Decision
from lavad.core.decide.jobs import control, resize, task_reports
from lavad.core.decide.jobs.requeue import by_exit_code, is_success
from lavad.core.decide.tasks.growth_end import give_growth_up
from lavad.core.model import EXIT_VALUE, JobState, Key, PostState
from lavad.core.model import reasons as r
from lavad.core.model.rules.queues import commands_over
from lavad.core.model.tuples import new as _new
from lavad.core.model.usage import HostUsage
from lavad.core.orders import UNKNOWN, ForgetOrder, LaunchOrder, Order, ReleaseOrder, launch_hosts
from lavad.core.scheduling.placement.feasibility import choices_ever
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Job

S = JobState
SIGKILL = 9


def _held(cluster: Cluster, key: Key, host: str) -> Attempt | None:
    """The attempt, if that host has not released it."""
    attempt = cluster.attempts.get(key)
    return attempt if attempt is not None and host in attempt.unreleased else None


def is_of_earlier_stay(cluster: Cluster, key: Key, host: str, version: int) -> bool:
    """True if the report is from before the host left the attempt; it has joined it again since."""
    attempt = _held(cluster, key, host) if version > 0 else None
    return attempt is not None and version < attempt.joined_with(host)


def _unknown(host: str, key: Key) -> Decision:
    """Orders for an attempt that has no share on that host: end its processes there, and forget it."""
    return Decision(orders=[ReleaseOrder(host, key, UNKNOWN)])


def staged(cluster: Cluster, command: c.ReportStaged, now: float) -> Decision:
    """Note that a host is staged; the launch goes out when the last host has answered: all or nothing."""
    if is_of_earlier_stay(cluster, command.key, command.host, command.version):
        return Decision()
    attempt = _held(cluster, command.key, command.host)
    if attempt is None:
        return _unknown(command.host, command.key)
    if attempt.over:
        return Decision(orders=[ReleaseOrder(command.host, command.key, "the attempt is over")])
    if attempt.is_growing_to(command.host):
        return resize.staged(cluster, attempt, command, now)
    if attempt.launched or command.host in attempt.staged:
        return Decision(orders=_launch_again(cluster, attempt, command.host) if command.again else [])
    decision = Decision([e.HostStaged(now, command.key, command.host, command.tasks, command.address)])
    if attempt.staged | {command.host} == {share.host for share in attempt.allocation}:
        decision.events.append(e.AttemptLaunched(now, command.key))
    return decision


def _launch_again(cluster: Cluster, attempt: Attempt, host: str) -> list[Order]:
    """Launch order for a host that is still staged, because the first order came too late there."""
    is_over = attempt.doomed or attempt.kill_reason or (host == attempt.lead and attempt.started_at)
    if not attempt.launched or is_over or host not in launch_hosts(cluster, attempt):
        return []
    return [LaunchOrder(host, attempt.key, attempt.version)]


def refused(cluster: Cluster, command: c.ReportRefused, now: float) -> Decision:
    """Free the share of a host that refused an order: nothing of it runs there. The job is requeued unless it runs
    elsewhere."""
    if is_of_earlier_stay(cluster, command.key, command.host, command.version):
        return Decision()
    attempt = _held(cluster, command.key, command.host)
    if attempt is None:
        return Decision(orders=[ForgetOrder(command.host, command.key)])
    job = cluster.holder(command.key)
    why = f"{command.host}: {command.reason}"
    if job is None:
        return Decision([e.HostReleased(now, command.key, command.host)])
    if attempt.is_growing_to(command.host):
        return Decision(resize.not_to_be(cluster, attempt, command.host, now, why))
    if command.pre_exec and not (attempt.kill_reason or attempt.doomed):
        return _pre_exec_failed(cluster, job, attempt, command, now, why)
    if attempt.launched and (command.host != attempt.lead or attempt.tasks is not None):
        return part_gone(cluster, job, attempt, command.host, now, why)
    if attempt.started_at:  # a repeated order was refused as outdated: the job has started long ago
        return Decision()
    if command.lacking_status and not (attempt.kill_reason or _has_other_hosts(cluster, job, command, now)):
        return _nowhere(cluster, job, attempt, command, now)
    is_hosts = command.host_fault and not (command.user_unknown or command.lacking)
    avoid_until = now + cluster.policy.avoid_host_s
    decision = never_started(cluster, attempt, command.host, now, why, avoid_until if is_hosts else 0.0)
    if command.user_unknown or command.lacking:
        decision.events.append(e.UserKeptOff(now, job.shared.user, command.host, avoid_until, command.lacking))
    return decision


def _has_other_hosts(cluster: Cluster, job: Job, command: c.ReportRefused, now: float) -> bool:
    """True if hosts that are not known to lack this could take the job, now or when they are up and open again."""
    lacking = {cluster.table.rows[command.host], *cluster.limits.rows_lacking(job.shared.user, command.lacking, now)}
    others = cluster.table.emptied()
    for row in range(len(others.names)):
        others.set_usable(row, row not in lacking)
    return bool(choices_ever(others, job.shared.request))


def _nowhere(cluster: Cluster, job: Job, attempt: Attempt, command: c.ReportRefused, now: float) -> Decision:
    """End a job that asked for something that no host has, and let its user's jobs back on the hosts."""
    user, names = job.shared.user, cluster.table.names
    rows = cluster.limits.rows_lacking(user, command.lacking, now)
    end = e.JobFinished(now, attempt.key, command.lacking_status, command.lacking_term, detail=command.reason)
    back = [e.UserKeptOff(now, user, names[row], now, command.lacking) for row in sorted(rows)]
    return Decision([e.HostReleased(now, attempt.key, command.host), end, *back])


def _pre_exec_failed(
    cluster: Cluster, job: Job, attempt: Attempt, command: c.ReportRefused, now: float, why: str
) -> Decision:
    """Requeue a job whose pre-execution command failed: it waits before the next try, or is held, or ended, as its
    queue says. Its other hosts are released first. It avoids the host from now on if the exit code asks for that."""
    key, host = attempt.key, command.host
    queue = cluster.policy.queue_for(job.shared.queue, job.shared.application)
    rule = commands_over(queue.around, cluster.policy.around) if queue is not None else cluster.policy.around
    is_last = bool(rule.tries_max) and job.retry.failures + 1 >= (rule.tries_max or 0)
    away = host if command.pre_exec_code in (rule.excluding or ()) else ""
    released = e.HostReleased(now, key, host)
    if is_last and rule.exits:
        end = e.JobFinished(now, key, r.EXIT_STATUS_PRE_EXEC, r.TERM_PRE_EXEC_FAIL, detail=why)
        return Decision([released, end])
    if attempt.launched and attempt.unreleased - {host}:
        doom = e.JobDoomed(now, key, why, again=True, hold=is_last, exclude_host=away, pre_exec=command.pre_exec)
        return Decision([doom, released])
    return Decision([released, e.JobRequeued(now, key, why, is_last, exclude_host=away, pre_exec=command.pre_exec)])


RERUNS_MAX = 100  # attempts of a rerunnable job that is lost each time: it, not its hosts, may be the cause


def requeued(attempt: Attempt, now: float, why: str, avoid_host: str = "", avoid_until: float = 0.0) -> e.JobRequeued:
    """Event that requeues the job: as it is, or as the requeue command asked."""
    reason = attempt.doomed if attempt.again else why
    hold, pre_exec = attempt.held_again, attempt.pre_exec
    return e.JobRequeued(now, attempt.key, reason, hold, avoid_host, avoid_until, attempt.excludes, pre_exec)


def never_started(
    cluster: Cluster, attempt: Attempt, host: str, now: float, why: str, avoid_until: float = 0.0, assumed: bool = False
) -> Decision:
    """Requeue a job whose command will not be started on the lead host; end it if it was killed.

    If other hosts may have started tasks, those are ended first: two attempts of a job never overlap.
    """
    key = attempt.key
    decision = Decision([e.HostReleased(now, key, host, assumed)])
    if attempt.kill_reason:
        decision.events.append(e.JobFinished(now, key, r.EXIT_STATUS_KILLED, attempt.kill_reason))
    elif attempt.launched and len(launch_hosts(cluster, attempt)) > 1 and attempt.unreleased - {host}:
        decision.events.append(e.JobDoomed(now, key, why))
        decision.orders.extend(_release_rest(attempt, host, why))
    else:
        decision.events.append(requeued(attempt, now, why, host if avoid_until else "", avoid_until))
    return decision


def part_gone(
    cluster: Cluster, job: Job, attempt: Attempt, host: str, now: float, why: str, is_expected: bool = False
) -> Decision:
    """Decide on a host that has nothing of the attempt any more, while the job has not ended. ``is_expected``: its part
    ended well.

    A job to be repeated waits until every host has released the attempt; one that is not is over with its lead host. An
    elastic one goes on without the host if it can.
    """
    if attempt.tasks is not None and attempt.launched:
        return task_reports.part_gone(cluster, job, attempt, host, now, why)
    key, rest = attempt.key, attempt.unreleased - {host}
    if attempt.leaves_silent:
        rest -= {*silent_hosts(cluster, attempt)}
    if attempt.is_growing_to(host):
        return Decision(give_growth_up(attempt, now, now, why, gone=host))
    decision = Decision([e.HostReleased(now, key, host)])
    if attempt.is_leaving(host) and attempt.lead in rest:
        return decision
    if not attempt.launched:
        decision.events.append(requeued(attempt, now, why))
    elif not rest:
        was_waiting = host != attempt.lead  # the lead host left earlier: only a job to be repeated waits for the others
        decision.events.append(lost(job, attempt, now, why, was_waiting))
    elif host == attempt.lead and not attempt_is_repeated(job, attempt):
        decision.events.append(lost(job, attempt, now, why))
    elif host != attempt.lead and (smaller := resize.go_on_without(cluster, attempt, (host,), why, now)):
        decision.events = [*smaller, *decision.events]
    elif host == attempt.lead:
        if not attempt.doomed:
            decision.events.append(e.JobDoomed(now, key, why))
        decision.orders.extend(_release_rest(attempt, host, why))
    elif not is_expected and not attempt.doomed and not attempt.kill_reason:
        decision.events.append(e.JobDoomed(now, key, why))
    return decision


def _release_rest(attempt: Attempt, host: str, why: str) -> list[Order]:
    return [
        ReleaseOrder(share.host, attempt.key, why)
        for share in attempt.booked
        if share.host != host and share.host in attempt.unreleased
    ]


def started(cluster: Cluster, command: c.ReportStarted, now: float) -> Decision:
    """Note the job's start: its command runs on the lead host; tasks on other hosts do not count."""
    attempt = _held(cluster, command.key, command.host)
    if attempt is None:
        return _unknown(command.host, command.key)
    job = cluster.holder(command.key)
    if job is None or command.host != attempt.lead or attempt.tasks is not None:
        return Decision()
    if job.state is not S.STAGING and (job.state is not S.UNKWN or attempt.resume_state is not S.STAGING):
        return Decision()
    at = _moment(attempt, command.at, now)
    start = e.JobStarted(at, command.key, command.pid, command.exec_home, command.exec_cwd)
    return Decision([start, *(control.noted(job, attempt, now) if attempt.suspended else ())])


def finished(cluster: Cluster, command: c.ReportFinished, now: float) -> Decision:
    """End the job: its command ended on the lead host, whatever other hosts still have to clean up."""
    if is_of_earlier_stay(cluster, command.key, command.host, command.version):
        return Decision()
    attempt = _held(cluster, command.key, command.host)
    if attempt is None:
        return Decision(orders=[ForgetOrder(command.host, command.key)])
    job = cluster.holder_of(attempt)
    if job is not None and attempt.tasks is not None and attempt.launched:
        return task_reports.finished(cluster, job, attempt, command, now)
    is_leads = attempt.launched and command.host == attempt.lead
    if job is not None and not (is_leads and not _is_repeated(job, attempt, command)):
        return _with_usage(_part_ended(cluster, job, attempt, command, now), command.host, command.usage)
    if job is not None and not (attempt.doomed or attempt.kill_reason or command.reason):
        is_wanted, excludes = by_exit_code(cluster, job, attempt, command.status)
        if is_wanted:
            sent_back = _sent_back(attempt, command, command.host if excludes else "", now)
            return _with_usage(sent_back, command.host, command.usage)
        has_failed = command.status and not is_success(cluster, job, command.status)
        silent = [name for name in silent_hosts(cluster, attempt) if name != command.host] if has_failed else []
        why = f"it failed on {command.host} while {named(silent)} silent"
        if silent and attempt_is_repeated(job, attempt):
            return _with_usage(
                _undone(attempt, command, e.JobDoomed(now, command.key, why)), command.host, command.usage
            )
        if silent:  # most likely for want of them
            command = command._replace(reason=why)
    if job is not None and command.reason == r.TERM_CHKPNT and attempt.checkpoints.migrates and not attempt.is_ending:
        moved = _again(attempt, command, r.MIGRATED, attempt.checkpoints.avoided(attempt.lead), now)
        return _with_usage(moved, command.host, command.usage)
    decision = Decision([] if job is None else [_end(cluster, job, attempt, command, now)])
    decision.events.extend(_post_ended(cluster, job is not None, command, now))
    if command.also_released:
        # GPUs may have been used after the end that was reported before.
        usage = command.usage if job is None and command.gpus else None
        decision.events.append(e.HostReleased(now, command.key, command.host, usage=usage))
    return decision


def _post_ended(cluster: Cluster, is_new_end: bool, command: c.ReportFinished, now: float) -> list[e.Event]:
    """Event for the end of a job's post-execution commands, if the report has it and it is news."""
    if command.post not in (PostState.DONE, PostState.ERR):
        return []
    ended = cluster.element(command.key.job, command.key.index)
    is_its = ended is not None and ended.attempts == command.key.attempt
    if ended is None or not is_its or (not is_new_end and (ended.end is None or ended.end.post is command.post)):
        return []
    return [e.PostExecEnded(min(command.posted_at or now, now), command.key, command.post)]


def _with_usage(decision: Decision, host: str, usage: HostUsage | None) -> Decision:
    """Add the usage that the host reported to the event of its release."""
    decision.events = [
        event._replace(usage=usage) if isinstance(event, e.HostReleased) and event.host == host else event
        for event in decision.events
    ]
    return decision


def _sent_back(attempt: Attempt, command: c.ReportFinished, exclude_host: str, now: float) -> Decision:
    """Requeue the job by its exit code, as soon as nothing is left of this attempt; it waits before its next start."""
    why = f"exit code {command.status >> 8 & 0xFF} requeues the job"
    return _again(attempt, command, why, exclude_host, now, EXIT_VALUE)


def _again(
    attempt: Attempt, command: c.ReportFinished, why: str, exclude_host: str, now: float, pre_exec: str = ""
) -> Decision:
    key, rest = command.key, attempt.unreleased - {command.host}
    if command.also_released and not rest:
        released = e.HostReleased(now, key, command.host)
        return Decision([released, e.JobRequeued(now, key, why, exclude_host=exclude_host, pre_exec=pre_exec)])
    doom = e.JobDoomed(now, key, why, again=True, exclude_host=exclude_host, pre_exec=pre_exec)
    return _undone(attempt, command, doom)


def _undone(attempt: Attempt, command: c.ReportFinished, doom: e.JobDoomed) -> Decision:
    """Release the attempt from its hosts; then the job is requeued."""
    decision = Decision([doom])
    if command.also_released:
        decision.events.append(e.HostReleased(doom.at, doom.key, command.host))
    decision.orders.extend(_release_rest(attempt, command.host if command.also_released else "", doom.reason))
    return decision


def _is_repeated(job: Job, attempt: Attempt, command: c.ReportFinished) -> bool:
    """True if the attempt failed as a whole, or was lost with its host, and the job may be repeated."""
    return (bool(attempt.doomed) or command.lost) and attempt_is_repeated(job, attempt)


def attempt_is_repeated(job: Job, attempt: Attempt) -> bool:
    """True if the job may be requeued should this attempt fail as a whole."""
    return (job.shared.rerunnable or attempt.again) and not attempt.kill_reason


def _part_ended(cluster: Cluster, job: Job, attempt: Attempt, command: c.ReportFinished, now: float) -> Decision:
    """Decide on an end that is not the job's: of another host's part, or of an attempt to be repeated or never
    launched."""
    if attempt.launched and command.host != attempt.lead and command.reason.startswith(r.LIMITS_OF_HOSTS):
        return _part_at_limit(attempt, command, now)
    why = attempt.doomed or f"{command.host}: {command.reason or 'its part of the job has failed'}"
    is_expected = command.status == 0 and command.host != attempt.lead
    is_expected = is_expected or attempt.share_on(command.host) is None  # given up, or not grown to yet
    if command.also_released:
        return part_gone(cluster, job, attempt, command.host, now, why, is_expected)
    if not attempt.launched:
        return Decision([requeued(attempt, now, why)])
    if command.host == attempt.lead:
        return Decision(orders=_release_rest(attempt, "", why))
    if is_expected or attempt.doomed or attempt.kill_reason:
        return Decision()
    smaller = resize.go_on_without(cluster, attempt, (command.host,), why, now)
    return Decision(smaller or [e.JobDoomed(now, command.key, why)])


def _part_at_limit(attempt: Attempt, command: c.ReportFinished, now: float) -> Decision:
    decision = Decision(_ended_by_limit(attempt, command.reason, now))
    if command.also_released:
        decision.events.append(e.HostReleased(now, command.key, command.host))
    return decision


def _ended_by_limit(attempt: Attempt, reason: str, now: float) -> list[e.Event]:
    """End the whole job, as when its first host reaches the limit: at once, and without a requeue."""
    return [] if attempt.is_ending else [e.JobSignalled(now, attempt.key, SIGKILL, SYSTEM, reason)]


def limit_reached(cluster: Cluster, command: c.ReportLimit, now: float) -> Decision:
    """End a job of which another host than the lead has reached a limit."""
    if is_of_earlier_stay(cluster, command.key, command.host, command.version):
        return Decision()
    attempt = _held(cluster, command.key, command.host)
    if attempt is None or cluster.holder_of(attempt) is None or not attempt.launched:
        return Decision()
    return Decision(_ended_by_limit(attempt, command.reason, now))


def progressed(cluster: Cluster, command: c.ReportProgress, now: float) -> Decision:
    """Keep a running job's progress."""
    attempt = _held(cluster, command.key, command.host)
    if attempt is None or cluster.holder_of(attempt) is None:
        return Decision()
    return Decision([e.ProgressReported(now, command.key, command.progress)])


def _end(cluster: Cluster, job: Job, attempt: Attempt, command: c.ReportFinished, now: float) -> e.Event:
    reason = attempt.kill_reason or command.reason or attempt.doomed
    if command.status and not reason and is_success(cluster, job, command.status):
        reason = r.SUCCESS_EXIT.format(command.status >> 8)
    status = 0 if reason in r.RECORDED_DONE else command.status
    began_at, ended_at = _span(attempt, command, now)
    return _new(
        e.JobFinished,
        (
            ended_at,
            attempt.key,
            status,
            reason if status or not attempt.kill_reason or reason.startswith(r.TOLD_LIMITS) else "",
            command.cpu_s,
            command.memory_mib_max,
            command.pid,
            began_at,
            command.detail,
            command.user_s,
            command.system_s,
            command.memory_mib_mean,
            command.seconds,
            command.exec_home,
            command.exec_cwd,
            command.others,
            command.lost,
            command.gpus,
            PostState.AWAITED if command.post else PostState.NONE,
        ),
    )


def _span(attempt: Attempt, command: c.ReportFinished, now: float) -> tuple[float, float]:
    """Start and end of the job by the master's clock; between them lies the time that the host measured."""
    if not command.started_at:
        return command.started_at, _moment(attempt, command.at, now)
    ran_s = max(0.0, command.at - command.started_at)
    began_at = attempt.started_at or min(_moment(attempt, command.started_at, now), max(now - ran_s, 0.0))
    began_at = max(began_at, attempt.dispatched_at)
    return began_at, min(began_at + ran_s, now)


def _moment(attempt: Attempt, at: float, now: float) -> float:
    """The host's time of an event, bounded by what is known here: its clock may be wrong."""
    return min(max(at, attempt.dispatched_at, attempt.started_at), now)


def released(cluster: Cluster, command: c.ReportReleased, now: float) -> Decision:
    """Release the host. A lead host that releases a job without having reported its end has lost it."""
    if is_of_earlier_stay(cluster, command.key, command.host, command.version):
        return Decision()
    attempt = _held(cluster, command.key, command.host)
    if attempt is None:
        return Decision(orders=[ForgetOrder(command.host, command.key)])
    job = cluster.holder(command.key)
    if job is None:
        return Decision([e.HostReleased(now, command.key, command.host, usage=command.usage)])
    why = f"{command.host} released the job without telling its end"
    return _with_usage(part_gone(cluster, job, attempt, command.host, now, why), command.host, command.usage)


def lost(job: Job, attempt: Attempt, now: float, why: str, again: bool = False) -> e.Event:
    """Event for an attempt that does not run any more and whose end is unknown: a requeue if allowed, else EXIT."""
    is_endless = attempt.key.attempt >= RERUNS_MAX and not attempt.again
    if (attempt_is_repeated(job, attempt) or (again and not attempt.kill_reason)) and not is_endless:
        return requeued(attempt, now, attempt.doomed or why)
    reason = attempt.kill_reason or (r.TERM_RERUNS.format(RERUNS_MAX) if is_endless else r.TERM_HOST_LOST)
    return e.JobFinished(
        now, attempt.key, r.EXIT_STATUS_LOST, reason, pid=attempt.pid, started_at=attempt.started_at, detail=why,
        is_lost=True,
    )  # fmt: skip
