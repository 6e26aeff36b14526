"""Sums of many host shares at once, and shared objects for equal shares of slots alone.

``ShareTotals`` sums shares one by one and is read as columns over its hosts: for hundreds of shares on a few dozen
hosts that is faster than sorting. ``SlotShares`` finds the one object of a share by its slots and row.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import Allocation, HostShare

Column = NDArray[np.int64]


class ShareTotals:
    """Sums by row of the host table."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums: dict[int, list[int]] = {}  # by row: number of shares, slots, memory in MiB

    def add_all(self, rows: Iterable[int], shares: Iterable[HostShare]) -> list[tuple[int, HostShare]]:
        """Add shares with their rows; return those that also hold other resources."""
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
        """Rows, and the number of shares, the slots and the memory in MiB of each."""
        rows = np.fromiter(self._sums, np.int64, len(self._sums))
        shares, slots, memory_mib = np.array(list(self._sums.values()), np.int64).reshape(-1, 3).T
        return rows, shares, slots, memory_mib


_PLACES_MAX = 1_000_000  # shares cached; others are made again


class SlotShares:
    """Shares of one-slot tasks on the hosts of a host table; ``names`` are their names by row."""

    __slots__ = ("_known", "_names")

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._known: dict[int, list[HostShare | None]] = {}  # by slots and row; None: not made yet

    def note_host(self) -> None:
        """Drop the cache when the table gets another host."""
        self._known.clear()

    def one(self, row: int, slots: int) -> HostShare:
        """Share of ``slots`` one-slot tasks on a host."""
        shares = self._known.get(slots)
        if shares is None:
            shares = self._new(slots)
        known = shares[row]
        if known is None:
            known = shares[row] = HostShare(self._names[row], slots, 0, (), (slots,))
        return known

    def _new(self, slots: int) -> list[HostShare | None]:
        if len(self._known) * len(self._names) > _PLACES_MAX:
            self._known.clear()
        shares = self._known[slots] = [None] * len(self._names)
        return shares

    def many(self, rows: Iterable[int], slots: Iterable[int]) -> Allocation:
        """Such shares on several hosts, without hosts of 0 slots."""
        return tuple([self.one(row, number) for row, number in zip(rows, slots, strict=True) if number])
