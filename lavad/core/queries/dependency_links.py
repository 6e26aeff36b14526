"""Job dependencies over several steps: parents are the jobs named in a condition, children those held by it.

A condition that has become true is forgotten, and its links with it.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from lavad.core.cluster_view import ClusterView
from lavad.core.language.dependency import clauses_of

LINKS_MAX = 10_000  # of one answer


@dataclass(frozen=True, slots=True)
class Link:
    """Dependency of two jobs. ``index``: element of the relative, 0 for all; ``level`` 1: a direct dependency."""

    job: int
    relative: int
    index: int
    level: int


def links(cluster: ClusterView, job: int, children: bool, depth: int) -> list[Link]:
    """Relatives of a job, nearest first, up to ``depth`` steps away; each job is followed once."""
    found: list[Link] = []
    seen, due = {job}, deque([(job, 1)])
    while due and len(found) < LINKS_MAX:
        one, level = due.popleft()
        for relative, index in _children(cluster, one) if children else _parents(cluster, one):
            found.append(Link(one, relative, index, level))
            if level < depth and relative not in seen:
                seen.add(relative)
                due.append((relative, level + 1))
    return found[:LINKS_MAX]


def _parents(cluster: ClusterView, job: int) -> Iterator[tuple[int, int]]:
    condition = cluster.dependants.conditions.get(job)
    if condition is not None:
        refs = [clause.ref for clause in clauses_of(condition)]
        yield from dict.fromkeys((ref.job, ref.index) for ref in refs if ref.job)


def _children(cluster: ClusterView, job: int) -> Iterator[tuple[int, int]]:
    return ((child, 0) for child in cluster.dependants.of(job))
