"""Usable hosts of a request and their preference: the hosts named by -m, within its queue's HOSTS.

Hosts with an exclusive resource (``!name`` in lsf.cluster) are only for jobs that name it in their select.

The result is kept as columns over all hosts, until hosts or configuration change.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lavad.core.language.requirements import host_list
from lavad.core.model import Request
from lavad.core.state.hosts.table import HostTable


@dataclass(frozen=True, slots=True)
class UsableHosts:
    """Usable hosts with their preference: ``levels``, then ``places``, lowest first; defined for ``rows`` only.

    ``first`` are the hosts one of which must be the job's first host; None if any may be.
    """

    rows: NDArray[np.intp]
    contains: NDArray[np.bool_]
    levels: NDArray[np.int64]
    places: NDArray[np.int64]
    first: frozenset[str] | None


def usable(table: HostTable, request: Request) -> UsableHosts:
    """Hosts that the request may use by -m and its queue's HOSTS."""
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
    """True if the host has an exclusive resource that the request does not name."""
    return not request.avoids.isdisjoint(table.facts[row].exclusive_resources)
