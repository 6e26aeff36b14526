"""Reports of hosts about the tasks of a job, and parts of such a job that are gone.

No host of it leads the others: what is gone with one are its tasks, and the job's rules say what that means. Of a
report only what changes a task becomes an event.
"""

from collections.abc import Iterable

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core import task_events as t
from lavad.core.cluster import Cluster
from lavad.core.decide.contact import is_in_contact_without, silent_hosts
from lavad.core.decide.decision import SYSTEM, Decision
from lavad.core.decide.jobs import control
from lavad.core.decide.tasks.growth_end import give_growth_up
from lavad.core.model import JobState
from lavad.core.model import reasons as r
from lavad.core.model.task_rules import TaskKey, TaskPhase
from lavad.core.model.task_values import TaskReport
from lavad.core.model.usage import HostUsage
from lavad.core.orders import UNKNOWN, Order, ReleaseOrder, task_order
from lavad.core.state.attempts import Attempt
from lavad.core.state.records import Job
from lavad.core.state.tasks import ALIVE, JobTasks, TaskRecord

P = TaskPhase
SIGKILL = 9


def reported(cluster: Cluster, command: c.ReportTasks, now: float) -> Decision:
    """Take over states of tasks; the first one that runs starts the job."""
    attempt = cluster.attempts.get(command.key)
    if attempt is None or command.host not in attempt.unreleased:
        return Decision(orders=[ReleaseOrder(command.host, command.key, UNKNOWN)])
    job = cluster.holder_of(attempt)
    if job is None or job.tasks is None:
        return Decision()
    tasks = job.tasks
    told = [state for state in command.states if _is_news(tasks, command.host, state)]
    news = tuple([_bounded(attempt, tasks.records[state.task], state, now) for state in told])
    decision = Decision(orders=_orders_again(attempt, tasks, command.host, command.states))
    if news:
        failed = tuple([one.task for one in news if one.phase is P.EXITED and not tasks.records[one.task].stopped])
        states = t.TasksReported(now, command.key, command.host, news, failed)
        decision.events = [*_start(job, attempt, news, now), states]
    return decision


def _is_news(tasks: JobTasks, host: str, state: TaskReport) -> bool:
    """True if the state is newer than what is known of the task."""
    record = tasks.records.get(state.task)
    if record is None or state.order_again or not tasks.has_run(state.task):
        return False
    if record.host != host or state.run < record.run:
        return False
    if state.run > record.run:  # of a start that the database has lost
        return True
    if state.phase is P.RUNNING:
        return record.phase is P.STARTING or (record.phase is P.STOPPING and bool(state.pid) and not record.pid)
    return record.phase in ALIVE


def _bounded(attempt: Attempt, known: TaskRecord, state: TaskReport, now: float) -> TaskReport:
    """The state with times that are possible here, and the run time that the host measured: its clock may be wrong."""
    ran_s = max(0.0, state.ended - state.started) if state.started and state.ended else 0.0
    started = min(max(state.started, attempt.dispatched_at), now - ran_s) if state.started else 0.0
    if state.started and known.run == state.run and known.started:
        started = known.started
    ended = min(max(started + ran_s if started else state.ended, attempt.dispatched_at), now)
    return state._replace(started=started, ended=0.0 if state.phase is P.RUNNING else ended)


def _start(job: Job, attempt: Attempt, news: Iterable[TaskReport], now: float) -> list[e.Event]:
    """Event of the job's start with the first of its tasks."""
    is_staging = job.state is JobState.STAGING
    if not is_staging and (job.state is not JobState.UNKWN or attempt.resume_state is not JobState.STAGING):
        return []
    first = next((one for one in news if one.pid), None)
    if first is None:
        return []
    start = e.JobStarted(first.started or now, attempt.key, first.pid)
    return [start, *(control.noted(job, attempt, now) if attempt.suspended else ())]


def _orders_again(attempt: Attempt, tasks: JobTasks, host: str, states: Iterable[TaskReport]) -> list[Order]:
    """Orders for starts that came too late at the host."""
    late = [
        one.task
        for one in states
        if one.order_again and (record := tasks.records.get(one.task)) is not None and record.run == one.run
    ]
    start = [key for key in late if _is_to_start(tasks, key) and not attempt.is_ending]
    stop = [key for key in late if tasks.records[key].phase is P.STOPPING or attempt.is_ending]
    return [task_order(attempt, tasks, host, start, stop)] if start or stop else []


