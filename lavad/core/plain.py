"""Allocations of nothing but slots, which know where their hosts stand in the host table.

A gang has hundreds of hosts, and its slots are booked and given back in a few steps over columns. To everybody else it
is an allocation like all others, and equal to one that knows nothing.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import HostShare


class PlainAllocation(tuple[HostShare, ...]):
    """``slots`` on the hosts in ``rows``, ``total`` in all.

    The rows are those of the table that has these ``names``; ``at`` are the same rows for use as an index.
    """

    names: Sequence[str]
    rows: list[int]
    at: NDArray[np.int64]
    slots: NDArray[np.int64]
    total: int


def plain_allocation(
    shares: tuple[HostShare, ...],
    names: Sequence[str],
    rows: list[int],
    slots: list[int],
    at: NDArray[np.int64] | None = None,
) -> PlainAllocation:
    """These shares, of so many slots each, on these rows of the table; ``at``: the rows once more, if they are there
    as a column."""
    made = PlainAllocation(shares)
    made.names, made.rows = names, rows
    made.at = np.array(rows) if at is None else at
    made.slots = _column(slots[0], len(slots)) if slots.count(slots[0]) == len(slots) else np.array(slots)
    made.total = sum(slots)
    return made


@lru_cache(maxsize=1024)
def _column(slots: int, hosts: int) -> NDArray[np.int64]:
    """As many slots on each of so many hosts. To be read alone."""
    return np.full(hosts, slots)
