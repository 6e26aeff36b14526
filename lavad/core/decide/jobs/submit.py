"""Submission and modification of jobs."""

from dataclasses import replace
from typing import NamedTuple

from lavad.core import commands as c
from lavad.core.apply.enqueue import waiting_counts
from lavad.core.cluster import Cluster
from lavad.core.decide.decision import Decision, check_owner
from lavad.core.decide.jobs.admission import (
    admitted,
    check_application,
    check_group,
    check_hosts,
    check_process_limits,
    check_queue,
    check_request,
    check_reservation,
    check_service_class,
    check_share,
    check_user,
    check_waiting,
    check_waiting_larger,
    combined_with_queue,
    fitted,
    known_admission,
    run_limit_in,
    with_queue_limits,
)
from lavad.core.decide.jobs.changes.elements import check_fields, left_of, parts_of, without_common
from lavad.core.decide.jobs.changes.memory import with_other_memory
from lavad.core.decide.jobs.control import live_of
from lavad.core.decide.jobs.dependencies import resolve
from lavad.core.decide.jobs.job_groups import new_groups
from lavad.core.decide.jobs.run_windows import may_run, run_window_events
from lavad.core.events import JobModified, JobSubmitted, NewJob
from lavad.core.language.dependency import Expression, parse
from lavad.core.language.dependency_cycles import waits_for_itself
from lavad.core.model import AS_STARTED, FINAL, Request, RunChange, Shared
from lavad.core.model.ranges import Ranges
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.queues import Queue
from lavad.core.orders import spec_defaults
from lavad.core.state.jobs.job_names import name_of
from lavad.core.state.records import ArrayRecord, Job


class Submitted(NamedTuple):
    """Reply to a submission."""

    job: int
    queue: str
    is_known: bool = False  # the request id is known: this is its job


def submit(cluster: Cluster, command: c.SubmitJob, now: float) -> Decision:
    """Submit a job. A request id that this user has used before gets the job of then, so that a retry is safe."""
    known = cluster.request_ids.get((command.job.shared.user, command.job.request_id))
    if known is not None:
        record = cluster.jobs.get(known)
        return Decision(reply=Submitted(known, record.shared.queue if record else "", True))
    new = command.job
    if new.absolute.kind:
        raise Refused("An absolute priority is set of a pending job, by an administrator: bmod -aps")
    if command.has_unique_name:
        _check_name(cluster, new)
    admission = known_admission(cluster, new.shared, command.caller, command.asked)
    asked_for = admission or combined_with_queue(cluster, new.shared, command.asked)
    check_reservation(cluster, asked_for.request, asked_for.user)
    check_array(cluster, new.indices, asked_for.request)
    priority = priority_of(cluster, new, command.caller)
    shared = admission or admitted(cluster, new.shared, asked_for, command.caller, command.asked)
    if cluster.counters.waiting:
        check_waiting(cluster, new, shared)
    condition = resolved(cluster, new) if new.dependency else None
    groups = new_groups(cluster, shared, command.caller, now) if shared.job_group else ()
    job = new._replace(id=cluster.next_job, shared=shared, priority=priority, condition=condition)
    return Decision([*groups, JobSubmitted(now, job)], reply=Submitted(job.id, job.shared.queue))


def _check_name(cluster: Cluster, new: NewJob) -> None:
    """Refuse a job while another one of its user has its name and has not ended."""
    name = name_of(new.text)
    for number in cluster.names.find(new.shared.uid, name, False, cluster.jobs.values()) if name else ():
        record = cluster.jobs[number]
        is_over = record.is_over if isinstance(record, ArrayRecord) else record.state in FINAL
        if not is_over and name_of(record.text) == name:  # a command's name is none that was given
            raise Refused(f"Your job <{number}> of the name {name} has not ended yet; -J gives this one another")


def resolved(cluster: Cluster, new: NewJob, modified: Job | ArrayRecord | None = None) -> Expression:
    """The dependency condition of a submission with ids for names.

    Raises:
        Refused: bad syntax, or a job that does not exist.
    """
    own = Ranges(new.indices) if new.indices else None
    if own is None and isinstance(modified, ArrayRecord):
        own = modified.indices
    replaced = modified.id if modified is not None else 0
    return resolve(cluster, parse(new.dependency or ""), new.shared, own, replaced)


