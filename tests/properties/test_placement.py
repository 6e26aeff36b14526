"""Placement against a slow obvious twin: its allocations are valid, and it fails only where none exists."""

from collections.abc import Iterator
from itertools import combinations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lavad.core.model import Allocation, HostFacts, HostShare, Request, RoleRequest
from lavad.core.scheduling.capacity import free_resources as rooms
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.scheduling.placement.place import place
from lavad.core.state.hosts.load_thresholds import select_mask
from lavad.core.state.hosts.table import HostTable
from tests.builders import a_host, a_role
from tests.properties.examples import examples

pytestmark = pytest.mark.usefixtures("short_blocks")
SELECTS = ("", "fast", "maxmem > 1500", "!fast && slots > 1")

hosts = st.lists(
    st.builds(
        lambda slots, memory, gpus, fast, used, usable: (
            HostFacts("", slots, memory, gpus, resources=frozenset({"fast"}) if fast else frozenset()),
            min(used, slots),
            usable,
        ),
        st.integers(1, 6),
        st.sampled_from([1000, 2000, 4000]),
        st.integers(0, 3),
        st.booleans(),
        st.integers(0, 3),
        st.sampled_from([True, True, True, False]),
    ),
    min_size=1,
    max_size=5,
)
roles = st.builds(
    lambda low, more, **rest: RoleRequest(tasks_min=low, tasks_max=low + more, **rest),
    st.integers(1, 6),
    st.sampled_from([0, 0, 1, 3]),
    slots_per_task=st.sampled_from([1, 1, 2]),
    memory_mib=st.sampled_from([0, 500, 1500]),
    gpus=st.sampled_from([0, 0, 1, 2]),
    gpus_per_task=st.booleans(),
    one_host=st.sampled_from([False, False, True]),
    ptile=st.sampled_from([0, 0, 1, 2, 3]),
    select=st.sampled_from(SELECTS),
).map(lambda role: role if not (role.one_host and role.ptile) else RoleRequest(role.tasks_min, role.tasks_max))


