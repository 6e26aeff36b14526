"""order, same, span and counted resources against a slow obvious twin that tries every distribution of the tasks."""

from collections.abc import Iterator
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from lavad.core.language.requirements.gpu import parse as parse_gpu
from lavad.core.model import Allocation, Device, HostFacts, Request, RoleRequest
from lavad.core.model.policy import Policy
from lavad.core.model.rules.resources import Resource, ResourceInstance, ResourceKind
from lavad.core.scheduling.capacity.free_resources import FreeResources, HostFree
from lavad.core.scheduling.placement import gpus
from lavad.core.scheduling.placement.place import place
from lavad.core.state.hosts.shared_gpus import SharedGpus
from lavad.core.state.hosts.table import HostTable

LICENCES, SCRATCH = 3, 4
POLICY = Policy(
    resources={name: Resource(name, ResourceKind.NUMERIC) for name in ("lic", "scratch")},
    resource_map=(
        ResourceInstance("lic", str(LICENCES), is_shared=True),
        ResourceInstance("scratch", str(SCRATCH)),
    ),
)
hosts = st.lists(st.tuples(st.integers(1, 5), st.sampled_from(["old", "new"])), min_size=1, max_size=4)
roles = st.builds(
    lambda low, more, span, **rest: RoleRequest(tasks_min=low, tasks_max=low + more, **span, **rest),
    st.integers(1, 7),
    st.sampled_from([0, 0, 1, 3]),
    st.sampled_from(
        [{}, {"stripe": -1}, {"stripe": 1}, {"stripe": 2}, {"block": 2}, {"block": 3}, {"ptile": -1}, {"ptile": 2}]
    ),
    slots_per_task=st.sampled_from([1, 1, 2]),
    same=st.sampled_from(["", "", "model"]),
    order=st.sampled_from(["", "slots", "-slots", "maxslots:-ncpus"]),
    rusage=st.sampled_from(["", "", "scratch=2/task", "scratch=3", "lic=1/task", "lic=2/host", "lic=2"]),
)


def a_table(described: list[tuple[int, str]]) -> HostTable:
    """Hosts n1, n2, ... all open and empty."""
    table = HostTable()
    table.configure(POLICY)
    for number, (slots, model) in enumerate(described, 1):
        table.set_usable(table.add(HostFacts(f"n{number}", slots, 4000, model=model)), usable=True)
    return table


