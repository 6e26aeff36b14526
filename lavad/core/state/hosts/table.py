"""Hosts as columns, for operations over thousands of hosts at once.

Kept current by ``apply``. A row belongs to one host for the life of the process; free amounts are those not held by an
attempt, and ``usable`` says whether the host takes jobs now.
"""

import copy
import re
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lavad.core.model import LOAD_INDICES, PARTS, Allocation, HostFacts, HostShare, Key, ResourceShare
from lavad.core.model.allocation import HOST
from lavad.core.model.policy import Policy
from lavad.core.model.rules.resources import ComputeUnit, ResourceKind
from lavad.core.state.hosts.bulk import ShareTotals, SlotShares
from lavad.core.state.hosts.exclusive_units import ExclusiveUnits
from lavad.core.state.hosts.facts_by_name import FACTS, device_model
from lavad.core.state.hosts.shared_gpus import SharedGpus, joined, left_by
from lavad.core.state.hosts.site_resources import SiteResources

if TYPE_CHECKING:
    from lavad.core.model.rules.names import Names

_GROWTH = 64
_COLUMNS = ("slots_max", "slots_free", "memory_free_mib", "gpus_free", "attempts", "usable", "taken_whole", "_open")
_CACHED_MAX = 8192
_FIRST_ROW, _NO_ROWS = np.zeros(1, np.intp), np.zeros(0, np.intp)
_T = TypeVar("_T")


