"""CPU binding: the processors of each task as whole threads, cores, sockets or NUMA nodes, near one another."""

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from lavad.core.language.requirements.affinity import Affinity
from lavad.core.scheduling.placement.gpus import bits_of


class Topology(NamedTuple):
    """Processor masks of each thread, core, socket and NUMA node, in order of their lowest processor."""

    thread: tuple[int, ...]
    core: tuple[int, ...]
    socket: tuple[int, ...]
    numa: tuple[int, ...]

    def units(self, name: str) -> tuple[int, ...]:
        """Masks of one kind of unit."""
        found: tuple[int, ...] = getattr(self, name)
        return found


@lru_cache(maxsize=1024)
def topology_of(text: str) -> Topology:
    """Parse the agent's report: "cpu core socket node" of each processor, joined by commas."""
    kinds: list[dict[tuple[int, ...], int]] = [defaultdict(int) for _ in range(4)]
    for one in filter(None, text.split(",")):
        cpu, core, socket, node = map(int, one.split())
        for kind, key in zip(kinds, ((cpu,), (socket, core), (socket,), (node,)), strict=True):
            kind[key] |= 1 << cpu
    return Topology(*(tuple(sorted(kind.values(), key=lambda mask: mask & -mask)) for kind in kinds))


def choose(text: str, free: int, wanted: Affinity, tasks: int) -> tuple[tuple[int, ...], ...] | None:
    """Choose unused processors for each task; None if there are too few."""
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
    """Processors that stay idle beside these, because the job asked for exclusive units."""
    mask = sum(1 << cpu for cpu in {cpu for task in cpus for cpu in task})
    if wanted.exclusive_in != "alljobs":
        return ()
    return tuple(bits_of(_around(topology_of(text), mask, wanted) & ~mask))


def bound(text: str, cpus: tuple[int, ...], wanted: Affinity) -> tuple[int, ...]:
    """Processors of all units (cpubind=) that contain a task's processors."""
    mask = sum(1 << cpu for cpu in cpus)
    units = topology_of(text).units(wanted.bind) if wanted.bind else ()
    return tuple(bits_of(sum(unit for unit in units if unit & mask) | mask))


@lru_cache(maxsize=1024)
def near(text: str, nodes: tuple[int, ...]) -> int:
    """Mask of the processors of these NUMA nodes."""
    lines = [tuple(map(int, one.split())) for one in text.split(",") if one]
    return sum(1 << cpu for cpu, _, _, node in lines if node in nodes)


def nodes_of(text: str, cpus: Iterable[int]) -> tuple[int, ...]:
    """NUMA nodes of these processors."""
    chosen = set(cpus)
    lines = [tuple(map(int, one.split())) for one in text.split(",") if one]
    return tuple(sorted({node for cpu, _, _, node in lines if cpu in chosen}))


def _around(topology: Topology, mask: int, wanted: Affinity) -> int:
    """Mask of all units that a task needs exclusively."""
    return sum(unit for unit in topology.units(wanted.exclusive) if unit & mask) | mask


def _for_task(topology: Topology, free: int, at_first: int, wanted: Affinity) -> int:
    """Choose units for one task, all within one ``same`` unit if requested; 0 if there are too few.

    Args:
        at_first: processors free before earlier tasks of the same job took theirs.
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
    # The fullest group that suffices, so that large ones stay whole; the union only if none does.
    best = max(fitting, key=len) if wanted.distribution == "balance" else min(fitting, key=len)
    return sum(best[:need])
