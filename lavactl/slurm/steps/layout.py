"""Layout of a step: the host of each rank. Pure.

Invariant: ranks fill one host after the other, in the order of the allocation, and every host of the step has a rank.
"""

from typing import NamedTuple


class Wish(NamedTuple):
    """Numbers that a step asks for; None where it says nothing.

    Attributes:
        relative: number of the first host, from 0.
        cpus: slots of each task.
        overcommit: more tasks than slots are wanted.
    """

    tasks: int | None = None
    nodes: int | None = None
    per_node: int | None = None
    cpus: int = 1
    relative: int = 0
    hosts: tuple[str, ...] = ()
    overcommit: bool = False


class Misfit(Exception):
    """Step that does not fit the allocation: one sentence."""


def layout(slots: dict[str, int], wish: Wish) -> list[str]:
    """Host of each rank.

    Args:
        slots: of each host of the allocation, in order.

    Raises:
        Misfit: the step does not fit.
    """
    hosts = _hosts(list(slots), wish)
    tasks = wish.tasks if wish.tasks is not None else (wish.per_node or 1) * len(hosts)
    hosts = hosts[: min(len(hosts), tasks)]
    if wish.per_node and wish.per_node * len(hosts) < tasks:
        raise Misfit(f"{tasks} tasks do not fit on {len(hosts)} hosts with {wish.per_node} on each")
    rooms = [max(1, slots[host] // wish.cpus) for host in hosts]
    if wish.per_node:
        rooms = [wish.per_node if wish.overcommit else min(room, wish.per_node) for room in rooms]
    if sum(rooms) < tasks:
        if not wish.overcommit:
            of_cpus = f" of {wish.cpus} processors" if wish.cpus > 1 else ""
            raise Misfit(f"more processors requested than permitted: {tasks} tasks{of_cpus} on {sum(rooms)} places")
        rooms = [-(-tasks // len(hosts))] * len(hosts)
    return _filled(hosts, rooms, tasks)


def _hosts(known: list[str], wish: Wish) -> list[str]:
    if missing := [host for host in wish.hosts if host not in known]:
        raise Misfit(f"host {missing[0]} is not in the allocation")
    hosts = [host for host in known if host in wish.hosts] if wish.hosts else known[wish.relative :]
    if wish.nodes is not None:
        if len(hosts) < wish.nodes:
            raise Misfit(f"{wish.nodes} hosts are asked for, and the allocation has {len(hosts)}")
        hosts = hosts[: wish.nodes]
    if not hosts:
        raise Misfit(f"the allocation has {len(known)} hosts, so that none has the number {wish.relative}")
    return hosts


def _filled(hosts: list[str], rooms: list[int], tasks: int) -> list[str]:
    """Give each host one rank, then fill the hosts in turn."""
    counts, left = [1] * len(hosts), tasks - len(hosts)
    for number, room in enumerate(rooms):
        more = max(0, min(left, room - 1))
        counts[number] += more
        left -= more
    return [host for host, count in zip(hosts, counts, strict=True) for _ in range(count)]


def needs(ranks: list[str], cpus: int, slots: dict[str, int]) -> dict[str, int]:
    """Slots that a step takes on each host: all of a host that it overcommits."""
    counts: dict[str, int] = {}
    for host in ranks:
        counts[host] = counts.get(host, 0) + cpus
    return {host: min(count, slots[host]) for host, count in counts.items()}
