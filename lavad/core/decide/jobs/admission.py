"""Admission of a job to a queue: bounds of its request, rights of its user, defaults and limits of the queue.

Error texts are LSF's. Administrators may use any queue whatever its USERS say; its limits hold for them, too. A request
that no cluster could satisfy, or that contradicts itself, is refused at once.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from lavad.core.cluster import Cluster
from lavad.core.commands import Asked, Caller
from lavad.core.decide.jobs.request import known_request
from lavad.core.events import NewJob
from lavad.core.language.near import hint
from lavad.core.language.requirements import host_list
from lavad.core.model import Launch, Request, RoleRequest, Shared
from lavad.core.model.advance_reservation import ReservationKind
from lavad.core.model.reasons import NotNow, Refused
from lavad.core.model.rules.names import ALL
from lavad.core.model.rules.queues import Queue
from lavad.core.state.hosts.compute_units import kept_type, units_of

HARD_LIMIT = "Cannot exceed queue's hard limit(s)"


def combined_with_queue(cluster: Cluster, shared: Shared, asked: Asked) -> Shared:
    """The job's shared facts with its request as the first open queue reads it, of those that it may go to.

    A request that no queue can read is refused before any queue is asked to accept it. Without roles in ``asked`` the
    request is complete.

    Raises:
        Refused: bad -R, -n, -m or -gpu.
    """
    if not asked.roles:
        return shared
    names = asked.queues or (shared.queue,)
    queues = [queue for name in names if (queue := cluster.policy.queue(name)) is not None and queue.open]
    return _read_in(cluster, shared, queues[0].name if queues else names[0], asked)


def admitted(cluster: Cluster, submitted: Shared, asked_for: Shared, caller: Caller, asked: Asked) -> Shared:
    """Shared facts of the job in the first queue that accepts it; ``asked_for``: as by ``combined_with_queue``.

    Raises:
        Refused: no queue accepts it; the text is the first queue's.
    """
    check_request(cluster, asked_for.request)
    check_group(cluster, asked_for)
    check_application(cluster, asked_for)
    shared = _in_first_queue(cluster, asked_for, caller, asked)
    if not asked_for.request.hosts:  # then the result depends on facts and rules alone
        cluster.admissions.note((submitted, asked), caller, shared)
    return shared


def known_admission(cluster: Cluster, submitted: Shared, caller: Caller, asked: Asked) -> Shared | None:
    """Shared facts with which an equal submission was admitted, as long as it would be so again."""
    return cluster.admissions.find((submitted, asked), caller, cluster.policy, cluster.table)


def _in_first_queue(cluster: Cluster, shared: Shared, caller: Caller, asked: Asked) -> Shared:
    names = asked.queues or (shared.queue,)
    first: Refused | None = None
    for name in names:
        try:
            return _in_queue(cluster, shared, name, caller, asked)
        except Refused as refusal:
            first = first or refusal
    assert first is not None, "there is always a queue to ask"
    raise first


def _in_queue(cluster: Cluster, shared: Shared, name: str, caller: Caller, asked: Asked) -> Shared:
    check_queue(cluster, name)
    queue = cluster.policy.queue_for(name, shared.application)
    assert queue is not None, f"there is no queue {name}"
    check_user(queue, caller)
    check_service_class(cluster, shared, name)
    check_hosts(cluster, queue, shared.request)
    return fitted(cluster, shared, queue, asked)


def fitted(cluster: Cluster, shared: Shared, queue: Queue, asked: Asked) -> Shared:
    """The job's shared facts in this queue: with the queue's requirement, size and limits.

    Raises:
        Refused: the queue does not accept the job.
    """
    _check_kind(queue, shared)
    _check_units(cluster.policy.compute_unit_types, shared.request)
    if queue.defaults.rlimits:
        check_process_limits(queue, dict(asked.limits))
    shared = shared if shared.queue == queue.name else _read_in(cluster, shared, queue.name, asked)
    shared = with_queue_limits(_sized(shared, queue, asked.is_size_given), queue)
    if asked.has_warning_action and not (shared.special.warning_time_s or queue.warning_time_s):
        raise Refused(f"-wa needs -wt, since queue {queue.name} has no JOB_ACTION_WARNING_TIME")
    if asked.warns_by_checkpoint and not shared.special.checkpointable:
        raise Refused("-wa CHKPNT needs a job that has checkpoints: by -k, its application profile or its queue")
    if shared.special.migration_s is not None and not (shared.rerunnable or shared.special.checkpointable):
        raise Refused("-mig needs a job that may migrate: rerunnable (-r), or with checkpoints (-k)")
    check_share(cluster, shared)
    return shared


def check_share(cluster: Cluster, shared: Shared) -> None:
    """Refuse users without a share in a fairshare queue: their jobs would never be dispatched."""
    tree = cluster.shares.trees.get(shared.queue)
    if tree is not None and tree.account_of(shared.user, shared.user_group) is None:
        raise Refused(f"{shared.queue}: User cannot use the queue; its shares leave {shared.user} out")


def check_group(cluster: Cluster, shared: Shared) -> None:
    """Refuse a user group (-G) that does not exist or that the user is not in."""
    if not shared.user_group:
        return
    members = cluster.policy.user_groups.get(shared.user_group)
    if members is None:
        raise Refused(f"{shared.user_group}: No such user group{hint(shared.user_group, cluster.policy.user_groups)}")
    if shared.user not in members:
        raise Refused(f"{shared.user_group}: User not in the specified user group")


def check_application(cluster: Cluster, shared: Shared) -> None:
    """Refuse an application profile (-app) that does not exist."""
    if shared.application and shared.application not in cluster.policy.applications:
        raise Refused(
            f"{shared.application}: No such application profile{hint(shared.application, cluster.policy.applications)}"
        )


def check_service_class(cluster: Cluster, shared: Shared, queue: str) -> None:
    """Refuse a service class (-sla) that does not exist, or that takes no such jobs of the queue."""
    name = shared.request.service_class
    if not name:
        return
    one = cluster.policy.service_classes.get(name)
    if one is None:
        raise Refused(f"{name}: No such service class{hint(name, cluster.policy.service_classes)}")
    if shared.user not in one.users:
        raise Refused(f"{name}: User cannot use the service class")
    if queue not in one.queues:
        raise Refused(f"{name}: Jobs of queue {queue} cannot use the service class")
    if shared.application not in one.applications:
        whose = (
            f"of application profile {shared.application}" if shared.application else "without an application profile"
        )
        raise Refused(f"{name}: Jobs {whose} cannot use the service class")


def check_waiting(cluster: Cluster, new: NewJob, shared: Shared) -> None:
    """Refuse a job beyond the pending job or slot limits, for now: the caller may retry, unless it alone exceeds them.

    Raises:
        NotNow: the limit's jobs or slots are pending already.
        Refused: a job array with more elements than the limit.
    """
    jobs = sum(map(len, new.indices)) or 1
    _check_waiting_more(cluster, shared.user, jobs, jobs * shared.request.slots_min)


def check_waiting_larger(cluster: Cluster, before: Shared, shared: Shared, count: int) -> None:
    """Refuse a change of so many pending jobs to more slots than the pending limits allow.

    Raises:
        NotNow: the limit's slots are pending already.
        Refused: the change alone exceeds the limit.
    """
    more = shared.request.slots_min - before.request.slots_min
    if more > 0:
        _check_waiting_more(cluster, shared.user, 0, more * count)


def _check_waiting_more(cluster: Cluster, user: str, jobs: int, slots: int) -> None:
    waiting = cluster.counters.waiting_now
    for limit in waiting.limits(user):
        for word, most, now, more in (
            ("job", limit.jobs, waiting.jobs, jobs),
            ("job slots", limit.slots, waiting.slots, slots),
        ):
            if not more or most is None:
                continue
            if more > most:
                raise Refused(f"Pending {word} threshold is {most}; the submission has {more}")
            if now[limit.scope] + more > most:
                raise NotNow(f"Pending {word} threshold reached")


def check_queue(cluster: Cluster, name: str) -> None:
    """Refuse a queue that is unknown or closed."""
    queue = cluster.policy.queue(name)
    if queue is None:
        raise Refused(f"{name}: No such queue{hint(name, (one.name for one in cluster.policy.queues))}")
    if not queue.open:
        raise Refused(f"{name}: Queue has been closed")


def check_user(queue: Queue, caller: Caller) -> None:
    """Refuse users not in the queue's USERS, unless they administer it or the cluster, and users without a fairshare
    share."""
    is_free = caller.is_administrator or caller.user in queue.administrators
    has_share = queue.fairshare is None or any(caller.user in share.users for share in queue.fairshare.shares)
    if not has_share or (caller.user not in queue.users and not is_free):
        raise Refused(f"{queue.name}: User cannot use the queue")


def _check_kind(queue: Queue, shared: Shared) -> None:
    """Refuse kinds of jobs that the queue does not accept."""
    request = shared.request
    if queue.defaults.container:
        where = f"application profile {shared.application}" if shared.application else f"queue {queue.name}"
        raise Refused(
            f"{queue.name}: Jobs of {where} run in a container (CONTAINER), in which lava cannot keep this one"
        )
    if queue.interactive == "only" and not shared.special.interactive:
        raise Refused(f"{queue.name}: Queue only accepts interactive jobs")
    if queue.interactive == "no" and shared.special.interactive:
        raise Refused(f"{queue.name}: Queue does not accept interactive jobs")
    if (request.exclusive or kept_type(request) is not None) and not queue.is_exclusive_allowed:
        raise Refused(f"{queue.name}: Queue does not accept EXCLUSIVE jobs")


def _check_units(types: tuple[str, ...], request: Request) -> None:
    for units in () if request.is_basic else units_of(request):
        if units.type and units.type not in types:
            known = f"the types are {' '.join(types)}" if types else "none is configured"
            raise Refused(f"{units.type}: No such type of compute units; {known}")


def _read_in(cluster: Cluster, shared: Shared, queue: str, asked: Asked) -> Shared:
    """The job's shared facts in a queue, with the request that its options and that queue's requirement make."""
    if not asked.roles:
        return replace(shared, queue=queue)
    rules, options = cluster.policy.queue_for(queue, shared.application), shared.request.options
    request, text = known_request(asked.roles, options, cluster.policy, cluster.table, rules, shared.from_host)
    return replace(shared, queue=queue, request=request, requirement=text)


def check_hosts(cluster: Cluster, queue: Queue, request: Request) -> None:
    """Refuse a job whose hosts (-m) run no jobs, or are all outside its queue."""
    if not request.hosts:
        return
    chosen = host_list.chosen(request.hosts, [*cluster.policy.known_hosts, *cluster.hosts], cluster.policy.host_groups)
    if chosen.ranks and not any(_runs_jobs(cluster, host) for host in chosen.ranks):
        raise Refused(f"{request.hosts[0]}: Host or host group runs no jobs")
    if queue.hosts != ALL and not any(host in queue.hosts for host in chosen.ranks):
        raise Refused(f"{request.hosts[0]}: Host or host group is not used by the queue")


def _runs_jobs(cluster: Cluster, host: str) -> bool:
    """True if the host is a server, or unknown yet."""
    row = cluster.table.rows.get(host)
    return row is None or cluster.table.facts[row].server


def check_reservation(cluster: Cluster, request: Request, user: str) -> None:
    """Refuse an advance reservation that does not exist or that the user may not use."""
    name = request.reservation
    if not name:
        return
    one = cluster.reserved.by_name.get(name)
    if one is None:
        raise Refused(f"{name}: No such reservation")
    if one.kind is ReservationKind.SYSTEM:
        raise Refused(f"{name}: the reservation is for the system; no job can use it")
    if not one.admits(user, cluster.policy.user_groups):
        raise Refused(f"{name}: the reservation is not for {user}")


def check_process_limits(queue: Queue, given: Mapping[str, int]) -> None:
    """Refuse process limits above the largest of a queue."""
    for name, _, most in queue.defaults.rlimits:
        if given.get(name, 0) > most:
            raise Refused(f"{LIMIT_NAMES[name]}: {HARD_LIMIT}")


LIMIT_NAMES = {
    "cpu": "CPULIMIT",
    "data": "DATALIMIT",
    "stack": "STACKLIMIT",
    "fsize": "FILELIMIT",
    "core": "CORELIMIT",
    "nproc": "PROCESSLIMIT",
    "swap": "SWAPLIMIT",
    "threads": "THREADLIMIT",
}


def _sized(shared: Shared, queue: Queue, is_size_given: bool) -> Shared:
    """The job with the queue's default size if it names none, and its sizes bounded by the queue's.

    Raises:
        Refused: its smallest size is above the queue's largest, or its largest below the queue's smallest.
    """
    rules, roles = queue.defaults, shared.request.roles
    if rules.tasks_max is None and rules.tasks_min == rules.tasks_default == 1:
        return shared
    only = shared.request.single_role  # the sizes of several roles are checked, but never altered
    if only is not None and not is_size_given:
        roles = (replace(only, tasks_min=rules.tasks_default, tasks_max=rules.tasks_default),)
    least, most = sum(role.tasks_min for role in roles), sum(role.tasks_max for role in roles)
    if rules.tasks_max is not None and least > rules.tasks_max:
        raise Refused("Too many processors requested")
    if most < rules.tasks_min:
        raise Refused("Too few processors requested")
    if only is not None:
        ceiling = rules.tasks_max if rules.tasks_max is not None else most
        bounds = (max(least, min(rules.tasks_min, most)), min(most, ceiling))
        roles = (replace(only, tasks_min=bounds[0], tasks_max=bounds[1]),)
    return shared if roles == shared.request.roles else replace(shared, request=replace(shared.request, roles=roles))


def run_limit_in(queue: Queue, wanted_s: int) -> int:
    """Run limit in seconds of a job of this queue that asks for `wanted_s` (0: for none). Refused if above the
    queue's."""
    if not queue.run_limit_s:
        return wanted_s
    if wanted_s > queue.run_limit_s:
        raise Refused(f"RUNLIMIT: {HARD_LIMIT}")
    return wanted_s or queue.defaults.run_limit_default_s or queue.run_limit_s