def _is_to_start(tasks: JobTasks, key: TaskKey) -> bool:
    """True if the host is to have the task's run; it says nothing of the start of one without a command."""
    phase = tasks.records[key].phase
    return phase is P.STARTING or (phase is P.RUNNING and tasks.is_held(key))


def compared(cluster: Cluster, name: str, one: c.HeldAttempt, now: float) -> Decision:
    """Reconcile the tasks on a host that opens a session: take over their states, order again what it lacks."""
    attempt = cluster.attempts.get(one.key)
    job = cluster.holder_of(attempt) if attempt is not None else None
    if attempt is None or job is None or job.tasks is None or name not in attempt.unreleased:
        return Decision()
    decision = reported(cluster, c.ReportTasks(name, one.key, one.tasks), now) if one.tasks else Decision()
    if not attempt.launched:
        return decision
    tasks, held = job.tasks, {state.task: state for state in one.tasks}
    start, stop = [], []
    for key in tasks.on_host(name):
        record, state = tasks.records[key], held.get(key)
        is_known = state is not None and state.run >= record.run
        if not tasks.has_run(key) or not (record.phase is P.STOPPING or _is_to_start(tasks, key)):
            continue
        is_ending = record.phase is P.STOPPING or attempt.is_ending
        if not is_ending and not is_known:
            start.append(key)
        elif is_ending and (not is_known or (state is not None and state.phase is P.RUNNING)):
            stop.append(key)
    if start or stop:
        decision.orders.append(task_order(attempt, tasks, name, start, stop))
    return decision


# -- parts that are gone -----------------------------------------------------------------------------------------------


def part_gone(
    cluster: Cluster, job: Job, attempt: Attempt, host: str, now: float, why: str, usage: HostUsage | None = None
) -> Decision:
    """Decide on a host that has nothing of the attempt any more: its tasks are lost.

    An attempt that is to be repeated is over with its last host; of any other the rules decide in the same step.
    """
    key, rest = attempt.key, attempt.unreleased - {host}
    if attempt.is_growing_to(host) and not attempt.is_ending:
        return Decision(give_growth_up(attempt, now, now, why, gone=host))
    if attempt.leaves_silent:
        rest -= {*silent_hosts(cluster, attempt)}
    events: list[e.Event] = [*_lost(job, attempt, host, now, why), e.HostReleased(now, key, host, usage=usage)]
    if job.state is JobState.UNKWN and not attempt.is_ending and is_in_contact_without(cluster, attempt, host):
        events.append(e.JobFound(now, key))
    if attempt.doomed and not attempt.kill_reason and not rest:
        events.append(
            e.JobRequeued(
                now, key, attempt.doomed, attempt.held_again, exclude_host=attempt.excludes, pre_exec=attempt.pre_exec
            )
            if attempt.again or job.shared.rerunnable
            else e.JobFinished(now, key, r.EXIT_STATUS_LOST, r.TERM_HOST_LOST, detail=why, is_lost=True)
        )
    return Decision(events)


def _lost(job: Job, attempt: Attempt, host: str, now: float, why: str) -> list[e.Event]:
    """Event for a host that has taken tasks with it, or the places of tasks that may have to run again."""
    assert job.tasks is not None, f"{attempt.key} has no tasks"
    here = [record for record in job.tasks.records.values() if host in (record.host, record.joins)]
    is_ending = attempt.is_ending or job.tasks.verdict is not None
    is_any = any(record.phase in ALIVE or record.phase is P.WAITING for record in here)
    return [t.TasksLost(now, attempt.key, host, why)] if is_any or (here and not is_ending) else []


def finished(cluster: Cluster, job: Job, attempt: Attempt, command: c.ReportFinished, now: float) -> Decision:
    """Decide on the end of one host's part, which only the master asks for, or a limit or an accident brings about.

    A limit that holds for the whole job ends it.
    """
    why = f"{command.host}: {command.reason or 'its part of the job has ended'}"
    events: list[e.Event] = []
    if command.reason.startswith("TERM_") and not attempt.is_ending and not command.lost:
        events.append(e.JobSignalled(now, attempt.key, SIGKILL, SYSTEM, command.reason))
    if command.also_released:
        gone = part_gone(cluster, job, attempt, command.host, now, why, command.usage)
        return Decision([*events, *gone.events], gone.orders)
    release = ReleaseOrder(command.host, attempt.key, "its part of the job has ended")
    return Decision([*events, *_lost(job, attempt, command.host, now, why)], [release])
