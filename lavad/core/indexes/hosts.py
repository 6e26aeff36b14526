"""Hosts as columns: what the scheduler compares for thousands of hosts at once.

Kept current by ``apply``. A row belongs to one host for the life of the process; free figures count only what is not
held by an attempt, and ``usable`` says whether the host may take anything now.
"""

import copy
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import Allocation, HostFacts, HostShare

_GROWTH = 64
_COLUMNS = ("slots_max", "slots_free", "memory_free_mib", "gpus_free", "attempts", "usable", "taken_whole", "_open")
_MANY = 6  # so many shares are booked at once: fewer are faster one by one
_PLAIN_SHARES_MAX = 100_000  # kept for the next job; what is not kept is made again
LOAD_INDICES = ("r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "it", "tmp", "swp", "mem")


class HostTable:
    """Columns over hosts. ``gpu_free`` holds a bit for each free device; exclusive hosts have no room at all."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.rows: dict[str, int] = {}
        self.gpu_free: list[int] = []
        self._gpu_held: list[int] = []  # also devices that the host no longer tells of
        self._gpu_again: dict[tuple[int, int], int] = {}  # (row, device) -> holders beyond the first
        self.slots_max: NDArray[np.int64] = np.zeros(_GROWTH, np.int64)
        self.slots_free: NDArray[np.int64] = np.zeros(_GROWTH, np.int64)
        self.memory_free_mib: NDArray[np.int64] = np.zeros(_GROWTH, np.int64)
        self.gpus_free: NDArray[np.int64] = np.zeros(_GROWTH, np.int64)
        self.attempts: NDArray[np.int64] = np.zeros(_GROWTH, np.int64)
        self.usable: NDArray[np.bool_] = np.zeros(_GROWTH, np.bool_)
        self.taken_whole: NDArray[np.bool_] = np.zeros(_GROWTH, np.bool_)
        self.load: NDArray[np.float64] = np.zeros((_GROWTH, len(LOAD_INDICES)), np.float64)
        self.facts: list[HostFacts] = []
        self.facts_version = 0  # raised when any host's facts change: cached select masks are made anew
        self._place: NDArray[np.int64] = np.zeros(0, np.int64)
        self._is_sorted = True  # rows happen to be in natural order of names
        self._plain_shares: dict[tuple[int, int], HostShare] = {}
        self.changed: set[int] = set()  # rows where room may have appeared since the last pass
        self.slots_open = 0  # free slots of all hosts that may take anything now
        self._is_open: list[bool] = []
        self._open: NDArray[np.bool_] = np.zeros(_GROWTH, np.bool_)  # the same as a column

    def __len__(self) -> int:
        return len(self.names)

    def add(self, facts: HostFacts) -> int:
        """Give a host a row; its room starts as all of it."""
        row = len(self.names)
        if row == len(self.slots_max):
            self._grow()
        self.names.append(facts.name)
        self.facts.append(facts)
        self.facts_version += 1
        self.rows[facts.name] = row
        self.gpu_free.append((1 << facts.gpus) - 1)
        self._gpu_held.append(0)
        self.slots_max[row] = self.slots_free[row] = facts.slots
        self.memory_free_mib[row] = facts.memory_mib
        self.gpus_free[row] = facts.gpus
        self._is_open.append(False)
        return row

    def copy(self) -> "HostTable":
        """An independent table with the same hosts, to think about the future with."""
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray | list | dict | set):
                setattr(twin, name, value.copy())
        return twin

    @property
    def place(self) -> NDArray[np.int64]:
        """Of each row, its place among all hosts by natural order of names (n2 before n10).

        Which host joined first is chance and must not decide where jobs run.
        """
        if len(self._place) != len(self.names):
            order = sorted(range(len(self.names)), key=lambda row: natural(self.names[row]))
            self._place = np.empty(len(order), np.int64)
            self._place[order] = np.arange(len(order))
            self._is_sorted = order == list(range(len(order)))
        return self._place

    def sorted_rows(self, chosen: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Rows of the hosts for which ``chosen`` is true, in natural order of names."""
        place = self.place
        if self._is_sorted:
            return np.flatnonzero(chosen)
        rows = np.flatnonzero(chosen)
        return rows[np.argsort(place[rows])]

    def _grow(self) -> None:
        for name in _COLUMNS:
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, np.zeros(len(column), column.dtype)]))
        self.load = np.concatenate([self.load, np.zeros_like(self.load)])

    def resize(self, row: int, old: HostFacts, new: HostFacts) -> None:
        """A host came back with other facts: what is held stays held."""
        self.facts[row] = new
        self.facts_version += 1
        self.slots_max[row] = new.slots
        self._add_slots(row, new.slots - old.slots)
        self.memory_free_mib[row] += new.memory_mib - old.memory_mib
        self._count_gpus(row)
        self.changed.add(row)

    def _add_slots(self, row: int, slots: int) -> None:
        """More (or, negative, fewer) free slots. Below none, what is booked twice is no one's to use."""
        before = int(self.slots_free[row])
        after = before + slots
        self.slots_free[row] = after
        if self._is_open[row]:
            self.slots_open += slots if before >= 0 <= after else max(after, 0) - max(before, 0)

    def _count_gpus(self, row: int) -> None:
        self.gpu_free[row] = ((1 << self.facts[row].gpus) - 1) & ~self._gpu_held[row]
        self.gpus_free[row] = self.gpu_free[row].bit_count()

    def set_usable(self, row: int, usable: bool) -> None:
        """Open or shut a host for new work."""
        if usable and not self.usable[row]:
            self.changed.add(row)
        self.usable[row] = usable
        self._set_open(row)

    def _set_open(self, row: int) -> None:
        is_open = bool(self.usable[row]) and not self.taken_whole[row]
        if is_open is not self._is_open[row]:
            self._is_open[row] = self._open[row] = is_open
            free = max(0, int(self.slots_free[row]))
            self.slots_open += free if is_open else -free

    def set_load(self, row: int, load: Sequence[float]) -> None:
        """Newest load indices of a host, in the order of ``LOAD_INDICES``; sizes in MiB."""
        self.load[row] = load

    def take(self, row: int, share: HostShare, whole: bool) -> None:
        """Book a host share. What a suspended holder lends, or one gives back soon, may be booked a second time."""
        self._add_slots(row, -share.slots)
        self.attempts[row] += 1
        if share.memory_mib:
            self.memory_free_mib[row] -= share.memory_mib
        if share.gpus:
            self._hold_gpus(row, share.gpus)
            self._count_gpus(row)
        if whole:
            self.taken_whole[row] = True
            self._set_open(row)

    def _hold_gpus(self, row: int, gpus: tuple[int, ...]) -> None:
        for gpu in gpus:
            if self._gpu_held[row] >> gpu & 1:
                self._gpu_again[row, gpu] = self._gpu_again.get((row, gpu), 0) + 1
            self._gpu_held[row] |= 1 << gpu

    def _let_gpus_go(self, row: int, gpus: tuple[int, ...]) -> None:
        for gpu in gpus:
            more = self._gpu_again.pop((row, gpu), 0) if self._gpu_again else 0
            if more > 1:
                self._gpu_again[row, gpu] = more - 1
            if not more:
                self._gpu_held[row] &= ~(1 << gpu)

    def take_all(self, rows: list[int], shares: Allocation, whole: bool) -> None:
        """Book host shares, each on its row; a host has one at most."""
        if whole or len(rows) < _MANY or not _are_slots(shares):
            for row, share in zip(rows, shares, strict=True):
                self.take(row, share, whole)
            return
        self._move_slots(rows, [-share.slots for share in shares], 1)

    def give_back_all(self, rows: list[int], shares: Allocation, whole: bool) -> None:
        """Undo ``take_all``."""
        if whole or len(rows) < _MANY or not _are_slots(shares):
            for row, share in zip(rows, shares, strict=True):
                self.give_back(row, share, whole)
            return
        self._move_slots(rows, [share.slots for share in shares], -1)
        self.changed.update(rows)

    def _move_slots(self, rows: list[int], slots: list[int], attempts: int) -> None:
        at = np.array(rows)
        self.attempts[at] += attempts
        free = self.slots_free[at]
        if free.min() < 0 or (free + slots).min() < 0:
            for row, more in zip(rows, slots, strict=True):
                self._add_slots(row, more)
            return
        self.slots_free[at] = free + slots
        is_open = self._is_open
        self.slots_open += sum([more for row, more in zip(rows, slots, strict=True) if is_open[row]])

    def give_back(self, row: int, share: HostShare, whole: bool) -> None:
        """Undo ``take``."""
        self._add_slots(row, share.slots)
        self.attempts[row] -= 1
        if share.memory_mib:
            self.memory_free_mib[row] += share.memory_mib
        if share.gpus:
            self._let_gpus_go(row, share.gpus)
            self._count_gpus(row)
        if whole:
            self.taken_whole[row] = False
            self._set_open(row)
        self.changed.add(row)

    def slots_usable(self) -> int:
        """Slots of all hosts that are up and open, whether they are free or not."""
        used = len(self.names)
        return int(self.slots_max[:used] @ self.usable[:used])

    def is_open(self, row: int) -> bool:
        """May this host take anything now?"""
        return self._is_open[row]

    def room_of(self, row: int) -> tuple[int, int, int]:
        """Free slots, memory and GPUs of one host."""
        return int(self.slots_free[row]), int(self.memory_free_mib[row]), int(self.gpus_free[row])

    def plain_share(self, row: int, slots: int) -> HostShare:
        """So many one-slot tasks on a host and nothing else; equal ones are one object."""
        known = self._plain_shares.get((row, slots))
        if known is None:
            if len(self._plain_shares) >= _PLAIN_SHARES_MAX:
                self._plain_shares.clear()
            known = self._plain_shares[row, slots] = HostShare(self.names[row], slots, 0, (), (slots,))
        return known

    def open_rows(self) -> NDArray[np.bool_]:
        """Which hosts may take anything now, over the rows in use."""
        return self._open[: len(self.names)]


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key under which numbers in names count as numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _are_slots(shares: Allocation) -> bool:
    """Nothing but slots?"""
    return not any([share.memory_mib or share.gpus for share in shares])
