"""Which hosts a request may use, and how welcome they are: those that -m names, among those of its queue's HOSTS.

Hosts with an exclusive resource (``!name`` in lsf.cluster) are for jobs that name it in their select alone.

As columns over all hosts, made once for as long as hosts and rules stay as they are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lavad.core.language.requirements import host_list
from lavad.core.model import Request
from lavad.core.state.hosts.table import HostTable


@dataclass(frozen=True, slots=True)
class UsableHosts:
    """``levels`` and ``places`` rank hosts, the smallest first; they mean something in ``rows`` alone.

    ``first`` are the hosts one of which must be the job's first one; None: any may be.
    """

    rows: NDArray[np.intp]
    contains: NDArray[np.bool_]
    levels: NDArray[np.int64]
    places: NDArray[np.int64]
    first: frozenset[str] | None


def usable(table: HostTable, request: Request) -> UsableHosts:
    """What -m and the queue mean among the hosts there are."""
    key = ("usable", request.hosts, request.queue_hosts, request.avoids)
    return table.cached(key, lambda: _usable(table, request))


def _usable(table: HostTable, request: Request) -> UsableHosts:
    found = host_list.chosen(request.hosts, table.names, table.groups)
    if request.queue_hosts is not None:
        found = host_list.confined(found, request.hosts, request.queue_hosts)
    ranked = [(table.rows[name], rank) for name, rank in found.ranks.items()]
    if request.avoids:
        ranked = [(row, rank) for row, rank in ranked if not is_avoided(table, request, row)]
    rows = np.array([row for row, _ in ranked], np.intp)
    ranks = np.array([rank for _, rank in ranked], np.int64).reshape(-1, 2)
    contains = np.zeros(len(table), np.bool_)
    contains[rows] = True
    levels, places = np.zeros((2, len(table)), np.int64)
    levels[rows], places[rows] = ranks.T
    return UsableHosts(rows, contains, levels, places, found.first)


def is_avoided(table: HostTable, request: Request, row: int) -> bool:
    """Has the host an exclusive resource that the request does not name?"""
    return not request.avoids.isdisjoint(table.facts[row].exclusive_resources)
