"""Into which sets of hosts a role may go: hosts that are the same in something, and compute units."""

from collections.abc import Callable, Iterator

from lavad.core.indexes.hosts import HostTable
from lavad.core.requirements.cu import Units
from lavad.core.scheduling.room import Room

Capacity = Callable[[int], int]  # how many tasks a host (by row) has room for


def alike(room: Room, rows: list[int], names: tuple[str, ...], capacity: Capacity, wanted: int) -> Iterator[list[int]]:
    """Rows in groups of equal values: those first that hold what is wanted, then the larger, then the earlier."""
    columns = [room.values(name)[rows].tolist() for name in names]
    place = {row: at for at, row in enumerate(rows)}  # rows may be there that have become full since: they say nothing
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


def unit_rows(table: HostTable, kind: str) -> list[list[int]]:
    """Rows of each compute unit of a type, in the order of the configuration; a host belongs to the first."""
    kind = kind or (table.unit_types[0] if table.unit_types else "")
    units = [unit for unit in table.units if not kind or unit.type == kind]

    def make() -> list[list[int]]:
        seen: set[int] = set()
        found = []
        for unit in units:
            mine = [row for row, name in enumerate(table.names) if row not in seen and name in unit.hosts]
            seen.update(mine)
            found.append(mine)
        return found

    return table.cached(("units", kind), make)


def within(room: Room, rows: list[int], units: Units, capacity: Capacity, least: int, most: int) -> Iterator[list[int]]:
    """Sets of rows that keep to cu[...], the best first; ``least`` and ``most`` are the tasks wanted."""
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
        yield [row for _, _, mine in offers for row in mine]
        return
    yield from _few(offers, units.most, most)


def _is_used(room: Room, members: list[int]) -> bool:
    return any(room.free(row).attempts for row in members)


def _few(offers: list[tuple[int, int, list[int]]], allowed: int, most: int) -> Iterator[list[int]]:
    """In the order of preference so many units that together hold enough; in the end the largest ones."""
    for start in range(len(offers)):
        some = offers[start : start + allowed]
        if sum(tasks for tasks, _, _ in some) >= most:
            yield [row for _, _, mine in some for row in mine]
    largest = sorted(offers, key=lambda offer: (-offer[0], offer[1]))[:allowed]
    yield [row for _, _, mine in largest for row in mine]


def _balanced(
    offers: list[tuple[int, int, list[int]]], allowed: int, least: int, most: int, capacity: Capacity
) -> Iterator[list[int]]:
    """As few units as can take equal parts: of each only as many hosts as its part needs."""
    for wanted in dict.fromkeys((most, least)):
        for count in range(1, min(allowed, len(offers)) + 1):
            each = -(-wanted // count)
            fitting = [offer for offer in offers if offer[0] >= each][:count]
            if len(fitting) == count:
                yield [row for _, _, mine in fitting for row in _enough(mine, each, capacity)]
                break


def _enough(rows: list[int], tasks: int, capacity: Capacity) -> list[int]:
    found = []
    for row in rows:
        if tasks <= 0:
            break
        found.append(row)
        tasks -= capacity(row)
    return found