def priority_of(cluster: Cluster, new: NewJob, caller: c.Caller) -> int:
    """User priority of the job: half of the highest by default; only administrators exceed that."""
    highest = cluster.policy.user_priority_max
    if not new.priority:
        return highest // 2
    if not highest:
        raise Refused("Job priority control undefined")
    if new.priority < 0 or (new.priority > highest and not caller.is_administrator):
        raise Refused(f"Bad user priority: it is 1 to {highest} here")
    return new.priority


def check_array(cluster: Cluster, indices: tuple[range, ...], request: Request) -> None:
    """Refuse index lists out of bounds."""
    if not indices:
        return
    if any(not part or part.step < 1 for part in indices):
        raise Refused("Job array index error: an index list holds n, n-m or n-m:step with n <= m")
    if any(part.start < 1 for part in indices):
        raise Refused("Job array index error: indices start at 1")
    _check_resizable_is_single(indices, request)
    largest = max(part[-1] for part in indices)
    if largest > cluster.policy.max_array_size:
        raise Refused(f"Job array index too large: the largest here is {cluster.policy.max_array_size}")


def _check_resizable_is_single(indices: tuple[range, ...], request: Request) -> None:
    if indices and any(role.resizable for role in request.roles):
        raise Refused("-ar: a job array can't be resizable")


def modify(cluster: Cluster, command: c.ModifyJob, now: float) -> Decision:
    """Change a pending job (bmod; an array: its pending elements), or what can be changed of a running one."""
    record = cluster.jobs.get(command.target.job)
    if record is None:
        raise Refused("No matching job found")
    check_owner(record, command.caller)
    elements = _elements_of(record, command)
    whole = record
    if elements is not None:
        record = cluster.bearer(record.id, elements.first())
        command = replace(command, elements=elements, fields=without_common(command.fields))
    shared = combined_with_queue(cluster, command.job.shared, command.asked)
    command = replace(command, job=command.job._replace(shared=shared))
    _check_modifiable(whole, command)
    running = _running_of(whole, elements)
    if running is not None and not command.is_whole:
        _check_running(command)
        return _modify_running(cluster, running, command, now)
    check_request(cluster, command.job.shared.request)
    _check_resizable_is_single(command.job.indices, command.job.shared.request)
    if "user_group" in command.fields:
        check_group(cluster, command.job.shared)
    if "application" in command.fields:
        check_application(cluster, command.job.shared)
    if "reservation" in command.fields:
        check_reservation(cluster, command.job.shared.request, record.shared.user)
    queue = _queue_of_changed(cluster, record, command)
    if command.fields & {"service_class", "queues", "application"}:
        check_service_class(cluster, command.job.shared, queue.name)
    if command.fields & {"queues", "hosts"}:
        check_hosts(cluster, queue, command.job.shared.request)
    dependency = command.job.dependency if "dependency" in command.fields else None
    condition = None
    if dependency:
        condition = resolved(cluster, command.job, record)
        if waits_for_itself(cluster.dependants.conditions, record.id, condition):
            raise Refused(f"Job <{record.id}> would wait for itself")
    shared = fitted(cluster, command.job.shared, queue, command.asked)
    if cluster.counters.waiting:
        check_waiting_larger(cluster, record.shared, shared, _count_of(record) if elements is None else len(elements))
    if "absolute_priority" in command.fields:
        _check_absolute(cluster, queue, command.caller)
    if elements is not None:  # its group is the array's
        shared = replace(shared, job_group=whole.shared.job_group)
    if running is not None:
        shared = replace(shared, request=record.shared.request, requirement=record.shared.requirement)
    priority = record.priority  # above the highest, if an administrator set it
    if command.job.priority != priority:
        priority = priority_of(cluster, command.job, command.caller)
    job = command.job._replace(id=record.id, shared=shared, priority=priority, dependency=dependency)
    return _modified(cluster, whole, record.shared.queue, job._replace(condition=condition), command, now)