@pytest.fixture(scope="module")
def short_blocks() -> Iterator[None]:
    """Search hosts in small blocks, so that few hosts suffice for the test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rooms, "_FIRST_BLOCK", 1)
        yield


def a_table(described: list[tuple[HostFacts, int, bool]]) -> HostTable:
    """Hosts n1, n2, ..., with some slots taken."""
    table = HostTable()
    for number, (facts, used, usable) in enumerate(described, 1):
        row = table.add(HostFacts(f"n{number}", facts.slots, facts.memory_mib, facts.gpus, resources=facts.resources))
        table.set_usable(row, usable)
        if used:
            table.take(row, HostShare(f"n{number}", used), whole=False)
    return table


def most_tasks(table: HostTable, request: Request, role: RoleRequest, row: int) -> int:
    """Number of tasks of the role that fit the host, ptile and one_host aside."""
    if not table.usable[row] or not select_mask(role.select, table)[row]:
        return 0
    if request.hosts and table.names[row] not in request.hosts:
        return 0
    if (request.exclusive and table.attempts[row]) or table.memory_free_mib[row] < role.memory_mib:
        return 0
    tasks = int(table.slots_free[row]) // role.slots_per_task
    if role.gpus_per_task and role.gpus:
        return min(tasks, int(table.gpus_free[row]) // role.gpus)
    return tasks if table.gpus_free[row] >= role.gpus else 0


def can_be_placed(table: HostTable, request: Request) -> bool:
    """The twin, for one role: try every number of tasks, and for ptile every set of full hosts with every last one."""
    (role,) = request.roles
    most = [most_tasks(table, request, role, row) for row in range(len(table))]
    return any(_fits(role, most, tasks) for tasks in range(role.tasks_min, role.tasks_max + 1))


def _fits(role: RoleRequest, most: list[int], tasks: int) -> bool:
    if role.one_host:
        return max(most, default=0) >= tasks
    if not role.ptile:
        return sum(most) >= tasks
    full, last = divmod(tasks, role.ptile)
    for chosen in combinations(range(len(most)), full):
        if all(most[row] >= role.ptile for row in chosen):
            rest = [most[row] for row in range(len(most)) if row not in chosen]
            if not last or max(rest, default=0) >= last:
                return True
    return False


def complaints(table: HostTable, request: Request, allocation: Allocation) -> Iterator[str]:
    """Errors of an allocation, by counting everything again."""
    if len({share.host for share in allocation}) != len(allocation):
        yield "a host is there twice"
    for share in allocation:
        row = table.rows[share.host]
        if not table.usable[row] or (request.exclusive and table.attempts[row]):
            yield f"{share.host} is closed to it"
        if share.slots > table.slots_free[row] or share.memory_mib > table.memory_free_mib[row]:
            yield f"{share.host} is too full"
        if len(set(share.gpus)) != len(share.gpus) or any(not table.gpu_free[row] >> gpu & 1 for gpu in share.gpus):
            yield f"{share.host} has no such GPUs {share.gpus}"
        if request.hosts and share.host not in request.hosts:
            yield f"{share.host} was not named"
        tasks = share.tasks_by_role
        if share.slots != sum(n * r.slots_per_task for n, r in zip(tasks, request.roles, strict=True)):
            yield f"{share.host}: slots and tasks differ"
        here = [(n, r) for n, r in zip(tasks, request.roles, strict=True) if n]
        if len(share.gpus) != sum(r.gpus * n if r.gpus_per_task else r.gpus for n, r in here):
            yield f"{share.host}: wrong number of GPUs"
        if share.memory_mib != sum(r.memory_mib for _, r in here):
            yield f"{share.host}: wrong memory"
        if any(not select_mask(r.select, table)[row] for _, r in here):
            yield f"{share.host} is not selected"
    for number, role in enumerate(request.roles):
        yield from _role_complaints(role, [share.tasks_by_role[number] for share in allocation])


def _role_complaints(role: RoleRequest, tasks: list[int]) -> Iterator[str]:
    on_hosts = [count for count in tasks if count]
    if not role.tasks_min <= sum(tasks) <= role.tasks_max:
        yield f"{sum(tasks)} tasks"
    if role.one_host and len(on_hosts) != 1:
        yield "not on one host"
    if role.ptile and (max(on_hosts) > role.ptile or sum(count != role.ptile for count in on_hosts) > 1):
        yield f"not {role.ptile} tasks a host: {on_hosts}"


requests = st.builds(
    lambda parts, named, exclusive: Request(tuple(parts), named, exclusive),
    st.lists(roles, min_size=1, max_size=3),
    st.sampled_from([(), (), ("n2", "n1"), ("n1", "n1", "n3")]),
    st.sampled_from([False, False, True]),
)


@examples(150)
@given(hosts, st.lists(requests, min_size=1, max_size=4))
def test_every_allocation_is_right_and_all_fit_together(
    described: list[tuple[HostFacts, int, bool]], wanted: list[Request]
) -> None:
    """Each keeps to its request, and no resource is allocated twice."""
    table = a_table(described)
    wanted = [
        Request(one.roles, tuple(name for name in one.hosts if name in table.rows), one.exclusive) for one in wanted
    ]
    room = FreeResources(table)
    for request in wanted:
        allocation = place(room, request)
        if allocation is None:
            continue
        assert list(complaints(table, request, allocation)) == []
        for share in allocation:
            table.take(table.rows[share.host], share, request.exclusive)
            if request.exclusive:
                table.set_usable(table.rows[share.host], usable=False)


@examples(150)
@given(hosts, requests.filter(lambda request: len(request.roles) == 1))
@example([(a_host("", 2), 0, True), (a_host("", 2), 0, True)], Request((RoleRequest(2, 4, ptile=3),)))
def test_one_role_is_placed_wherever_it_can_be(described: list[tuple[HostFacts, int, bool]], request: Request) -> None:
    """It fails only where the twin, which tries everything, fails too."""
    table = a_table(described)
    request = Request(request.roles, tuple(name for name in request.hosts if name in table.rows), request.exclusive)
    assert (place(FreeResources(table), request) is not None) == can_be_placed(table, request)


@examples(120)
@given(hosts, requests)
def test_a_failed_placement_takes_nothing(described: list[tuple[HostFacts, int, bool]], request: Request) -> None:
    """Free resources are unchanged: the same request still fits, in the same place."""
    table = a_table(described)
    probe = Request((a_role(1),))
    room = FreeResources(table)
    before = place(FreeResources(table), probe)
    if place(room, request) is None:
        assert place(room, probe) == before
