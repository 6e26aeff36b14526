"""Host shares of slots and nothing else: what most jobs hold. Equal ones are one object, found by slots and row."""

from itertools import compress

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import Allocation, HostShare
from lavad.core.plain import plain_allocation

_MANY = 6  # so many shares are booked at once: fewer are faster one by one
_PLACES_MAX = 1_000_000  # of shares that are kept for the next job; what is not kept is made again


class PlainShares:
    """Shares of one-slot tasks on the hosts with these ``names``, which are those of a host table, by row."""

    __slots__ = ("_known", "_names")

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._known: dict[int, list[HostShare | None]] = {}  # by slots and row, as far as somebody got them

    def note_host(self) -> None:
        """There is one more."""
        self._known.clear()

    def one(self, row: int, slots: int) -> HostShare:
        """So many one-slot tasks on a host."""
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

    def many(self, rows: list[int], slots: list[int], at: NDArray[np.int64] | None = None) -> Allocation:
        """The same on several hosts, of which those give nothing that have no slots here. ``at``: the rows, too."""
        if len(rows) == 1:
            return (self.one(rows[0], slots[0]),)
        if not all(slots):
            rows, slots, at = list(compress(rows, slots)), list(filter(None, slots)), None
        shares = self._alike(rows, slots[0]) if slots.count(slots[0]) == len(slots) else None
        if shares is None:
            shares = tuple(map(self.one, rows, slots))
        return shares if len(rows) < _MANY else plain_allocation(shares, self._names, rows, slots, at)

    def _alike(self, rows: list[int], slots: int) -> Allocation | None:
        """As many slots on each of these hosts; None where nobody ever had that there."""
        known = self._known.get(slots)
        shares = tuple(map(known.__getitem__, rows)) if known is not None else (None,)
        return None if None in shares else shares  # type: ignore[return-value]
