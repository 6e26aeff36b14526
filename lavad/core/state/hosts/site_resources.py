"""Site-defined resources on hosts: configured or reported amounts, and what is free of them.

A numeric resource is an amount that belongs to one host or is shared by several: a ``ResourcePool``. Jobs reserve from
it. Amounts are whole thousandths, so that exactly what was reserved is released. Indexed resources also number their
devices. Kept current by ``apply``; values reported by an elim are volatile.
A fixed port is a resource, too: each host has one of each number.
"""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lavad.core.language.requirements.fixed_ports import is_port
from lavad.core.model import PARTS, HostFacts
from lavad.core.model.rules.resources import Resource, ResourceInstance, ResourceKind

_PLENTY = 10**15  # more than any job may ask for
NOWHERE = -1
_OF_FACTS = {"swp": "swap_mib", "tmp": "tmp_mib"}  # host facts that rusage can reserve


class ResourcePool:
    """One amount. ``taken`` is its reserved part; ``busy`` has a bit for each reserved device."""

    __slots__ = ("busy", "is_shared", "rows", "taken", "total")

    def __init__(self, total: int, is_shared: bool) -> None:
        self.total = total
        self.taken = 0
        self.busy = 0
        self.is_shared = is_shared
        self.rows: list[int] = []

    def copy(self) -> "ResourcePool":
        """An independent copy on the same hosts."""
        twin = ResourcePool(self.total, self.is_shared)
        twin.taken, twin.busy, twin.rows = self.taken, self.busy, self.rows
        return twin

    @property
    def free(self) -> int:
        """Free thousandths; negative if the total has shrunk below what is taken."""
        return self.total - self.taken


class ResourceAmounts:
    """A numeric resource: its pools, and the pool of each host."""

    def __init__(self, name: str, is_indexed: bool = False) -> None:
        self.name = name
        self.is_indexed = is_indexed
        self.stores: list[ResourcePool] = []
        self.of_row: list[int] = []

    def copy(self) -> "ResourceAmounts":
        """An independent copy."""
        twin = copy.copy(self)
        twin.stores = [store.copy() for store in self.stores]
        twin.of_row = self.of_row.copy()
        return twin

    def store(self, row: int) -> ResourcePool | None:
        """Pool of a host; None if the host has none of the resource."""
        number = self.number(row)
        return None if number == NOWHERE else self.stores[number]

    def put(self, row: int, number: int) -> None:
        """Assign a pool to a host."""
        self.of_row.extend([NOWHERE] * (row + 1 - len(self.of_row)))
        self.of_row[row] = number
        if number != NOWHERE:
            self.stores[number].rows.append(row)

    def number(self, row: int) -> int:
        """Number of the host's pool, equal for hosts that share one; NOWHERE if the host has none."""
        return self.of_row[row] if row < len(self.of_row) else NOWHERE

    def column(self, values: Sequence[float], hosts: int) -> NDArray[np.float64]:
        """The pool's value for each host; NaN without a pool."""
        of_row = np.full(hosts, NOWHERE, np.int64)
        of_row[: len(self.of_row)] = self.of_row[:hosts]
        padded = np.append(np.asarray(values, np.float64), np.nan)
        return padded[of_row]


class PortAmounts(ResourceAmounts):
    """One port of each host. Only pools of hosts on which it is taken are kept: a job may name any port."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._taken: dict[int, ResourcePool] = {}  # by row

    def copy(self) -> "PortAmounts":
        """An independent copy."""
        twin = copy.copy(self)
        twin._taken = {row: store.copy() for row, store in self._taken.items()}
        return twin

    @property
    def is_idle(self) -> bool:
        """True if no host's port is taken."""
        return not self._taken

    def store(self, row: int) -> ResourcePool:
        """Pool of a host."""
        found = self._taken.get(row)
        if found is None:
            found = ResourcePool(PARTS, False)
            found.rows.append(row)
        return found

    def number(self, row: int) -> int:
        """Return the row: each host has a pool of its own."""
        return row

    def keep(self, row: int, store: ResourcePool) -> None:
        """Keep the pool if the port is taken, else forget it."""
        if store.taken:
            self._taken[row] = store
        else:
            self._taken.pop(row, None)


