"""Places of a job's tasks: determined by the allocation alone, so that a restored cluster has the same.

Each role's tasks get indices from 0 in the order of the allocation. Tasks of the maximum that have no place wait
without one.
"""

from collections.abc import Container, Iterable, Iterator

from lavad.core.model import Allocation, Launch, Shared
from lavad.core.model.task_rules import TaskKey, TaskPhase
from lavad.core.model.task_values import RolePart
from lavad.core.state.tasks import ALIVE, ENDED, JobTasks, TaskRecord

_NEW = TaskRecord()


def new_tasks(shared: Shared) -> JobTasks:
    """Tasks of a job that has not been dispatched."""
    rules, roles = shared.tasks, shared.request.roles
    assert rules is not None, "a job without rules of tasks has none"
    return JobTasks(
        rules,
        tuple([role.name for role in roles]),
        tuple(
            [rule.completions or role.tasks_max - role.spares for rule, role in zip(rules.roles, roles, strict=True)]
        ),
        tuple([role.tasks_min - role.spares for role in roles]),
        tuple([role.tasks_max - role.spares for role in roles]),
        launches=tuple([role.launch for role in roles]),
    )


def placed(before: JobTasks | None, shared: Shared, allocation: Allocation) -> JobTasks:
    """Tasks of a job that is dispatched: all wait, with their places in the allocation.

    Runs and restarts go on counting from those of the attempts before.
    """
    tasks = new_tasks(shared)
    hosts = {TaskKey(part.role, index): name for name, part in parts_of(allocation) for index in part.indices}
    known = before.records if before is not None else {}
    for role, size in enumerate(tasks.sizes):
        for key in (TaskKey(role, index) for index in range(size)):
            had = known.get(key, _NEW)
            tasks.records[key] = TaskRecord(host=hosts.get(key, ""), run=had.run, failures=had.failures)
    if before is not None:
        tasks.version, tasks.restarts = before.version, before.restarts
        tasks.restarts_in_place = dict(before.restarts_in_place)
    tasks.version += 1
    find_leads(tasks)
    return tasks


def parts_of(allocation: Allocation) -> Iterator[tuple[str, RolePart]]:
    """Each role's tasks on each host of an allocation."""
    first: dict[int, int] = {}
    for share in allocation:
        for role, count in enumerate(share.tasks_by_role):
            if count:
                at = first.get(role, 0)
                first[role] = at + count
                yield share.host, RolePart(role, tuple(range(at, at + count)))


def find_leads(tasks: JobTasks) -> None:
    """Find the tasks whose process stands for others: the first of a role, or of a role on each host."""
    firsts: dict[tuple[int, str], TaskKey] = {}
    led: dict[TaskKey, list[TaskKey]] = {}
    for key, record in tasks.records.items():
        launch = tasks.launches[key.role]
        if record.host and launch in (Launch.FIRST, Launch.HOST):
            first = firsts.setdefault((key.role, record.host if launch is Launch.HOST else ""), key)
            if first != key:
                led.setdefault(first, []).append(key)
    tasks.led = {key: tuple(others) for key, others in led.items()}
    tasks.stands_for = {other: key for key, others in tasks.led.items() for other in others}


def reserved(tasks: JobTasks, host: str, address: str, parts: tuple[RolePart, ...]) -> None:
    """Note the address of a host, and the ports that it has reserved for its tasks."""
    if address:
        tasks.addresses[host] = address
    for part in parts:
        each = len(part.ports) // len(part.indices) if part.indices else 0
        for place, index in enumerate(part.indices):
            key = TaskKey(part.role, index)
            record = tasks.records.get(key)
            if record is not None and host in (record.host, record.joins):
                ports = part.ports[place * each : (place + 1) * each]
                tasks.records[key] = record._replace(ports=ports)
    tasks.version += 1


# -- growth and shrink -------------------------------------------------------------------------------------------------