def with_queue_limits(shared: Shared, queue: Queue) -> Shared:
    """The job with the queue's limits where it has none. Refused if one of its own is above the queue's."""
    changes: dict[str, object] = {}
    limit_s = run_limit_in(queue, shared.run_limit_s)
    if limit_s != shared.run_limit_s:
        changes["run_limit_s"] = limit_s
    most = queue.defaults.memory_limit_mib
    if most:
        if shared.memory_limit_mib > most:
            raise Refused(f"MEMLIMIT: {HARD_LIMIT}")
        if not shared.memory_limit_mib:
            changes["memory_limit_mib"] = queue.defaults.memory_limit_default_mib or most
    if queue.rerunnable and not (shared.rerunnable or shared.special.interactive):
        changes["rerunnable"] = True
    if queue.user_group_default and not shared.user_group:
        changes["user_group"] = queue.user_group_default
    return replace(shared, **changes) if changes else shared  # type: ignore[arg-type]


_REQUESTS_KNOWN = 8192  # checked requests kept, good or bad


def check_request(cluster: Cluster, request: Request) -> None:
    """Refuse a request that no cluster could satisfy."""
    complaint = _complaint_about(request)
    if complaint:
        raise Refused(complaint)
    if request.hosts:
        known = cluster.policy.known_hosts  # also hosts that have not joined yet
        groups = cluster.policy.host_groups
        host_list.check(request.hosts, {**cluster.hosts, **dict.fromkeys(known), **groups})