def spreads(role: RoleRequest, described: list[tuple[int, str]]) -> Iterator[tuple[int, ...]]:
    """Every valid distribution of the role's tasks."""
    for tasks in product(*[range(slots // role.slots_per_task + 1) for slots, _ in described]):
        if role.tasks_min <= sum(tasks) <= role.tasks_max and _is_right(role, described, tasks):
            yield tasks


def _is_right(role: RoleRequest, described: list[tuple[int, str]], tasks: tuple[int, ...]) -> bool:
    used = [(count, slots, model) for count, (slots, model) in zip(tasks, described, strict=True) if count]
    if role.same and len({model for _, _, model in used}) > 1:
        return False
    if role.stripe > 0 and max(tasks) > role.stripe:
        return False
    if role.block and sum(count % role.block > 0 for count, _, _ in used) > 1:
        return False
    if role.ptile:
        tiles = [role.ptile if role.ptile > 0 else max(1, slots // role.slots_per_task) for _, slots, _ in used]
        if any(count > tile for (count, _, _), tile in zip(used, tiles, strict=True)):
            return False
        if sum(count != tile for (count, _, _), tile in zip(used, tiles, strict=True)) > 1:
            return False
    return _has_resources(role.rusage, [count for count, _, _ in used])


def _has_resources(rusage: str, counts: list[int]) -> bool:
    return {
        "": True,
        "scratch=2/task": all(2 * count <= SCRATCH for count in counts),
        "scratch=3": True,
        "lic=1/task": sum(counts) <= LICENCES,
        "lic=2/host": 2 * len(counts) <= LICENCES,
        "lic=2": True,
    }[rusage]


def tasks_of(table: HostTable, allocation: Allocation) -> tuple[int, ...]:
    """Tasks on each host, in the order of the table."""
    found = {share.host: sum(share.tasks_by_role) for share in allocation}
    return tuple(found.get(name, 0) for name in table.names)


@settings(max_examples=500, deadline=None)
@given(hosts, roles)
def test_every_spread_is_one_of_the_right_ones(described: list[tuple[int, str]], role: RoleRequest) -> None:
    """The allocation is among all valid ones, and its amounts add up."""
    table = a_table(described)
    allocation = place(FreeResources(table), Request((role,)))
    if allocation is None:
        return
    assert tasks_of(table, allocation) in set(spreads(role, described))
    for share in allocation:
        table.take(table.rows[share.host], share, whole=False)
    for amounts in table.site.numeric():
        assert all(store.free >= 0 for store in amounts.stores)


@settings(max_examples=500, deadline=None)
@given(hosts, roles.filter(lambda role: "lic" not in role.rusage))
def test_nothing_only_where_nothing_is_right(described: list[tuple[int, str]], role: RoleRequest) -> None:
    """Placement succeeds whenever the twin, which tries every distribution, does."""
    found = place(FreeResources(a_table(described)), Request((role,)))
    assert (found is not None) == any(spreads(role, described))


@settings(max_examples=300, deadline=None)
@given(hosts, st.integers(1, 8), st.sampled_from(["slots", "-slots", "maxslots:-ncpus"]))
def test_hosts_are_taken_in_their_order(described: list[tuple[int, str]], tasks: int, order: str) -> None:
    """The first by the order is filled first, then the next; equals go by name."""
    table = a_table(described)
    allocation = place(FreeResources(table), Request((RoleRequest(tasks, tasks, order=order),)))
    sign = 1 if order.startswith("-") else -1
    ranked = sorted(range(len(described)), key=lambda row: (sign * described[row][0], row))
    left, expected = tasks, []
    for row in ranked:
        count = min(left, described[row][0])
        left -= count
        if count:
            expected.append((table.names[row], count))
    assert (allocation is None) == bool(left)
    if allocation is not None:
        assert [(share.host, share.slots) for share in allocation] == expected


links = st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=6, max_size=6)


@settings(max_examples=300, deadline=None)
@given(links, st.integers(0, 63), st.integers(1, 4), st.lists(st.integers(0, 40), min_size=6, max_size=6))
def test_linked_devices_and_shared_memory(wires: list[list[bool]], free: int, count: int, left: list[int]) -> None:
    """glink=yes gives GPUs that are all linked, or fails where no such set exists; gmem only GPUs with room for it."""
    peers = [sum(1 << b for b in range(6) if a != b and wires[min(a, b)][max(a, b)]) for a in range(6)]
    facts = HostFacts("n1", 8, gpus=6, devices=tuple(Device("A100", 40, at // 3, peers[at]) for at in range(6)))
    room = HostFree(8, 0, free, 0, 0)
    chosen = gpus.choose(facts, room, parse_gpu(f"num={count}:glink=yes"), count)
    sets = [
        some
        for some in product((0, 1), repeat=6)
        if sum(some) == count
        and all(free >> a & 1 for a in range(6) if some[a])
        and all(peers[a] >> b & 1 for a in range(6) for b in range(6) if a != b and some[a] and some[b])
    ]
    assert (chosen is not None) == bool(sets)
    assert chosen is None or tuple(int(at in chosen) for at in range(6)) in sets
    room.gpu_shared = {at: SharedGpus(left[at], 1) for at in range(6) if not free >> at & 1}
    shared = gpus.choose(facts, room, parse_gpu("num=1:gmem=20M"), 1)
    able = [at for at in range(6) if free >> at & 1 or left[at] >= 20]
    assert (shared is not None) == bool(able)
    assert shared is None or shared[0] in able