class SiteResources:
    """All site-defined resources of all hosts, from the policy and the agents' reports."""

    def __init__(self) -> None:
        self.resources: Mapping[str, Resource] = {}
        self.version = 0  # raised with every change of a static value
        self._map: tuple[ResourceInstance, ...] = ()
        self._names: list[str] = []
        self._facts: list[HostFacts] = []
        self._amounts: dict[str, ResourceAmounts] = {}
        self._ports: dict[str, PortAmounts] = {}  # those that are taken on some host
        self._shared: dict[tuple[str, int], int] = {}  # (resource, number in the resource map) -> number of its pool
        self._strings: dict[str, list[str]] = {}

    def copy(self) -> "SiteResources":
        """An independent copy with the same amounts."""
        twin = copy.copy(self)
        twin._amounts = {name: amounts.copy() for name, amounts in self._amounts.items()}
        twin._ports = {name: amounts.copy() for name, amounts in self._ports.items()}
        twin._names, twin._facts = self._names.copy(), self._facts.copy()
        return twin

    def configure(self, resources: Mapping[str, Resource], where: tuple[ResourceInstance, ...]) -> None:
        """Put another configuration into effect; reservations have to be made again."""
        reported = self._reported()
        self.resources, self._map = resources, where
        self._amounts, self._shared, self._strings, self._ports = {}, {}, {}, {}
        self.version += 1
        for row in range(len(self._names)):
            self._place(row)
        for (name, row), value in reported.items():
            self.report(row, name, value)

    def _reported(self) -> dict[tuple[str, int], float]:
        """Values reported by elims, which are not reported again after a reconfiguration."""
        dynamic = [amounts for amounts in self._amounts.values() if self.is_dynamic(amounts.name)]
        stores = [(amounts.name, store) for amounts in dynamic for store in amounts.stores if store.rows]
        return {(name, store.rows[0]): store.total / PARTS for name, store in stores}

    def add_host(self, row: int, facts: HostFacts) -> None:
        """Add a host with its configured resources."""
        self._names.append(facts.name)
        self._facts.append(facts)
        self.version += 1
        self._place(row)

    def change_facts(self, row: int, facts: HostFacts) -> None:
        """Update the facts of a host that came back with others."""
        self._facts[row] = facts
        self.version += 1
        for name, attribute in _OF_FACTS.items():
            store = self._amounts[name].store(row) if name in self._amounts else None
            if store is not None:
                store.total = getattr(facts, attribute) * PARTS

    def _place(self, row: int) -> None:
        for name in _OF_FACTS:
            if name in self._amounts:
                self._add_store(name, row)
        for number, instance in enumerate(self._map):
            resource = self.resources.get(instance.resource)
            if resource is None or self._names[row] not in instance.hosts:
                continue
            if resource.kind is ResourceKind.NUMERIC:
                self._place_amount(row, number, instance, resource)
            elif resource.kind is ResourceKind.STRING:
                column = self._strings.setdefault(resource.name, [])
                column.extend([""] * (row + 1 - len(column)))
                column[row] = instance.value

    def _place_amount(self, row: int, number: int, instance: ResourceInstance, resource: Resource) -> None:
        amounts = self._amounts.setdefault(resource.name, ResourceAmounts(resource.name, resource.is_indexed))
        known = self._shared.get((resource.name, number)) if instance.is_shared else None
        if known is None:
            amounts.stores.append(ResourcePool(_thousandths(instance.value), instance.is_shared))
            known = len(amounts.stores) - 1
            if instance.is_shared:
                self._shared[resource.name, number] = known
        amounts.put(row, known)

    def _add_store(self, name: str, row: int) -> None:
        amounts = self._amounts[name]
        amounts.stores.append(ResourcePool(getattr(self._facts[row], _OF_FACTS[name]) * PARTS, False))
        amounts.put(row, len(amounts.stores) - 1)

    # -- amounts -------------------------------------------------------------------------------------------------------

    def amounts(self, name: str) -> ResourceAmounts | None:
        """Numeric resource of that name that can be reserved; None if there is none."""
        found = self._amounts.get(name)
        if found is None and is_port(name):
            return self._ports.get(name) or PortAmounts(name)
        if found is None and name in _OF_FACTS:
            found = self._amounts[name] = ResourceAmounts(name)
            for row in range(len(self._names)):
                self._add_store(name, row)
        return found

    def numeric(self) -> list[ResourceAmounts]:
        """The site's numeric resources, for listings."""
        return [amounts for name, amounts in self._amounts.items() if name not in _OF_FACTS]

    def move(self, row: int, name: str, amount: int, devices: int) -> ResourcePool | None:
        """Reserve (negative: release) thousandths of a host's pool and return it; None if it does not exist any
        more."""
        amounts = self.amounts(name)
        store = amounts.store(row) if amounts is not None else None
        if store is None:  # removed from the configuration since
            return None
        store.taken += amount
        store.busy = store.busy | devices if amount >= 0 else store.busy & ~devices
        if isinstance(amounts, PortAmounts):
            self._keep(amounts, row, store)
        return store

    def _keep(self, amounts: PortAmounts, row: int, store: ResourcePool) -> None:
        amounts.keep(row, store)
        if amounts.is_idle:
            self._ports.pop(amounts.name, None)
        else:
            self._ports[amounts.name] = amounts

    def report(self, row: int, name: str, value: float) -> ResourcePool | None:
        """Store an elim's newest value; return the pool if the value has changed."""
        amounts = self._amounts.get(name)
        store = amounts.store(row) if amounts is not None else None
        total = round(value * PARTS)
        if store is None or store.total == total or not self.is_dynamic(name):
            return None
        store.total = total
        return store

    def empty(self) -> None:
        """Release everything, and make amounts reported by elims ample."""
        self._ports.clear()
        for amounts in self._amounts.values():
            for store in amounts.stores:
                store.taken = store.busy = 0
                store.total = _PLENTY if self.is_dynamic(amounts.name) else store.total

    def is_dynamic(self, name: str) -> bool:
        """True if the value is reported by an elim."""
        resource = self.resources.get(name)
        return resource is not None and resource.interval_s > 0

    # -- values --------------------------------------------------------------------------------------------------------

    def strings(self, name: str) -> NDArray[Any]:
        """Value of a string resource on each host, empty if a host has none."""
        column = self._strings.get(name, [])
        return np.array([*column, *[""] * (len(self._names) - len(column))], dtype=str)

    def booleans(self, name: str) -> NDArray[np.bool_]:
        """True for hosts that have the boolean resource, by their own facts or the policy."""
        found = np.array([name in facts.resources for facts in self._facts], dtype=bool)
        for instance in self._map:
            if instance.resource == name:
                found |= np.array([host in instance.hosts for host in self._names], dtype=bool)
        return found

    def has(self, name: str) -> NDArray[np.bool_]:
        """True for hosts on which the resource is defined."""
        resource = self.resources.get(name)
        if resource is not None and resource.kind is ResourceKind.NUMERIC:
            amounts = self._amounts.get(name)
            of_row = amounts.of_row if amounts is not None else []
            found = np.zeros(len(self._names), dtype=bool)
            found[: len(of_row)] = np.array(of_row, np.int64) != NOWHERE
            return found
        if resource is not None and resource.kind is ResourceKind.STRING:
            return np.asarray(self.strings(name) != "")
        return self.booleans(name)


def _thousandths(text: str) -> int:
    """Thousandths of a configured amount; 0 for other text, such as that of an elim's resource before its first
    report."""
    try:
        return round(float(text) * PARTS)
    except (ValueError, OverflowError):
        return 0
