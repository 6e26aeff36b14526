"""Which hosts a request may use, and how welcome they are: those that -m names, among those of its queue's HOSTS.

As columns over all hosts, made once for as long as hosts and rules stay as they are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lavad.core.indexes.hosts import HostTable
from lavad.core.model import Request
from lavad.core.requirements import named


@dataclass(frozen=True, slots=True)
class Usable:
    """``levels`` and ``places`` rank hosts, the smallest first; they mean something in ``rows`` alone.

    ``first`` is the host that must be the job's first one, "" where there is none.
    """

    rows: NDArray[np.intp]
    contains: NDArray[np.bool_]
    levels: NDArray[np.int64]
    places: NDArray[np.int64]
    first: str


def usable(table: HostTable, request: Request) -> Usable:
    """What -m and the queue mean among the hosts there are."""
    return table.cached(("usable", request.hosts, request.queue_hosts), lambda: _usable(table, request))


def _usable(table: HostTable, request: Request) -> Usable:
    found = named.chosen(request.hosts, table.names, table.groups)
    if request.queue_hosts is not None:
        found = named.confined(found, request.hosts, request.queue_hosts)
    rows = np.array([table.rows[name] for name in found.ranks], np.intp)
    ranks = np.array(list(found.ranks.values()), np.int64).reshape(-1, 2)
    contains = np.zeros(len(table), np.bool_)
    contains[rows] = True
    levels, places = np.zeros((2, len(table)), np.int64)
    levels[rows], places[rows] = ranks.T
    return Usable(rows, contains, levels, places, found.first)
