"""Smallest change of a pending job's request that would let it start now.

One part is changed at a time: memory, GPUs, span, hosts, select, number of tasks. Each is weakened step by step until
the request fits, by binary search where a step that suffices implies that all weaker ones do. So each answer has been
placed on the present hosts, at a cost of some dozens of placements. Cluster-wide resources, licences above all, are
never left out: a job that asks for one needs it.

The work is divided, as in ``start_estimate``: the generator yields between placements.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from lavad.core.cluster_view import ClusterView
from lavad.core.language.requirements import span
from lavad.core.language.requirements.span import Span
from lavad.core.model import Request, RoleRequest
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.feasibility import choices_ever
from lavad.core.scheduling.placement.place import place
from lavad.core.state.hosts.table import HostTable

STEPS_MAX = 4096
SPANS_MAX = 64


class Change(Enum):
    """Part of a request that is changed; the value is its name for users."""

    MEMORY = "memory"
    GPUS = "GPUs"
    SPAN = "how tasks are spread over hosts"
    HOSTS = "the hosts named"
    SELECT = "the condition on hosts"
    SAME = "hosts that are alike"
    AFFINITY = "processors of its own"
    EXCLUSIVE = "hosts of its own"
    TASKS = "the number of tasks"


@dataclass(frozen=True, slots=True)
class Advice:
    """Change with which the job would start now: ``request`` replaces its own."""

    change: Change
    request: Request


@dataclass(frozen=True, slots=True)
class RequestChanges:
    """Changes that help. ``is_hopeless``: the request does not fit even if all hosts are up and idle.

    ``is_for_later``: no change lets it start now; these would once hosts are free.
    """

    changes: tuple[Advice, ...] = ()
    is_hopeless: bool = False
    is_for_later: bool = False


Steps = Callable[[HostTable, Request], Sequence[Request]]


def counsel(cluster: ClusterView, request: Request) -> Generator[None, None, RequestChanges]:
    """Find changes that let the request start now; if there are none and it can never start, on idle hosts."""
    if place(FreeResources(cluster.table), request) is not None:
        return RequestChanges()
    yield
    idle = idle_hosts(cluster)
    is_hopeless = not choices_ever(idle, request)
    yield
    now = yield from advise(cluster.table, request)
    if now or not is_hopeless:
        return RequestChanges(tuple(now), is_hopeless)
    ever = yield from advise(idle, request)
    return RequestChanges(tuple(ever), is_hopeless=True, is_for_later=True)


def idle_hosts(cluster: ClusterView) -> HostTable:
    """Host table as if all hosts were up, open and idle."""
    table = cluster.table.emptied()
    for row, facts in enumerate(table.facts):
        table.set_usable(row, facts.server)
    return table


def advise(table: HostTable, request: Request) -> Generator[None, None, list[Advice]]:
    """Smallest sufficient change of each kind, least costly for the job first; empty if the request fits."""
    found: list[Advice] = []
    has_one_choice = request.single_role is not None and not request.alternatives
    if not has_one_choice or place(FreeResources(table), request) is not None:
        return found
    for change, steps_of in _STEPS.items():
        yield
        steps = steps_of(table, request)
        search = _first if change is Change.SPAN else _mildest
        weakened = yield from search(table, steps)
        if weakened is not None:
            found.append(Advice(change, weakened))
    return found


def _mildest(table: HostTable, steps: Sequence[Request]) -> Generator[None, None, Request | None]:
    """First of increasingly weak requests that fits, by binary search."""
    if not steps or place(FreeResources(table), steps[-1]) is None:
        return None
    low, high = 0, len(steps) - 1
    while low < high:
        yield
        middle = (low + high) // 2
        if place(FreeResources(table), steps[middle]) is None:
            low = middle + 1
        else:
            high = middle
    return steps[low]


def _first(table: HostTable, steps: Sequence[Request]) -> Generator[None, None, Request | None]:
    """First request that fits, by linear search: fewer tasks a host need more hosts, so fits are not monotonic."""
    for weakened in steps[:SPANS_MAX]:
        yield
        if place(FreeResources(table), weakened) is not None:
            return weakened
    return None


def role_of(request: Request) -> RoleRequest:
    """Role of a request with advice: for several roles there is none."""
    role = request.single_role
    assert role is not None, "only requests of one role are advised on"
    return role


def _with_role(request: Request, **changes: object) -> Request:
    return replace(request, roles=(replace(role_of(request), **changes),))  # type: ignore[arg-type]


def _less_memory(table: HostTable, request: Request) -> list[Request]:
    """Requests with the free memory of some host, largest first: only these amounts change the result."""
    wanted = role_of(request).memory_mib
    left = np.unique(table.memory_free_mib[: len(table)][table.open_rows()])[::-1]
    return [_with_role(request, memory_mib=int(mib)) for mib in left[:STEPS_MAX] if 0 < mib < wanted]


def _fewer_gpus(table: HostTable, request: Request) -> list[Request]:
    return [_with_role(request, gpus=count) for count in range(role_of(request).gpus - 1, -1, -1)]


def _looser_span(table: HostTable, request: Request) -> list[Request]:
    """Requests with fewer tasks on each host, and finally with no span."""
    role = role_of(request)
    if role.one_host or role.block or role.stripe or role.ptile < 0:
        return [_with_role(request, one_host=False, block=0, stripe=0, ptile=0, ptile_by=())]
    if not role.ptile:
        return []
    fewer = [_with_role(request, ptile=count) for count in range(role.ptile - 1, 0, -1)]
    return [*fewer[: SPANS_MAX - 1], _with_role(request, ptile=0)]


def _any_host(table: HostTable, request: Request) -> list[Request]:
    return [replace(request, hosts=())] if request.hosts else []


def _no_condition(table: HostTable, request: Request) -> list[Request]:
    return [_with_role(request, select="")] if role_of(request).select else []


def _unlike_hosts(table: HostTable, request: Request) -> list[Request]:
    role = role_of(request)
    return [_with_role(request, same="", cu="")] if role.same or role.cu else []


def _unbound(table: HostTable, request: Request) -> list[Request]:
    return [_with_role(request, affinity="")] if role_of(request).affinity else []


def _shared_hosts(table: HostTable, request: Request) -> list[Request]:
    return [replace(request, exclusive=False)] if request.exclusive else []


def _fewer_tasks(table: HostTable, request: Request) -> list[Request]:
    most = role_of(request).tasks_min - 1
    counts = range(most, max(0, most - STEPS_MAX), -1)
    return [_with_role(request, tasks_min=count, tasks_max=count) for count in counts]


_STEPS: dict[Change, Steps] = {
    Change.MEMORY: _less_memory,
    Change.SPAN: _looser_span,
    Change.HOSTS: _any_host,
    Change.SELECT: _no_condition,
    Change.SAME: _unlike_hosts,
    Change.AFFINITY: _unbound,
    Change.EXCLUSIVE: _shared_hosts,
    Change.GPUS: _fewer_gpus,
    Change.TASKS: _fewer_tasks,
}


def is_of_requirement(change: Change) -> bool:
    """True if the change is made by another -R."""
    return change not in (Change.HOSTS, Change.EXCLUSIVE, Change.TASKS, Change.GPUS)


def options(advice: Advice) -> str:
    """Options of bmod for the change."""
    request = advice.request
    role = role_of(request)
    match advice.change:
        case Change.HOSTS:
            return "-mn"
        case Change.EXCLUSIVE:
            return "-xn"
        case Change.TASKS:
            return f"-n {role.tasks_min}"
        case Change.GPUS:
            per = "/task" if role.gpus_per_task else ""
            return f'-gpu "num={role.gpus}{per}"' if role.gpus else "-gpun"
        case _:
            text = requirement_text(role)
            return f'-R "{text}"' if text else "-Rn"


def requirement_text(role: RoleRequest) -> str:
    """Requirement string (-R) of the role."""
    return " ".join(f"{name}[{body}]" for name, body in _sections(role).items())


def given_up(before: RoleRequest, after: RoleRequest) -> str:
    """Sections of a requirement dropped or altered by a change: ``select[mem>9]``."""
    old, new = _sections(before), _sections(after)
    gone = [f"{name}[{body}]" for name, body in old.items() if name not in new and name != "rusage"]
    if "select" in new and new["select"] != old.get("select"):
        gone.append(f"all of select[{old.get('select', '')}] but {new['select']}")
    return " ".join(gone)


def _sections(role: RoleRequest) -> dict[str, str]:
    memory = f"mem={role.memory_mib}" if role.memory_mib else ""
    sections = {
        "select": role.select,
        "order": role.order,
        "rusage": ",".join(filter(None, (memory, role.rusage))),
        "span": _span_text(role),
        "same": role.same,
        "cu": role.cu,
        "affinity": role.affinity,
    }
    return {name: body for name, body in sections.items() if body}


def _span_text(role: RoleRequest) -> str:
    stripe, is_striped = max(0, role.stripe), bool(role.stripe)
    return span.text_of(Span(role.one_host, role.ptile, role.ptile_by, role.block, stripe, is_striped))
