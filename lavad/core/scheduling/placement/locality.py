"""GPU and CPU locality: devices and processors of a job on one host, chosen together under aff=yes.

As in LSF this is strict: each GPU must be on a NUMA node on which the job has processors, or the host is refused. With
aff=no each is chosen independently.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

from lavad.core.language.requirements.affinity import Affinity
from lavad.core.language.requirements.gpu import GpuRequirement
from lavad.core.model import HostFacts
from lavad.core.scheduling.capacity.free_resources import HostFree
from lavad.core.scheduling.placement import cpus as processors
from lavad.core.scheduling.placement import gpus as devices

Cpus = tuple[tuple[int, ...], ...]
_NODES_MAX = 3  # most NUMA nodes combined for one job's devices


class GpusAndCpus(NamedTuple):
    """Device numbers, and the processors of each task; each is empty if not requested."""

    gpus: tuple[int, ...]
    cpus: Cpus


def choose(
    facts: HostFacts, free: HostFree, gpus: GpuRequirement | None, count: int, affinity: Affinity | None, tasks: int
) -> GpusAndCpus | None:
    """Choose ``count`` devices and the processors of ``tasks`` tasks; None if the host cannot provide them."""
    wanted = gpus if count else None
    if wanted is not None and affinity is not None and wanted.aff and facts.devices:
        return _near(facts, free, wanted, count, affinity, tasks)
    chosen = devices.choose(facts, free, wanted, count) if wanted is not None else ()
    cpus = processors.choose(facts.topology, free.cpus, affinity, tasks) if affinity is not None else ()
    return GpusAndCpus(chosen, cpus) if chosen is not None and cpus is not None else None


def _near(
    facts: HostFacts, free: HostFree, wanted: GpuRequirement, count: int, affinity: Affinity, tasks: int
) -> GpusAndCpus | None:
    """Choose devices and processors on as few NUMA nodes as possible."""
    known = sorted({device.numa for device in facts.devices})
    for size in range(1, min(len(known), _NODES_MAX) + 1):
        for nodes in combinations(known, size):
            among = sum(1 << at for at, device in enumerate(facts.devices) if device.numa in nodes)
            chosen = devices.choose(facts, free, wanted, count, among)
            if chosen is None:
                continue
            theirs = {facts.devices[gpu].numa for gpu in chosen}
            for cpus in _placed(facts.topology, free.cpus, affinity, tasks, nodes):
                if theirs <= set(processors.nodes_of(facts.topology, [cpu for task in cpus for cpu in task])):
                    return GpusAndCpus(chosen, cpus)
    return None


def _placed(topology: str, free: int, affinity: Affinity, tasks: int, nodes: tuple[int, ...]) -> Iterator[Cpus]:
    """Processors on these NUMA nodes: first any, then tasks spread evenly over the nodes."""
    anywhere = processors.choose(topology, free & processors.near(topology, nodes), affinity, tasks)
    if anywhere is not None:
        yield anywhere
    if len(nodes) == 1 or tasks < len(nodes):
        return
    parts = []
    for at, node in enumerate(nodes):
        here = tasks * (at + 1) // len(nodes) - tasks * at // len(nodes)
        parts.append(processors.choose(topology, free & processors.near(topology, (node,)), affinity, here))
    if all(part is not None for part in parts):
        yield tuple(task for part in parts for task in part or ())