def joining(tasks: JobTasks, additions: Allocation) -> None:
    """Note which tasks a growth is for: those displaced, then the lowest indices without a place."""
    displaced = set(tasks.displaced)
    for role in range(len(tasks.sizes)):
        free = [key for key, record in tasks.of_role(role) if _may_join(tasks, key, record)]
        free.sort(key=lambda key: key not in displaced)
        hosts = [share.host for share in additions for _ in range(share.tasks_by_role[role])]
        for host, key in zip(hosts, free, strict=False):
            tasks.records[key] = tasks.records[key]._replace(joins=host)


def _may_join(tasks: JobTasks, key: TaskKey, record: TaskRecord) -> bool:
    has_ended = record.phase in ENDED and bool(tasks.rules.roles[key.role].completions)
    return not (record.host or record.joins or has_ended)


def pass_on(tasks: JobTasks, places: Iterable[tuple[TaskKey, TaskKey]]) -> None:
    """Give the places of ended tasks to others, with their ports and devices: these wait for their start."""
    for ended, next_one in places:
        before, record = tasks.records[ended], tasks.records[next_one]
        tasks.records[ended] = without_place(before)
        tasks.records[next_one] = TaskRecord(
            host=before.host, run=record.run, ports=before.ports, joined=before.joined,
            waits_for_all=record.waits_for_all, not_before=record.not_before, failures=record.failures,
            left=record.left, place=ended.index if before.place < 0 else before.place,
        )  # fmt: skip
    tasks.version += 1


def without_place(record: TaskRecord) -> TaskRecord:
    """The record of an ended task that has given its place up."""
    return record._replace(host="", left=record.host or record.left, ports=(), pid=0, leaves=False, place=-1)


def take_spares(tasks: JobTasks, places: Iterable[tuple[TaskKey, str]]) -> None:
    """Note that idle places of the job are for these tasks."""
    for key, host in places:
        tasks.records[key] = tasks.records[key]._replace(joins=host)


def join_no_more(tasks: JobTasks, host: str = "") -> None:
    """Note that the growth is given up, or that nothing joins on this host."""
    for key, record in list(tasks.records.items()):
        if record.joins and host in ("", record.joins):
            tasks.records[key] = record._replace(joins="", ports=())


def joined(tasks: JobTasks, hosts: Container[str], version: int) -> None:
    """Place the tasks that were to join these hosts: they wait for their start.

    Tasks that were lost there before have nothing to do with these hosts any more.
    """
    new = [key for key, record in tasks.records.items() if record.joins and record.joins in hosts]
    if not new:
        return
    leads = _leads(tasks)
    for key, record in list(tasks.records.items()):
        if record.was_on and record.was_on in hosts and not record.joins:
            tasks.records[key] = record._replace(was_on="")
    for key in new:
        record = tasks.records[key]
        tasks.records[key] = TaskRecord(
            host=record.joins, run=record.run, ports=record.ports, joined=version,
            waits_for_all=record.waits_for_all, not_before=record.not_before, failures=record.failures,
            left=record.left,
        )  # fmt: skip
        _follow_lead(tasks, key, leads)
    tasks.version += 1
    if tasks.replacement is not None and not tasks.displaced:
        tasks.replacement = None
        _find_leads_anew(tasks)


def _find_leads_anew(tasks: JobTasks) -> None:
    """Let one process stand for all tasks of a role whose first task got another host, if none of them runs."""
    for role, launch in enumerate(tasks.launches):
        keys = [key for key, record in tasks.of_role(role) if record.host]
        if launch is not Launch.FIRST or not keys or any(tasks.records[key].is_alive for key in keys):
            continue
        for key in keys:
            tasks.led.pop(key, None)
            tasks.stands_for.pop(key, None)
        tasks.led[keys[0]] = tuple(keys[1:])
        tasks.stands_for.update(dict.fromkeys(keys[1:], keys[0]))


