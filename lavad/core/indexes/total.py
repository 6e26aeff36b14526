"""What many host shares come to on each host: summed one by one, and read as columns over the hosts that have any.

Hundreds of shares on a few dozen hosts are summed faster so than by sorting them.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import HostShare

Column = NDArray[np.int64]


class Total:
    """Sums by row of the host table."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums: dict[int, list[int]] = {}  # of each row: shares, slots, memory in MiB

    def add_all(self, rows: Iterable[int], shares: Iterable[HostShare]) -> list[tuple[int, HostShare]]:
        """More shares, each with its row; those that take something else, too."""
        sums, special = self._sums, []
        for row, share in zip(rows, shares, strict=True):
            _, slots, memory_mib, gpus, _, resources, _, cpus, _, _ = share
            found = sums.get(row)
            if found is None:
                sums[row] = [1, slots, memory_mib]
            else:
                found[0] += 1
                found[1] += slots
                found[2] += memory_mib
            if gpus or cpus or resources:
                special.append((row, share))
        return special

    def columns(self) -> tuple[Column, Column, Column, Column]:
        """Rows, and for each how many shares it has, their slots and their memory."""
        rows = np.fromiter(self._sums, np.int64, len(self._sums))
        shares, slots, memory_mib = np.array(list(self._sums.values()), np.int64).reshape(-1, 3).T
        return rows, shares, slots, memory_mib
