"""Orders to agents, sent once the event is durable.

Orders are data and complete: the driver adds the job's spec, which the core does not hold, and sends them. Each has the
attempt's key, so that repeating one is safe.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from lavad.core import events as e
from lavad.core import task_events as t
from lavad.core.activity_events import CheckpointAsked, JobHangs
from lavad.core.language import exit_values
from lavad.core.language.requirements.affinity import Affinity
from lavad.core.language.requirements.gpu import GpuRequirement
from lavad.core.language.requirements.parsed import all_roles, wants_of
from lavad.core.model import (
    AS_STARTED,
    Allocation,
    HostShare,
    JobState,
    Key,
    Launch,
    Request,
    RoleRequest,
    limits_of,
    serial_of,
)
from lavad.core.model.allocation import grown
from lavad.core.model.gpu_use import GpuIdleRule
from lavad.core.model.rules.queues import Queue, commands_over
from lavad.core.model.task_rules import TaskKey, TaskPhase
from lavad.core.model.task_values import RolePart
from lavad.core.model.tuples import new as _new
from lavad.core.notices import LEAVE_SERIAL, NoticeOrder, RevokeOrder, leaving_notices, notice_of, time_of_queue
from lavad.core.order_kinds import (
    AttemptOrder,
    AttemptSetup,
    Binding,
    CheckpointOrder,
    ForgetOrder,
    GpuSetup,
    HostDetails,
    LaunchOrder,
    LimitsOrder,
    Order,
    ReleaseOrder,
    ResizeOrder,
    SignalOrder,
    SpecDefaults,
    StacksOrder,
    StageOrder,
    TasksOrder,
    spec_defaults,
)
from lavad.core.scheduling.placement.cpus import bound, nodes_of
from lavad.core.state.tasks import JobTasks

if TYPE_CHECKING:
    from lavad.core.cluster import Cluster
    from lavad.core.state.attempts import Attempt

# Defined in a module of their own, and known by this one.
__all__ = [
    "AttemptOrder",
    "AttemptSetup",
    "Binding",
    "CheckpointOrder",
    "ForgetOrder",
    "GpuSetup",
    "HostDetails",
    "LaunchOrder",
    "LimitsOrder",
    "Order",
    "ReleaseOrder",
    "ResizeOrder",
    "SignalOrder",
    "SpecDefaults",
    "StacksOrder",
    "StageOrder",
    "TasksOrder",
    "spec_defaults",
]

LEFT = "the job gave this host up"
UNKNOWN = "the master has no such attempt"
_NO_QUEUE = Queue("")
STACKS_S = 60.0  # for a host to save the stacks of a job's processes
TERMINATE = 0  # as a signal number: INT, TERM, KILL with the cluster's interval


def orders_for(cluster: "Cluster", event: e.Event) -> Iterator[Order]:
    """Orders that follow from an event, in the state after it was applied."""
    match event:
        case e.PendingEnded() | e.JobSubmitted():  # a command may make thousands, and each case costs 0.2 us
            return
        case e.AttemptDispatched():
            begun = cluster.attempts[event.key]
            if not begun.over:
                yield from stage_orders(cluster, begun)
        case e.AttemptLaunched():
            yield from launch_orders(cluster, cluster.attempts[event.key])
        case _ if isinstance(event, TaskOrderEvent):
            attempt = cluster.attempts.get(event.key)
            if attempt is not None and attempt.tasks is not None and not attempt.over:
                yield from _orders_of_tasks(attempt, attempt.tasks, event)
        case e.JobSignalled():
            attempt = cluster.attempts.get(event.key)
            if attempt is not None and not attempt.over:
                serial = serial_of(event.at, event.signal)
                yield from _signal_orders(cluster, attempt, event.signal, event.reason, serial)
        case e.JobAbandoned():  # hosts in contact end their parts now
            attempt = cluster.attempts.get(event.key)
            if attempt is not None and not attempt.over and attempt.last_signal is not None:
                yield from _signal_orders(cluster, attempt, *attempt.last_signal)
        case e.JobSuspended(state=state) | e.JobResumed(state=state) if state is not JobState.STAGING:
            attempt = cluster.attempts.get(event.key)
            if attempt is not None and not attempt.over and attempt.last_signal is not None:
                yield from _signal_orders(cluster, attempt, *attempt.last_signal)
        case JobHangs():
            yield from stacks_orders(cluster.attempts[event.key])
        case CheckpointAsked():
            yield from checkpoint_orders(cluster.attempts[event.key])
        case e.JobDoomed():
            attempt = cluster.attempts.get(event.key)
            if attempt is not None and not attempt.over:
                yield from doom_orders(cluster, attempt)
        case e.AttemptGrowing() | e.AttemptResized() | e.ResizeNoted() | t.ResizeAcknowledged() | t.PartsFreed():
            attempt = cluster.attempts.get(event.key)
            if attempt is not None and not attempt.over:
                yield from _resize_orders(cluster, attempt, event)
        case e.JobModified():
            for attempt in cluster.attempts_of(event.job.id):
                for host in attempt.unreleased:
                    yield from limits_orders(cluster, attempt, host)
        case e.JobFinished() | e.JobRequeued():
            yield from _release_orders(cluster, event)
        case e.HostRevoked():
            yield _revoke_order(cluster, event.host, event.at)
        case e.HostOpened():
            yield _revoke_order(cluster, event.host, event.at)
            if not cluster.hosts[event.host].leaves_at:
                yield from _releases_again(cluster, event.host)
        case e.HostReleased(assumed=True):
            yield ReleaseOrder(event.host, event.key, "the attempt was given up before it was launched")
        case e.HostReleased():
            yield ForgetOrder(event.host, event.key)


def still_wanted(cluster: "Cluster", orders: Iterable[Order]) -> list[Order]:
    """Return the orders to send now: without stage orders of attempts that have ended since they were made.

    A host that has reported the end of an attempt forgets it, and would start it a second time.
    """
    attempts = cluster.attempts
    return [
        one
        for one in orders
        if type(one) is not StageOrder or ((attempt := attempts.get(one.key)) is not None and not attempt.over)
    ]


def stage_orders(cluster: "Cluster", attempt: "Attempt", hosts: frozenset[str] | None = None) -> Iterator[StageOrder]:
    """Stage orders to all hosts of an attempt, or to some of them again."""
    key, allocation, version, lease_s = attempt.key, attempt.allocation, attempt.version, attempt.lease_s
    launch_now = attempt.launched and len(allocation) == 1 and attempt.tasks is None
    setup = _setup_of(cluster, key, allocation)
    parts = _parts(attempt.tasks) if attempt.tasks is not None else {}
    for share in allocation:
        if hosts is None or share.host in hosts:
            host = share.host
            tasks = parts.get(host, ()) if parts else ()
            yield _new(StageOrder, (host, key, version, allocation, launch_now, setup, lease_s, tasks))


def _parts(tasks: JobTasks) -> dict[str, tuple[RolePart, ...]]:
    """Tasks on each host, without ports: the host chooses them."""
    return {one.host: tuple([part._replace(ports=()) for part in one.parts]) for one in tasks.table}


_TaskStarts = t.TasksOrdered | t.TasksStopped | t.TasksRestarted | t.TasksConcluded
TaskOrderEvent = _TaskStarts | t.TasksSignalled | t.TasksReported | t.TasksLost | t.PlacesPassedOn


def _orders_of_tasks(
    attempt: "Attempt", tasks: JobTasks, event: TaskOrderEvent
) -> Iterator["TasksOrder | ReleaseOrder"]:
    match event:
        case t.TasksReported() | t.TasksLost():  # an attempt that is to be repeated is over when all have released it
            if attempt.doomed and not attempt.kill_reason and not tasks.is_running:
                yield from release_rest(attempt, attempt.doomed)
        case t.TasksOrdered():  # hosts without a process of it get the table, too: ranks of other roles start there
            starts = _by_host(tasks, event.tasks, None)
            for host in dict.fromkeys(tasks.records[key].host for key in event.tasks):
                yield task_order(attempt, tasks, host, starts.get(host, ()), ())
        case t.PlacesPassedOn(places=places):  # where tasks take turns, each is told of others as it starts
            if any(tasks.sizes[key.role] <= tasks.places[key.role] for key, _ in places):
                yield from (task_order(attempt, tasks, share.host) for share in attempt.allocation)
        case t.TasksSignalled():
            for host, keys in _by_host(tasks, event.tasks, None).items():
                order = task_order(attempt, tasks, host, (), ())
                yield replace(order, signalled=tasks.runs(keys), signal=event.signal)
        case _:
            chosen = tasks.alive if isinstance(event, t.TasksConcluded) else event.tasks
            for host, keys in _by_host(tasks, chosen, TaskPhase.STOPPING).items():
                yield task_order(attempt, tasks, host, (), keys)


def _by_host(tasks: JobTasks, keys: Iterable[TaskKey], phase: TaskPhase | None) -> dict[str, list[TaskKey]]:
    """Those of the tasks that have a run and are in that phase, by host."""
    found: dict[str, list[TaskKey]] = {}
    for key in keys:
        record = tasks.records[key]
        if record.host and (phase is None or record.phase is phase) and tasks.has_run(key):
            found.setdefault(record.host, []).append(key)
    return found


def task_order(
    attempt: "Attempt",
    tasks: JobTasks,
    host: str,
    start: Iterable[TaskKey] = (),
    stop: Iterable[TaskKey] = (),
) -> TasksOrder:
    """Order to start and end tasks on one host."""
    ended, begun = list(stop), list(start)
    reason = tasks.records[ended[0]].stopped or attempt.kill_reason if ended else ""
    starts = tasks.runs([key for key in begun if not tasks.is_held(key)])
    hold = tasks.runs([key for key in begun if tasks.is_held(key)])
    return TasksOrder(host, attempt.key, tasks.version, tasks.table, starts, tasks.runs(ended), reason, hold=hold)


def release_rest(attempt: "Attempt", reason: str) -> Iterator[ReleaseOrder]:
    """Release orders to all hosts that have not released the attempt."""
    for share in attempt.booked:
        if share.host in attempt.unreleased:
            yield ReleaseOrder(share.host, attempt.key, reason)


def _setup_of(cluster: "Cluster", key: Key, allocation: Allocation) -> AttemptSetup:
    record = cluster.bearer(key.job, key.index)
    shared = record.shared
    queue = cluster.policy.queue_for(shared.queue, shared.application) or _NO_QUEUE
    idle = queue.gpu_idle.over(cluster.policy.gpu_idle) if any([share.gpus for share in allocation]) else None
    gpu = _gpu_setup(shared.request, idle) if idle is not None else None
    details = _details(cluster, allocation, shared.request)
    around = commands_over(queue.around, cluster.policy.around)
    warning_s = time_of_queue(shared, queue)
    values = shared.special.requeue_exit_values or queue.defaults.requeue_exit_values
    codes = _codes(values) if values else ()
    good = shared.special.success_exit_values or queue.defaults.success_exit_values
    success = _codes(good) if good and not shared.request.is_of_tasks else ()
    rest = (warning_s, around, codes, success, record.part)
    return _new(AttemptSetup, (shared, queue, record.submitted_at, details, gpu, *rest))


@lru_cache(maxsize=1024)
def _codes(values: str) -> tuple[int, ...]:
    return tuple(sorted(exit_values.parse(values).codes))


def _details(cluster: "Cluster", allocation: Allocation, request: Request) -> tuple[HostDetails, ...]:
    return tuple([_host_details(cluster, share, request) for share in allocation])


def _host_details(cluster: "Cluster", share: HostShare, request: Request) -> HostDetails:
    host = cluster.hosts.get(share.host)
    facts = host.facts if host is not None else None
    address = facts.peer_address if facts is not None else ""
    if not share.cpus:
        return _unbound(address)
    topology = facts.topology if facts is not None else ""
    affinity = _affinity(request) if topology else None
    return HostDetails(address, tuple([_binding(topology, task, affinity) for task in share.cpus]))


@lru_cache(maxsize=16_384)
def _unbound(address: str) -> HostDetails:
    """Details of a host on which no task is bound to CPUs; equal for all jobs."""
    return HostDetails(address)


def _binding(topology: str, task: tuple[int, ...], affinity: Affinity | None) -> Binding:
    cpus = bound(topology, task, affinity) if affinity is not None else task
    return Binding(cpus, nodes_of(topology, cpus), affinity.memory if affinity is not None else "")


@lru_cache(maxsize=1024)
def _affinity(request: Request) -> Affinity | None:
    """CPU binding of the request; the roles of a job have equal ones, or only one role has any."""
    return next((wants.affinity for role in all_roles(request) if (wants := wants_of(role)).affinity), None)


@lru_cache(maxsize=1024)
def _gpu_setup(request: Request, idle: GpuIdleRule) -> GpuSetup:
    """GPU set-up for the agents; of several roles the first with GPUs determines it."""
    roles = all_roles(request)
    role = next((role for role in roles if role.gpus), roles[0])  # without GPUs any says the same
    gpus = _gpus_of(role)
    is_single = request.single_role is not None
    return GpuSetup(
        gpus.mode,
        gpus.mps != "no",
        gpus.no_variable,
        gpus.num if gpus.per_task and is_single else 0,
        gpus.block and is_single,
        () if is_single or request.alternatives else tuple(map(_gpus_of_tasks, request.roles)),
        *(idle.power_w or 0.0, idle.fraction or 0.0),
    )


def _gpus_of(role: RoleRequest) -> GpuRequirement:
    return wants_of(role).gpus or GpuRequirement(role.gpus, role.gpus_per_task)


def _gpus_of_tasks(role: RoleRequest) -> tuple[int, bool]:
    """Division of a role's GPUs among its tasks, in a job of several roles."""
    gpus = _gpus_of(role)
    return (gpus.num if gpus.per_task else 0), gpus.block