def _check_absolute(cluster: Cluster, queue: Queue, caller: c.Caller) -> None:
    """Refuse an absolute priority of a job whose queue has none, or set by others than administrators."""
    if not caller.is_administrator and caller.user not in queue.administrators:
        raise Refused("User permission denied")
    if queue.name not in cluster.absolute.rules:
        raise Refused(f"Queue <{queue.name}> does not have APS_PRIORITY")


def _queue_of_changed(cluster: Cluster, record: Job | ArrayRecord, command: c.ModifyJob) -> Queue:
    """Queue that the job is to be in. Without -q it stays in its queue, whatever has become of that queue since."""
    before = record.shared
    name = command.job.shared.queue if "queues" in command.fields else before.queue
    queue = cluster.policy.queue_for(name, command.job.shared.application)
    if queue is None or name != before.queue:
        check_queue(cluster, name)
        assert queue is not None, f"there is no queue {name}"
        check_user(queue, c.Caller(before.user, before.uid, command.caller.is_administrator))
    return queue


_LIMITS = {"run_limit_s": "run_limit_s", "terminate_time": "terminate_at", "memory_limit_mib": "memory_limit_mib"}
PERIOD = "checkpoint.period_s"  # bchkpnt -p
CPU_LIMIT = "rlimits.cpu"
FILES = frozenset({"output", "output_overwrite", "error", "error_overwrite"})
_WHILE_RUNNING = frozenset(
    {"queues", "rerunnable", "not_rerunnable", "description", "name", "runtime_estimate_s", "reservation", *_LIMITS}
    | {"roles.requirement", "requirement_text", PERIOD, CPU_LIMIT, *FILES}
)


def _check_modifiable(record: Job | ArrayRecord, command: c.ModifyJob) -> None:
    if isinstance(record, ArrayRecord) and "job_group" in command.fields and record.live:
        raise Refused("Some elements of the job array have started; a job group is changed of pending jobs only")
    if isinstance(record, Job) and "array_limit" in command.fields:
        raise Refused("The job is not an array")
    is_over = record.is_over if isinstance(record, ArrayRecord) else record.end is not None
    if is_over:
        raise Refused("Job has already finished")


def _check_running(command: c.ModifyJob) -> None:
    """Refuse a change of what can't be changed of a job that holds hosts."""
    may_change = _WHILE_RUNNING | {"hosts"} if command.migrates else _WHILE_RUNNING
    if not command.fields <= may_change:
        raise Refused(
            "Job has already started: of a running job only -W, -We, -M, -c, -o, -e, -t, -q, -r, -J, -Jd and the "
            "memory of -R can be changed"
        )


def _elements_of(record: Job | ArrayRecord, command: c.ModifyJob) -> Ranges | None:
    """Elements to change by themselves; None: the job, or its array."""
    if isinstance(record, Job):
        if command.target.indices is not None:
            raise Refused("Job array index error: the job is not an array")
        return None
    chosen = command.elements
    if chosen is None and command.target.indices is not None:
        first, *others = parts_of(record, command.target.indices)
        if first.indices is not None and others:
            raise Refused("These elements have different parameters: change one at a time")
        chosen = first.indices
    if chosen is None:
        return None
    if not command.is_whole:
        check_fields(command.fields)
    if record.shared.tasks is not None and not command.is_whole:
        raise Refused("Elements of a job array with tasks that are started one by one can't be changed by themselves")
    return left_of(record, chosen)


def _running_of(record: Job | ArrayRecord, elements: Ranges | None) -> Job | None:
    """The job that is to be changed while it holds hosts."""
    if isinstance(record, Job):
        return record if record.attempt is not None else None
    running = [record.live[index] for index in elements or () if index in record.live]
    return running[0] if running else None


def _count_of(record: Job | ArrayRecord) -> int:
    """Number of pending jobs that have the record's parameters."""
    return sum(count for _, count in waiting_counts(record)) if isinstance(record, ArrayRecord) else 1