@lru_cache(maxsize=_REQUESTS_KNOWN)
def _complaint_about(request: Request) -> str:
    """Reason why no cluster could satisfy the request; empty if it is good."""
    if not request.roles:
        return "The job has no tasks: a role is missing"
    if request.is_of_tasks and (complaint := _complaint_about_tasks(request)):
        return complaint
    roles = (*request.roles, *(role for one in request.alternatives for role in one.roles))
    return next(filter(None, (_complaint_about_role(request, role) for role in roles)), "")


TASKS_MAX = 50_000  # of a job of tasks: its agents are told about all of them


def _complaint_about_tasks(request: Request) -> str:
    if not request.slots_min:
        return "The job could start without any task: one role at least needs a minimum above 0"
    if sum(role.tasks_max for role in request.roles) > TASKS_MAX:
        return f"A job of roles has at most {TASKS_MAX} tasks"
    return ""


def _complaint_about_role(request: Request, role: RoleRequest) -> str:
    least = 0 if request.is_of_tasks else 1
    if role.tasks_min < least or role.tasks_max < max(role.tasks_min, 1) or role.slots_per_task < 1:
        return "Bad processor number: -n takes min[,max] with 1 <= min <= max"
    if role.ptile < -1:
        return "Bad resource requirement syntax: span[ptile=n] takes a positive number"
    if role.memory_mib < 0 or role.gpus < 0:
        return "Bad resource requirement syntax: memory and GPUs are not negative"
    return _complaint_about_resizing(request, role) if role.resizable else ""


def _complaint_about_resizing(request: Request, role: RoleRequest) -> str:
    if request.is_of_tasks or request.single_role is None or role.launch is not Launch.FIRST:
        return "-ar: only a job of one command that starts its tasks itself can be resizable"
    if request.exclusive:
        return "-ar: a resizable job can't have its hosts for itself (-x)"
    if request.alternatives or request.same or request.cu or role.same or role.cu or role.block or role.stripe:
        return "-ar: a resizable job's -R holds no alternatives, same, cu, span[block] or span[stripe]"
    return ""
