"""Which processors each task is bound to: whole threads, cores, sockets or NUMA nodes, near one another."""

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from lavad.core.language.requirements.affinity import Affinity
from lavad.core.scheduling.placement.gpus import bits_of


class Topology(NamedTuple):
    """Masks of processors: one for each thread, core, socket and node, in order of their lowest processor."""

    thread: tuple[int, ...]
    core: tuple[int, ...]
    socket: tuple[int, ...]
    numa: tuple[int, ...]

    def units(self, name: str) -> tuple[int, ...]:
        """The masks of one kind of unit."""
        found: tuple[int, ...] = getattr(self, name)
        return found


@lru_cache(maxsize=1024)
def topology_of(text: str) -> Topology:
    """What an agent says of its processors: "cpu core socket node" of each, joined by commas."""
    kinds: list[dict[tuple[int, ...], int]] = [defaultdict(int) for _ in range(4)]
    for one in filter(None, text.split(",")):
        cpu, core, socket, node = map(int, one.split())
        for kind, key in zip(kinds, ((cpu,), (socket, core), (socket,), (node,)), strict=True):
            kind[key] |= 1 << cpu
    return Topology(*(tuple(sorted(kind.values(), key=lambda mask: mask & -mask)) for kind in kinds))


def choose(text: str, free: int, wanted: Affinity, tasks: int) -> tuple[tuple[int, ...], ...] | None:
    """The processors of each task, none of which anything else has; None when there are not enough."""
    topology = topology_of(text)
    found: list[tuple[int, ...]] = []
    left = free
    for _ in range(tasks):
        mask = _for_task(topology, left, free, wanted)
        if not mask:
            return None
        found.append(tuple(bits_of(mask)))
        left &= ~(_around(topology, mask, wanted) if wanted.exclusive_in == "injob" else mask)
    return tuple(found)


def idle_beside(text: str, cpus: tuple[tuple[int, ...], ...], wanted: Affinity) -> tuple[int, ...]:
    """Processors that no other job may have beside these, because it asked to be alone there."""
    mask = sum(1 << cpu for cpu in {cpu for task in cpus for cpu in task})
    if wanted.exclusive_in != "alljobs":
        return ()
    return tuple(bits_of(_around(topology_of(text), mask, wanted) & ~mask))


def bound(text: str, cpus: tuple[int, ...], wanted: Affinity) -> tuple[int, ...]:
    """cpubind=: all processors of the units that hold what a task was given."""
    mask = sum(1 << cpu for cpu in cpus)
    units = topology_of(text).units(wanted.bind) if wanted.bind else ()
    return tuple(bits_of(sum(unit for unit in units if unit & mask) | mask))


@lru_cache(maxsize=1024)
def near(text: str, nodes: tuple[int, ...]) -> int:
    """A bit for each processor of these memory nodes."""
    lines = [tuple(map(int, one.split())) for one in text.split(",") if one]
    return sum(1 << cpu for cpu, _, _, node in lines if node in nodes)


def nodes_of(text: str, cpus: Iterable[int]) -> tuple[int, ...]:
    """Memory nodes near these processors."""
    chosen = set(cpus)
    lines = [tuple(map(int, one.split())) for one in text.split(",") if one]
    return tuple(sorted({node for cpu, _, _, node in lines if cpu in chosen}))


def _around(topology: Topology, mask: int, wanted: Affinity) -> int:
    """All of the units within which a task wants to be alone."""
    return sum(unit for unit in topology.units(wanted.exclusive) if unit & mask) | mask


def _for_task(topology: Topology, free: int, at_first: int, wanted: Affinity) -> int:
    """Units for one task, all within one ``same`` unit if it asks for that; 0 when there are not enough.

    ``at_first`` is what was free before earlier tasks of the same job got theirs.
    """
    units = [unit for unit in topology.units(wanted.unit) if unit & free == unit]
    if wanted.exclusive and wanted.exclusive_in == "alljobs":
        idle = [unit for unit in topology.units(wanted.exclusive) if unit & at_first == unit]
        units = [unit for unit in units if any(unit & one == unit for one in idle)]
    need = wanted.count * wanted.times
    groups = topology.units(wanted.same) if wanted.same else (*topology.socket, -1)
    fitting = [mine for group in groups if len(mine := [unit for unit in units if unit & group == unit]) >= need]
    if not fitting:
        return 0
    # The fullest group that has enough, so that large ones stay whole; all together only when none has.
    best = max(fitting, key=len) if wanted.distribution == "balance" else min(fitting, key=len)
    return sum(best[:need])