def _resize_orders(
    cluster: "Cluster",
    attempt: "Attempt",
    event: e.AttemptGrowing | e.AttemptResized | e.ResizeNoted | t.ResizeAcknowledged | t.PartsFreed,
) -> Iterator[StageOrder | ResizeOrder | ReleaseOrder | SignalOrder | TasksOrder | NoticeOrder]:
    """Orders of a resize: stage on new hosts, tell those that stay, then release those that leave."""
    if isinstance(event, e.AttemptResized):
        yield from leaving_notices(cluster, attempt, event.at)
    if attempt.tasks is not None and not isinstance(event, e.AttemptGrowing):
        yield from _resize_orders_of_tasks(cluster, attempt, attempt.tasks, event)
        return
    match event:
        case e.AttemptGrowing():
            yield from growth_orders(cluster, attempt)
        case e.AttemptResized():
            for share in attempt.allocation:
                if share.host in attempt.unreleased:
                    yield resize_order(cluster, attempt, share.host)
        case e.ResizeNoted():
            for share in attempt.resizing.leaving:
                yield leave_order(cluster, attempt, share.host)


def leave_order(cluster: "Cluster", attempt: "Attempt", host: str) -> SignalOrder | ReleaseOrder:
    """Order for a host that the attempt has given up: kill what is left, or end it within the notice of the host."""
    here = cluster.hosts.get(host)
    if here is None or not here.leaves_at:
        return ReleaseOrder(host, attempt.key, LEFT)
    return SignalOrder(host, attempt.key, TERMINATE, LEFT, serial_of(here.leaves_at, LEAVE_SERIAL))


