"""What a gang holds that holds nothing but slots, as columns: it comes and goes in a few steps, however many hosts."""

from typing import TYPE_CHECKING

import numpy as np

from lavad.core.allocations import slots_by_host

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lavad.core.model import Allocation


class Booked:
    """``slots`` on each of the rows ``at``, ``total`` in all. It is of just these ``shares``: others are not booked."""

    __slots__ = ("at", "rows", "shares", "slots", "total")

    def __init__(self, shares: "Allocation", rows: list[int]) -> None:
        slots = slots_by_host(shares)
        self.shares = shares
        self.rows = rows
        self.at: NDArray[np.int64] = np.array(rows)
        self.slots: NDArray[np.int64] = np.array(slots)
        self.total = sum(slots)