def _modify_running(cluster: Cluster, job: Job, command: c.ModifyJob, now: float) -> Decision:
    """Change a job that holds hosts: its queue, limits and memory, not its size."""
    wanted = command.job.shared
    queue = _queue_of_changed(cluster, job, command)
    shared = replace(job.shared, queue=queue.name, rerunnable=wanted.rerunnable, environment=wanted.environment)
    if queue.name != job.shared.queue:  # its own, else the new queue's; its other limits stay
        shared = replace(shared, run_limit_s=run_limit_in(queue, wanted.run_limit_s))
    limits = {name: getattr(wanted, name) for field, name in _LIMITS.items() if field in command.fields}
    if limits:
        shared = with_queue_limits(replace(shared, **limits), queue)
    if "roles.requirement" in command.fields:
        changed = with_other_memory(cluster, job, command.asked, queue, now)
        shared = replace(shared, request=changed.request, requirement=changed.requirement)
    if "hosts" in command.fields:
        check_hosts(cluster, queue, wanted.request)
        shared = replace(shared, request=replace(shared.request, hosts=wanted.request.hosts))
    if PERIOD in command.fields:
        period_s = wanted.special.checkpoint_period_s
        shared = replace(shared, special=replace(shared.special, checkpoint_period_s=period_s))
    if "reservation" in command.fields:
        _check_leaving(cluster, job, wanted.request.reservation, now)
        shared = replace(shared, request=replace(shared.request, reservation=""))
    check_share(cluster, shared)
    command = replace(command, run=_run_change(job, command, shared, queue))
    new = command.job._replace(id=job.id, shared=shared, dependency=None, priority=job.priority)
    return _modified(cluster, job.array or job, job.shared.queue, new, command, now)


def _run_change(job: Job, command: c.ModifyJob, shared: Shared, queue: Queue) -> RunChange:
    """Return the change of a run besides its limits: its CPU limit, without -c that of its queue, and its files.

    Raises:
        Refused: the queue has a smaller limit, or the job has no output file.
    """
    run = command.run
    if run.cpu_limit_s is not None:
        check_process_limits(queue, {"cpu": run.cpu_limit_s})
        usual = dict(spec_defaults(shared, queue).process_limits).get("cpu", 0)
        run = run._replace(cpu_limit_s=run.cpu_limit_s or usual)
    if run.files is not None and (shared.tasks is not None or shared.special.interactive):
        raise Refused("Job has already started: where its output goes can't be changed any more")
    if run.files is not None and not (job.words["output"] and run.files.output):
        raise Refused("Job has already started: its output file can be changed, neither added nor taken away")
    return run


def _check_leaving(cluster: Cluster, job: Job, wanted: str, now: float) -> None:
    """Refuse to leave a reservation while it is active: till then the job uses its slots."""
    if wanted:
        raise Refused("Job has already started")
    if cluster.reserved.holds(cluster, job.shared.request.reservation, now):
        raise Refused(f"Reservation <{job.shared.request.reservation}> is active; the job runs in it")


def _modified(
    cluster: Cluster, record: Job | ArrayRecord, old_queue: str, new: NewJob, command: c.ModifyJob, now: float
) -> Decision:
    """Events of the change: job groups that are new, the change, and what the run windows of the new queue cause."""
    queue = new.shared.queue
    switched_to = queue if command.is_switch else ""
    groups = new_groups(cluster, new.shared, command.caller, now) if new.shared.job_group else ()
    run = AS_STARTED if command.is_whole else command.run  # of an array, no element that runs gets other files
    event = JobModified(now, new, command.caller.user, command.changes, switched_to, run=run)
    if command.elements is not None and isinstance(record, ArrayRecord):
        event = replace(event, indices=command.elements, part=record.newest_part + 1)
    decision = Decision([*groups, event])
    if queue != old_queue:
        for job in live_of(record, command.elements):
            if job.attempt is not None and (command.elements is not None or not job.part):
                decision.events += run_window_events(cluster, job, queue, may_run(cluster, queue), now)
    return decision