def _revoke_order(cluster: "Cluster", host: str, at: float) -> RevokeOrder:
    ends_at = cluster.hosts[host].leaves_at
    return RevokeOrder(host, max(0.0, ends_at - at) if ends_at else -1.0)


def _releases_again(cluster: "Cluster", host: str) -> Iterator[ReleaseOrder]:
    """Release orders for attempts that had the time of the host's notice to leave it."""
    for attempt in map(cluster.attempts.__getitem__, cluster.hosts[host].attempts):
        if attempt.tasks is None and attempt.is_leaving(host) and attempt.resizing.is_told:
            yield ReleaseOrder(host, attempt.key, LEFT)


def _resize_orders_of_tasks(
    cluster: "Cluster",
    attempt: "Attempt",
    tasks: JobTasks,
    event: e.AttemptResized | e.ResizeNoted | t.ResizeAcknowledged | t.PartsFreed,
) -> Iterator[ResizeOrder | ReleaseOrder | TasksOrder]:
    """Orders of a resize of a job of tasks: those that stay are told before those that leave are ended."""
    staying = [share.host for share in attempt.allocation if share.host in attempt.unreleased]
    match event:
        case e.AttemptResized():
            for host in staying:
                yield task_order(attempt, tasks, host)
                yield resize_order(cluster, attempt, host)
        case t.ResizeAcknowledged():  # late: the others have gone on without
            if attempt.resizing.is_told and event.tasks:
                yield from (task_order(attempt, tasks, host) for host in staying)
        case e.ResizeNoted():
            leaving: dict[str, list[TaskKey]] = {}
            for key in tasks.alive:
                if tasks.records[key].leaves:
                    leaving.setdefault(tasks.records[key].host, []).append(key)
            for host in dict.fromkeys([*staying, *leaving]):
                yield task_order(attempt, tasks, host, (), leaving.get(host, ()))
        case t.PartsFreed():
            for host in event.hosts:
                if attempt.share_on(host) is None and host in attempt.unreleased:
                    yield ReleaseOrder(host, attempt.key, LEFT)


