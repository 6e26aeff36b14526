"""Sets of hosts that a role may be placed on: hosts alike under same[...], and compute units under cu[...]."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from lavad.core.language.requirements.cu import ComputeUnits
from lavad.core.scheduling.capacity.free_resources import FreeResources
from lavad.core.state.hosts.compute_units import unit_rows


class HostSet(NamedTuple):
    """Hosts (by row) in order of preference; ``parts`` groups them by compute unit, with the most tasks of each."""

    rows: list[int]
    parts: tuple[tuple[list[int], int], ...] = ()


Capacity = Callable[[int], int]  # number of tasks that fit on a host (by row)


def alike(
    room: FreeResources, rows: list[int], names: tuple[str, ...], capacity: Capacity, wanted: int
) -> Iterator[list[int]]:
    """Group rows by equal values: first the groups that hold all tasks wanted, then larger, then earlier ones."""
    columns = [room.values(name)[rows].tolist() for name in names]
    place = {row: at for at, row in enumerate(rows)}  # rows without free capacity do not count as first
    groups: dict[tuple[object, ...], list[int]] = {}
    for row, *values in zip(rows, *columns, strict=True):
        groups.setdefault(tuple(values), []).append(row)
    parts = list(groups.values())
    if len(parts) == 1:
        yield parts[0]
        return
    ranked = []
    for part in parts:
        rooms = [(capacity(row), place[row]) for row in part]
        first = min((at for tasks, at in rooms if tasks), default=len(rows))
        ranked.append((-min(wanted, sum(tasks for tasks, _ in rooms)), first, part))
    yield from (part for _, _, part in sorted(ranked))


def within(
    room: FreeResources, rows: list[int], units: ComputeUnits, capacity: Capacity, least: int, most: int
) -> Iterator[HostSet]:
    """Sets of rows that satisfy cu[...], in order of preference, for ``least`` to ``most`` tasks."""
    place = {row: at for at, row in enumerate(rows)}
    offers = []
    for at, members in enumerate(unit_rows(room.table, units.type)):
        mine = sorted((row for row in members if row in place), key=place.__getitem__)
        tasks = sum(map(capacity, mine))
        if tasks and tasks >= units.usable_slots and not (units.exclusive and _is_used(room, members)):
            offers.append((tasks, at, mine))
    if units.preference != "config":
        sign = -1 if units.preference == "maxavail" else 1
        offers.sort(key=lambda offer: (sign * offer[0], offer[1]))
    if units.balance:
        yield from _balanced(offers, units.most or len(offers), least, most, capacity)
        return
    if not units.most:
        yield HostSet([row for _, _, mine in offers for row in mine])
        return
    yield from map(HostSet, _few(offers, units.most, most))


def _is_used(room: FreeResources, members: list[int]) -> bool:
    return any(room.free(row).attempts for row in members)


def _few(offers: list[tuple[int, int, list[int]]], allowed: int, most: int) -> Iterator[list[int]]:
    """In order of preference, each run of ``allowed`` units that holds all tasks; finally the largest units."""
    for start in range(len(offers)):
        some = offers[start : start + allowed]
        if sum(tasks for tasks, _, _ in some) >= most:
            yield [row for _, _, mine in some for row in mine]
    largest = sorted(offers, key=lambda offer: (-offer[0], offer[1]))[:allowed]
    yield [row for _, _, mine in largest for row in mine]


def _balanced(
    offers: list[tuple[int, int, list[int]]], allowed: int, least: int, most: int, capacity: Capacity
) -> Iterator[HostSet]:
    """Fewest units that can hold equal parts; of each unit only as many hosts and tasks as its part needs."""
    for wanted in dict.fromkeys((most, least)):
        for count in range(1, min(allowed, len(offers)) + 1):
            each = -(-wanted // count)
            fitting = [offer for offer in offers if offer[0] >= each][:count]
            if len(fitting) == count:
                parts = tuple([(_enough(mine, each, capacity), each) for _, _, mine in fitting])
                yield HostSet([row for mine, _ in parts for row in mine], parts)
                break


def _enough(rows: list[int], tasks: int, capacity: Capacity) -> list[int]:
    found = []
    for row in rows:
        if tasks <= 0:
            break
        found.append(row)
        tasks -= capacity(row)
    return found