def _leads(tasks: JobTasks) -> dict[tuple[int, str], TaskKey]:
    """Tasks whose process stands, or would stand, for others that join."""
    found: dict[tuple[int, str], TaskKey] = {}
    for key, record in tasks.records.items():
        if record.host and not record.leaves and key not in tasks.stands_for:
            found.setdefault(_group(tasks, key, record.host), key)
    return found


def _group(tasks: JobTasks, key: TaskKey, host: str) -> tuple[int, str]:
    return key.role, "" if tasks.launches[key.role] is Launch.FIRST else host


def _follow_lead(tasks: JobTasks, key: TaskKey, leads: dict[tuple[int, str], TaskKey]) -> None:
    """Let the process that there is for a role, or for a role on a host, stand for a task that joined."""
    if tasks.launches[key.role] not in (Launch.FIRST, Launch.HOST):
        return
    mine = tasks.records[key]
    lead = leads.setdefault(_group(tasks, key, mine.host), key)
    if lead != key:
        tasks.led[lead] = (*tasks.led.get(lead, ()), key)
        tasks.stands_for[key] = lead
        same = tasks.records[lead]._replace(host=mine.host, ports=mine.ports, joined=mine.joined, pid=0)
        tasks.records[key] = same


def given_up(tasks: JobTasks, keys: Iterable[TaskKey]) -> None:
    """Take these tasks' places: those that are alive keep theirs, unseen by others, until they have ended."""
    for key in keys:
        record = tasks.records[key]
        if record.is_alive and tasks.has_run(key):
            tasks.records[key] = record._replace(leaves=True)
        else:
            unplace(tasks, key)
    tasks.version += 1


def unplace(tasks: JobTasks, key: TaskKey) -> None:
    """Leave a task without a place; its runs go on counting."""
    lead = tasks.stands_for.pop(key, None)
    if lead is not None:
        tasks.led[lead] = tuple([other for other in tasks.led[lead] if other != key])
    record = tasks.records[key]
    if record.phase in ENDED and tasks.rules.roles[key.role].completions:
        tasks.records[key] = without_place(record)
    else:
        tasks.records[key] = TaskRecord(run=record.run, left=record.left or record.host, failures=record.failures)


def stop_leaving(tasks: JobTasks, reason: str) -> None:
    """End the tasks whose places were given up: the others have been told."""
    for key in sorted(tasks.records.alive):
        record = tasks.records[key]
        if record.leaves:
            ending = record._replace(phase=TaskPhase.STOPPING, again=False, waits_for_all=False, ends_as=None)
            tasks.records[key] = ending._replace(stopped=reason)


def left_host(tasks: JobTasks, host: str) -> None:
    """Note that nothing of the job is left on a host: the tasks that were leaving it have left."""
    for key in tasks.on_host(host):
        if tasks.records[key].leaves:
            unplace(tasks, key)


def left(tasks: JobTasks) -> None:
    """Take their places from all tasks: the job waits for another attempt."""
    for key, record in list(tasks.records.items()):
        tasks.records[key] = TaskRecord(
            run=record.run, status=record.status, reason=record.reason, failures=record.failures
        )
    tasks.version += 1
    tasks.addresses, tasks.delayed, tasks.pauses, tasks.replacement = {}, (), (), None
    tasks.led, tasks.stands_for = {}, {}


def renewed(tasks: JobTasks) -> None:
    """Forget what an ended job has been through, but its runs: it is to run again."""
    left(tasks)
    tasks.restarts, tasks.restarts_in_place, tasks.verdict = 0, {}, None


def closed(tasks: JobTasks, at: float, reason: str) -> None:
    """End what has not ended: the job has."""
    for key, record in list(tasks.records.items()):
        if record.phase not in ALIVE and record.phase is not TaskPhase.WAITING:
            continue
        why = record.stopped or reason
        ended = at if record.phase in ALIVE else 0.0
        tasks.records[key] = record._replace(
            phase=TaskPhase.EXITED, ended=ended, reason=why, again=False, waits_for_all=False
        )
    tasks.delayed, tasks.pauses, tasks.replacement = (), (), None