def growth_orders(cluster: "Cluster", attempt: "Attempt", hosts: frozenset[str] | None = None) -> Iterator[StageOrder]:
    """Stage orders to new hosts of a growth, or to some of them again."""
    allocation = grown(attempt.allocation, attempt.resizing.growth)
    setup = _setup_of(cluster, attempt.key, allocation)
    for share in attempt.resizing.growth:
        if attempt.share_on(share.host) is None and (hosts is None or share.host in hosts):
            version = attempt.joined_with(share.host)
            tasks = _parts_for(attempt.tasks, share.host) if attempt.tasks is not None else ()
            yield StageOrder(share.host, attempt.key, version, allocation, False, setup, attempt.lease_s, tasks)


def _parts_for(tasks: JobTasks, host: str) -> tuple[RolePart, ...]:
    """Each role's tasks that have a place on a host, or are to have one, in the order of their devices."""
    found = []
    for role in range(len(tasks.sizes)):
        new = [key for key, record in tasks.of_role(role) if record.joins == host]
        here = tuple([key.index for key in (*tasks.in_order(host, role), *new)])
        found += [RolePart(role, here)] if here else []
    return tuple(found)


def resize_order(cluster: "Cluster", attempt: "Attempt", host: str) -> ResizeOrder:
    """Order with the attempt's present allocation for one of its hosts."""
    change = attempt.resizing
    details = _details(cluster, attempt.allocation, cluster.jobs[attempt.key.job].shared.request)
    tasks = _parts_for(attempt.tasks, host) if attempt.tasks is not None else ()
    return ResizeOrder(host, attempt.key, change.version, attempt.allocation, details, change.notify, tasks)