class HostTable:
    """Columns over hosts. ``gpu_free`` has a bit for each free GPU; hosts used exclusively have nothing free."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.rows: dict[str, int] = {}
        self.gpu_free: list[int] = []
        self._gpu_held: list[int] = []  # also GPUs that the host no longer reports
        self._gpu_again: dict[tuple[int, int], int] = {}  # (row, GPU) -> holders beyond the first
        self.gpu_unfit: dict[int, int] = {}  # row -> a bit for each GPU that no job is to be given now
        self.slots_max: NDArray[np.int64] = np.zeros(_GROWTH, np.int64)
        self.slots_free: NDArray[np.int64] = np.zeros(_GROWTH, np.int64)
        self.memory_free_mib: NDArray[np.int64] = np.zeros(_GROWTH, np.int64)
        self.gpus_free: NDArray[np.int64] = np.zeros(_GROWTH, np.int64)
        self.attempts: NDArray[np.int64] = np.zeros(_GROWTH, np.int64)
        self.usable: NDArray[np.bool_] = np.zeros(_GROWTH, np.bool_)
        self.taken_whole: NDArray[np.bool_] = np.zeros(_GROWTH, np.bool_)
        self.load: NDArray[np.float64] = np.zeros((_GROWTH, len(LOAD_INDICES)), np.float64)
        self.facts: list[HostFacts] = []
        self.facts_version = 0  # raised when facts of a host change: cached select masks are made again
        self.usable_version = 0  # raised when a host is opened or closed
        self.unlogged_changes = 0  # changes without an event
        self._in_order: list[tuple[list[tuple[int, str]], int]] = []  # (natural name, row), in the order of placement
        self._place: NDArray[np.int64] = np.zeros(0, np.int64)
        self._in_place: NDArray[np.intp] = np.zeros(0, np.intp)  # the row at each place
        self._is_sorted = True  # rows are in natural order of names
        self.plain = SlotShares(self.names)
        self.freed_hosts: set[int] = set()  # rows with resources freed since the last pass
        self.closed_hosts: set[int] = set()  # rows closed since the last pass
        self.shut: set[int] = set()  # rows of hosts that take no jobs now, whatever is free on them
        self.slots_open = 0  # free slots of all hosts that take jobs now
        self._is_open: list[bool] = []
        self._shut_count = 0  # number of hosts that are not open
        self._open: NDArray[np.bool_] = np.zeros(_GROWTH, np.bool_)  # the same as a column
        self.site = SiteResources()
        self.gpu_shared: dict[int, dict[int, SharedGpus]] = {}  # row -> GPU -> its memory, if jobs share it
        self._cpus_all: dict[str, int] = {}
        self._cpus_held: dict[int, int] = {}  # row -> a bit for each processor bound to a job
        self.groups: Mapping[str, Names] = {}
        self.units: tuple[ComputeUnit, ...] = ()
        self.unit_type = ""  # type of cu[...] sections that name none
        self.kept = ExclusiveUnits()
        self.awaited_values: frozenset[str] = frozenset()  # those that blocked requirements depend on
        self.changed_values: set[str] = set()  # those of them that have changed since the last pass
        self._cache: dict[object, Any] = {}
        self._cache_version = (0, 0)

    def configure(self, policy: Policy) -> None:
        """Put another configuration into effect. Reservations of site-defined resources have to be made again by the
        caller."""
        self.groups = policy.host_groups
        self.units = policy.compute_units
        self.unit_type = policy.compute_unit_type or next(iter(policy.compute_unit_types), "")
        self.facts_version += 1
        self.site.configure(policy.resources, policy.resource_map)

    def __len__(self) -> int:
        return len(self.names)

    def add(self, facts: HostFacts) -> int:
        """Give a host a row, with everything free. A removed host gets its old row back."""
        if facts.name in self.rows:
            row = self.rows[facts.name]
            self.resize(row, self.facts[row], facts)
            return row
        row = len(self.names)
        if row == len(self.slots_max):
            self._grow()
        self.names.append(facts.name)
        self.facts.append(facts)
        self.facts_version += 1
        self.rows[facts.name] = row
        insort(self._in_order, (natural(facts.name), row))
        self.gpu_free.append((1 << facts.gpus) - 1)
        self._gpu_held.append(0)
        self.slots_max[row] = self.slots_free[row] = facts.slots
        self.memory_free_mib[row] = facts.memory_mib
        self.gpus_free[row] = facts.gpus
        self._is_open.append(False)
        self._shut_count += 1
        self.plain.note_host()
        self.shut.add(row)
        self.site.add_host(row, facts)
        return row

    def remove(self, row: int) -> None:
        """Empty a host's row: rows are never given to other hosts. The host must hold nothing."""
        self.set_usable(row, usable=False)
        self.gpu_unfit.pop(row, None)
        self.resize(row, self.facts[row], HostFacts(self.names[row], 0, server=False))
        self.freed_hosts.discard(row)

    def rows_of(self, shares: Allocation) -> list[int]:
        """Row of each share's host.

        Raises:
            KeyError: a host does not exist.
        """
        if len(shares) == 1:
            return [self.rows[shares[0].host]]
        return list(map(self.rows.__getitem__, map(HOST, shares)))

    def copy(self) -> "HostTable":
        """An independent table with the same hosts, to simulate the future."""
        twin = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray | list | dict | set):
                setattr(twin, name, value.copy())
        twin.site, twin.kept = self.site.copy(), self.kept.copy()
        twin.gpu_shared = {row: shared.copy() for row, shared in self.gpu_shared.items()}
        twin.awaited_values = frozenset()
        twin.plain = SlotShares(twin.names)
        return twin

    def emptied(self) -> "HostTable":
        """A copy with nothing allocated: no jobs, claims or exclusive units; of values reported by elims, and of
        memory, all that there can be. Closed hosts stay closed."""
        twin, used = self.copy(), len(self.names)
        twin.slots_free[:used] = self.slots_max[:used]
        twin.memory_free_mib[:used] = [facts.memory_mib for facts in self.facts]
        twin.load[:used, _PLACES["mem"]] = np.inf  # so that only unreserved memory counts
        twin.attempts[:used], twin.taken_whole[:used], twin.kept = 0, False, ExclusiveUnits()
        twin.gpu_unfit = {}
        twin._gpu_held, twin._gpu_again, twin.gpu_shared, twin._cpus_held = [0] * used, {}, {}, {}
        twin.site.empty()
        twin.gpus_free[:used] = gpus = [facts.gpus for facts in self.facts]
        twin.gpu_free = [(1 << count) - 1 for count in gpus]
        twin._open, twin._is_open = self.usable.copy(), self.usable[:used].tolist()
        twin._shut_count = twin._is_open.count(False)
        twin.slots_open = self.slots_usable()
        return twin

    def cached(self, key: object, make: Callable[[], _T]) -> _T:
        """Cached result of ``make``, which depends on facts and configuration alone; made again when they change."""
        version = (self.facts_version, self.site.version)
        if version != self._cache_version or len(self._cache) >= _CACHED_MAX:
            self._cache.clear()
            self._cache_version = version
        if key not in self._cache:
            self._cache[key] = make()
        found: _T = self._cache[key]
        return found

    # -- values by name, as requirements call them

    def values(self, name: str) -> NDArray[Any]:
        """Value of a number, boolean or string resource on each host; False for unknown names."""
        used = len(self.names)
        if name == "mem":  # free memory may be reserved although it is not used yet
            return np.minimum(self.load[:used, _PLACES[name]], self.memory_free_mib[:used])
        if name in _PLACES:
            return self.load[:used, _PLACES[name]]
        if name == "slots":
            return self.slots_free[:used]
        amounts = self.site.amounts(name) if name in self.site.resources else None
        if amounts is not None:
            return amounts.column([store.free / PARTS for store in amounts.stores], used)
        return self.cached(("values", name), lambda: self._static(name))

    def _static(self, name: str) -> NDArray[Any]:
        value_of = FACTS.get(name)
        if value_of is not None:
            return np.array([value_of(facts) for facts in self.facts])
        if name.startswith("gpu_model") and name[9:].isdigit():
            return np.array([device_model(facts, int(name[9:])) for facts in self.facts], dtype=str)
        resource = self.site.resources.get(name)
        if resource is not None and resource.kind is ResourceKind.STRING:
            return self.site.strings(name)
        if resource is not None and resource.kind is ResourceKind.NUMERIC:
            return np.full(len(self.names), np.nan)
        return self.site.booleans(name)

    def is_moving(self, name: str) -> bool:
        """True if the value changes as jobs are placed."""
        if name in ("slots", "mem"):
            return True
        resource = self.site.resources.get(name)
        return resource is not None and resource.kind is ResourceKind.NUMERIC

    def is_fixed(self, name: str) -> bool:
        """True if the value changes only with facts and configuration."""
        return name not in _PLACES and not self.is_moving(name)

    def is_increasing(self, name: str) -> bool:
        """True if a larger value means more load."""
        resource = self.site.resources.get(name)
        return name in _INCREASING or (resource is not None and resource.is_increasing)

    def defined(self, name: str) -> NDArray[np.bool_]:
        """True for hosts on which the resource is defined."""
        if name in _PLACES or name in FACTS or name == "slots":
            return np.ones(len(self.names), dtype=bool)
        if name.startswith("gpu_model"):
            return np.asarray(self.values(name) != "")
        return self.cached(("defined", name), lambda: self.site.has(name))

    @property
    def place(self) -> NDArray[np.int64]:
        """Place of each row among all hosts in natural order of names (n2 before n10).

        The order in which hosts joined is chance and must not affect placement.
        """
        if len(self._place) != len(self.names):
            order = self.rows_at(0, len(self.names))
            self._place = np.empty(len(order), np.int64)
            self._place[order] = np.arange(len(order))
            self._is_sorted = bool((self._place[order] == order).all())
        return self._place

    def rows_at(self, start: int, stop: int) -> NDArray[np.intp]:
        """Rows at these places in natural order of names, counted from 0."""
        if len(self._in_place) != len(self.names):
            self._in_place = np.array([row for _, row in self._in_order], np.intp)
        return self._in_place[start:stop]

    def sorted_rows(self, chosen: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Rows for which ``chosen`` is true, in natural order of names."""
        place = self.place
        if self._is_sorted:
            return chosen.nonzero()[0]
        rows = chosen.nonzero()[0]
        return rows[np.argsort(place[rows])]

    def _grow(self) -> None:
        for name in _COLUMNS:
            column = getattr(self, name)
            setattr(self, name, np.concatenate([column, np.zeros(len(column), column.dtype)]))
        self.load = np.concatenate([self.load, np.zeros_like(self.load)])

    def resize(self, row: int, old: HostFacts, new: HostFacts) -> None:
        """Change the facts of a host; its allocations stay."""
        self.facts[row] = new
        self.facts_version += 1
        self.slots_max[row] = new.slots
        self._add_slots(row, new.slots - old.slots)
        self.memory_free_mib[row] += new.memory_mib - old.memory_mib
        self._count_gpus(row)
        self.site.change_facts(row, new)
        self.freed_hosts.add(row)

    def _add_slots(self, row: int, slots: int) -> None:
        """Add (negative: subtract) free slots. Below 0, double-booked slots do not count as open ones."""
        before = int(self.slots_free[row])
        after = before + slots
        self.slots_free[row] = after
        if self._is_open[row]:
            self.slots_open += slots if before >= 0 <= after else max(after, 0) - max(before, 0)

    def _count_gpus(self, row: int) -> None:
        self.gpu_free[row] = ((1 << self.facts[row].gpus) - 1) & ~self._gpu_held[row] & ~self.gpu_unfit.get(row, 0)
        self.gpus_free[row] = self.gpu_free[row].bit_count()

    def set_usable(self, row: int, usable: bool) -> None:
        """Open or close a host for new jobs."""
        if usable and not self.usable[row]:
            self.freed_hosts.add(row)
            self.shut.discard(row)
        elif not usable and self.usable[row]:
            self.closed_hosts.add(row)
            self.shut.add(row)
        if usable is not bool(self.usable[row]):
            self.usable_version += 1
            self.unlogged_changes += 1
        self.usable[row] = usable
        self._set_open(row)

    def _set_open(self, row: int) -> None:
        is_open = bool(self.usable[row]) and not self.taken_whole[row] and row not in self.kept
        if is_open is not self._is_open[row]:
            self._is_open[row] = self._open[row] = is_open
            self._shut_count += -1 if is_open else 1
            free = max(0, int(self.slots_free[row]))
            self.slots_open += free if is_open else -free

    def keep(self, key: Key, row: int, members: list[int]) -> None:
        """Close these hosts to other jobs as long as the attempt has a share on ``row``."""
        for one in self.kept.keep(key, row, members):
            self._set_open(one)

    def keep_no_more(self, key: Key, row: int) -> None:
        """Open the hosts that were closed for the attempt's share on ``row``, now released."""
        for one in self.kept.let_go(key, row):
            self.freed_hosts.add(one)
            self._set_open(one)

    def set_load(self, row: int, load: Sequence[float]) -> None:
        """Set the load indices of a host, in the order of ``LOAD_INDICES``; sizes in MiB."""
        if self.awaited_values:
            self._note_changed_load(row, load)
        self.load[row] = load

    def _note_changed_load(self, row: int, load: Sequence[float]) -> None:
        for name in self.awaited_values:
            place = _PLACES.get(name)
            if place is not None and self.load[row, place] != load[place]:
                self._note_changed(name)

    def set_unfit_gpus(self, row: int, unfit: int) -> bool:
        """Set the GPUs of a host that no job is to be given, as a mask; jobs keep those they have.

        Return True if one is fit again.
        """
        before = self.gpu_unfit.pop(row, 0)
        if unfit:
            self.gpu_unfit[row] = unfit
        if unfit == before:
            return False
        self.unlogged_changes += 1
        self._count_gpus(row)
        if before & ~unfit:
            self.freed_hosts.add(row)
        return bool(before & ~unfit)

    def set_external(self, row: int, values: Mapping[str, float]) -> None:
        """Set values reported by an elim on that host."""
        self.unlogged_changes += 1
        for name, value in values.items():
            store = self.site.report(row, name, value)
            if store is not None:
                self._note_changed(name)

    def _note_changed(self, name: str) -> None:
        """Note a changed value if blocked jobs wait for it, so that they are tried again."""
        if name in self.awaited_values:
            self.changed_values.add(name)

    def take(self, row: int, share: HostShare, whole: bool) -> None:
        """Book a host share. Resources lent by a suspended job, or about to be released, may be booked a second
        time."""
        self._add_slots(row, -share.slots)
        self._note_changed("slots")
        self.attempts[row] += 1
        if share.memory_mib:
            self.memory_free_mib[row] -= share.memory_mib
        self._hold_rest(row, share)
        if whole:
            self.taken_whole[row] = True
            self._set_open(row)

    def _hold_rest(self, row: int, share: HostShare) -> None:
        """Book the parts of a share that are not columns."""
        if share.gpus:
            self._hold_gpus(row, share)
        if share.cpus:
            self._cpus_held[row] = self._cpus_held.get(row, 0) | _cpus_of(share)
        if share.resources:
            self.move_resources(row, share.resources, 1)

    def take_many(self, rows: list[int], shares: list[HostShare]) -> None:
        """Book shares of many attempts, each on its row; a host may occur several times."""
        self._note_changed("slots")
        total = ShareTotals()
        for row, share in total.add_all(rows, shares):
            self._hold_rest(row, share)
        at, attempts, slots, memory_mib = total.columns()
        self.attempts[at] += attempts
        self.memory_free_mib[at] -= memory_mib
        free = self.slots_free[at] = self.slots_free[at] - slots
        if free.min() < 0:  # double-booked slots do not count as open ones
            used = len(self.names)
            self.slots_open = int(self.slots_free[:used][self._open[:used]].clip(0).sum())
        else:
            self.slots_open -= int(slots[self._open[at]].sum())

    def ease(self, row: int, name: str, amount: int) -> None:
        """Free (negative: take again) thousandths of a booked amount for other jobs."""
        self.unlogged_changes += 1
        if name == "mem":
            self.memory_free_mib[row] += amount // PARTS
        else:
            self.site.move(row, name, -amount, 0)
            self._note_changed(name)
        self.freed_hosts.add(row)

    def move_resources(self, row: int, resources: tuple[ResourceShare, ...], sign: int) -> None:
        """Reserve (``sign`` 1) or release (-1) site-defined resources."""
        for one in resources:
            store = self.site.move(row, one.name, sign * one.amount, _bits(one.devices))
            if store is not None:
                self._note_changed(one.name)

    def _hold_gpus(self, row: int, share: HostShare) -> None:
        """Book GPUs: exclusively, or shared with an amount of memory on each."""
        if share.gpu_memory_mib:
            shared = self.gpu_shared.setdefault(row, {})
            for gpu, memory in zip(share.gpus, share.gpu_memory_mib, strict=True):
                shared[gpu] = joined(shared.get(gpu), self._gpu_size(row, gpu), memory)
            self._gpu_held[row] |= _bits(share.gpus)
        else:
            self._hold_whole_gpus(row, share.gpus)
        self._count_gpus(row)

    def _hold_whole_gpus(self, row: int, gpus: tuple[int, ...]) -> None:
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

    def take_all(self, rows: Sequence[int], shares: Allocation, whole: bool) -> None:
        """Book host shares, each on its row; at most one on a host."""
        for row, share in zip(rows, shares, strict=True):
            self.take(row, share, whole)

    def give_back_all(self, rows: Sequence[int], shares: Allocation, whole: bool) -> None:
        """Undo ``take_all``."""
        for row, share in zip(rows, shares, strict=True):
            self.give_back(row, share, whole)

    def give_back(self, row: int, share: HostShare, whole: bool) -> None:
        """Undo ``take``."""
        self._add_slots(row, share.slots)
        self.attempts[row] -= 1
        if share.memory_mib:
            self.memory_free_mib[row] += share.memory_mib
        if share.gpus:
            self._free_gpus(row, share)
        if share.cpus:
            self._cpus_held[row] &= ~_cpus_of(share)
        if share.resources:
            self.move_resources(row, share.resources, -1)
        if whole:
            self.taken_whole[row] = False
            self._set_open(row)
        self.freed_hosts.add(row)

    def _free_gpus(self, row: int, share: HostShare) -> None:
        if share.gpu_memory_mib:
            self._leave_shared_gpus(row, share)
        else:
            self._let_gpus_go(row, share.gpus)
        self._count_gpus(row)

    def _leave_shared_gpus(self, row: int, share: HostShare) -> None:
        shared = self.gpu_shared[row]
        for gpu, memory in zip(share.gpus, share.gpu_memory_mib, strict=True):
            rest = left_by(shared.pop(gpu), memory)
            if rest is not None:
                shared[gpu] = rest
            else:
                self._gpu_held[row] &= ~(1 << gpu)
        if not shared:
            del self.gpu_shared[row]

    def _gpu_size(self, row: int, gpu: int) -> int:
        devices = self.facts[row].devices
        return devices[gpu].memory_mib if gpu < len(devices) else 0

    def cpus_free(self, row: int) -> int:
        """A bit for each processor of the host that is not bound to a job."""
        topology = self.facts[row].topology
        known = self._cpus_all.get(topology)
        if known is None:
            known = self._cpus_all[topology] = _bits(tuple(int(one.split()[0]) for one in topology.split(",") if one))
        return known & ~self._cpus_held.get(row, 0)

    def slots_usable(self) -> int:
        """Slots of all usable hosts, free or not."""
        used = len(self.names)
        return int(self.slots_max[:used] @ self.usable[:used])

    def is_open(self, row: int) -> bool:
        """True if this host takes jobs now."""
        return self._is_open[row]

    def are_open(self, rows: list[int]) -> bool:
        """True if all of these hosts take jobs now."""
        return not self._shut_count or all(map(self._is_open.__getitem__, rows))

    def room_of(self, row: int) -> tuple[int, int, int]:
        """Free slots, memory and GPUs of one host."""
        return int(self.slots_free[row]), int(self.memory_free_mib[row]), int(self.gpus_free[row])

    def rows_with_slots(self) -> NDArray[np.intp]:
        """Open hosts that have a free slot, in natural order of names."""
        if len(self.names) == 1:
            return _FIRST_ROW if self._is_open[0] and self.slots_free[0] > 0 else _NO_ROWS
        fits = self.slots_free[: len(self.names)] > 0
        if self._shut_count:
            fits &= self.open_rows()
        return self.sorted_rows(fits)

    def open_rows(self) -> NDArray[np.bool_]:
        """True for hosts that take jobs now, over the rows in use."""
        return self._open[: len(self.names)]


_PLACES = {name: place for place, name in enumerate(LOAD_INDICES)}
_PLACES |= {alias: _PLACES[name] for alias, name in (("swap", "swp"), ("login", "ls"), ("idle", "it"), ("cpu", "r1m"))}
_INCREASING = frozenset({"r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "login", "cpu"})


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key under which numbers in names compare as numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _cpus_of(share: HostShare) -> int:
    return _bits(share.cpus_idle) | _bits(tuple(cpu for task in share.cpus for cpu in task))


def _bits(gpus: tuple[int, ...]) -> int:
    mask = 0
    for gpu in gpus:
        mask |= 1 << gpu
    return mask
