"""Allocations of nothing but slots, which know where their hosts stand in the host table.

A gang has hundreds of hosts, and its slots are booked and given back in a few steps over columns. To everybody else it
is an allocation like all others, and equal to one that knows nothing.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import HostShare


class PlainAllocation(tuple[HostShare, ...]):
    """``slots`` on the hosts in ``rows``, as many on each of them if it is one number, ``total`` in all.

    The rows are those of the table that has these ``names``; ``at`` are the same rows for use as an index.
    """

    names: Sequence[str]
    rows: list[int]
    at: NDArray[np.int64]
    slots: NDArray[np.int64] | int
    total: int


def plain_allocation(
    shares: tuple[HostShare, ...], names: Sequence[str], rows: list[int], slots: list[int]
) -> PlainAllocation:
    """These shares, of so many slots each, on these rows of the table."""
    made = PlainAllocation(shares)
    made.names, made.rows = names, rows
    made.at = np.array(rows)
    made.slots = slots[0] if slots.count(slots[0]) == len(slots) else np.array(slots)
    made.total = sum(slots)
    return made