def limits_orders(cluster: "Cluster", attempt: "Attempt", host: str) -> Iterator[LimitsOrder]:
    """Order with the attempt's present limits for one of its hosts, if they have changed since it was staged."""
    job = cluster.holder(attempt.key)
    if attempt.limits_version and job is not None and attempt.share_on(host) is not None:
        limits = limits_of(job.shared)
        yield LimitsOrder(host, attempt.key, attempt.limits_version, *limits, attempt.changed or AS_STARTED)


def launch_orders(cluster: "Cluster", attempt: "Attempt") -> Iterator[LaunchOrder]:
    """Launch orders to the lead host, or to all hosts if a role's command is started for each task."""
    for host in launch_hosts(cluster, attempt):
        yield LaunchOrder(host, attempt.key, attempt.version)


def launch_hosts(cluster: "Cluster", attempt: "Attempt") -> list[str]:
    """Hosts on which launch orders start processes of the attempt: none of a job of tasks."""
    if attempt.tasks is not None:
        return []
    record = cluster.bearer(attempt.key.job, attempt.key.index)
    if any(role.launch is Launch.EACH for role in record.shared.request.roles):
        return [share.host for share in attempt.allocation]
    return [attempt.lead]


def _signal_orders(
    cluster: "Cluster", attempt: "Attempt", signal: int, reason: str, serial: int
) -> Iterator[SignalOrder]:
    notice = notice_of(cluster, attempt, signal, reason)
    for share in attempt.booked:
        if share.host in attempt.unreleased:
            yield SignalOrder(share.host, attempt.key, signal, reason, serial, tuple(attempt.suspended), notice)


def signal_again(cluster: "Cluster", attempt: "Attempt", host: str) -> Iterator[SignalOrder]:
    """The attempt's last signal, sent again; its serial lets an agent drop a repeated one."""
    if attempt.last_signal is not None:
        notice = notice_of(cluster, attempt, *attempt.last_signal[:2])
        yield SignalOrder(host, attempt.key, *attempt.last_signal, tuple(attempt.suspended), notice)


def stacks_orders(attempt: "Attempt") -> Iterator[StacksOrder]:
    """Orders to save stacks, to all hosts of a job that hangs that have not answered yet."""
    hang = attempt.activity.hang
    if hang is not None:
        answered = dict(hang.stacks)
        for host in sorted(attempt.unreleased - answered.keys()):
            yield StacksOrder(host, attempt.key, hang.number, STACKS_S)


def checkpoint_orders(attempt: "Attempt") -> Iterator[CheckpointOrder]:
    """Order of the checkpoint that the attempt's first host has not told the end of."""
    asked = attempt.checkpoints.open
    if asked is not None and attempt.lead in attempt.unreleased:
        yield CheckpointOrder(attempt.lead, attempt.key, asked)


def doom_orders(cluster: "Cluster", attempt: "Attempt") -> Iterator[SignalOrder | ReleaseOrder]:
    """Orders that end a failed attempt on hosts in contact; the others get theirs when they are back."""
    if attempt.tasks is not None and not attempt.tasks.is_running:
        yield from release_rest(attempt, attempt.doomed)
        return
    for share in attempt.booked:
        host = cluster.hosts.get(share.host)
        if share.host in attempt.unreleased and host is not None and not host.is_silent:
            yield doom_order(cluster, attempt, share.host)


def doom_order(cluster: "Cluster", attempt: "Attempt", host: str) -> SignalOrder:
    """Order that ends one host's part of a failed attempt."""
    notice = notice_of(cluster, attempt, TERMINATE, attempt.doomed)
    serial = serial_of(attempt.dispatched_at, 99)
    return SignalOrder(host, attempt.key, TERMINATE, attempt.doomed, serial, notice=notice)


def _release_orders(cluster: "Cluster", event: e.JobFinished | e.JobRequeued) -> Iterator[ReleaseOrder]:
    attempt = cluster.attempts.get(event.key)
    if attempt is None:
        return
    yield from release_rest(attempt, event.reason or "the job has ended")
