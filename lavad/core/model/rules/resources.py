"""Limits, shared resources, compute units, pools and service classes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from lavad.core.model.rules.names import ALL, Names
from lavad.core.model.windows import Window


@dataclass(frozen=True, slots=True)
class SizeUnits:
    """Units, in MiB, of sizes that are written without one: of memory and swap, and of tmp."""

    size_mib: float = 1.0
    tmp_mib: float = 1.0


IN_MIB = SizeUnits()


@dataclass(frozen=True, slots=True)
class Limit:
    """A Limit section of lsb.resources. Consumers None: any; ``per_*``: a separate limit for each."""

    name: str
    slots: int | None = None
    jobs: int | None = None
    memory_mib: int | None = None
    resources: tuple[tuple[str, float], ...] = ()
    slots_per_processor: float | None = None
    users: Names | None = None
    per_user: Names | None = None
    queues: Names | None = None
    per_queue: Names | None = None
    hosts: Names | None = None
    per_host: Names | None = None
    projects: Names | None = None
    per_project: Names | None = None
    windows: tuple[Window, ...] = ()
    memory_share: float | None = None  # of each host's memory
    resource_shares: tuple[tuple[str, float], ...] = ()  # tmp and swp: of each host's
    applications: Names | None = None
    per_application: Names | None = None


class ResourceKind(Enum):
    BOOLEAN = "Boolean"
    NUMERIC = "Numeric"
    STRING = "String"


@dataclass(frozen=True, slots=True)
class Resource:
    """A site-defined resource, from lsf.shared. ``interval_s`` 0: static; else reported by an elim."""

    name: str
    kind: ResourceKind = ResourceKind.BOOLEAN
    interval_s: float = 0.0
    is_increasing: bool = False  # a larger value means more load
    is_consumable: bool = True
    is_indexed: bool = False  # numbered devices: a job is told the numbers of its own
    description: str = ""


@dataclass(frozen=True, slots=True)
class ResourceInstance:
    """One amount of a resource, from the ResourceMap: of one host, or shared by several."""

    resource: str
    value: str  # empty for dynamic ones
    hosts: Names = ALL
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class ComputeUnit:
    """A ComputeUnit row of lsb.hosts, such as a rack. ``hosts`` are those at any depth below it, ``members`` the names
    in the row, for display."""

    name: str
    type: str
    hosts: Names
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pool:
    """A capacity pool: guaranteed, deserved and largest amounts of slots, memory and GPUs; missing: no bound."""

    name: str
    users: Names = ALL
    queues: Names = ALL
    hosts: Names = ALL
    guaranteed: Mapping[str, float] = field(default_factory=dict)  # by resource: slots, mem, gpus
    deserved: Mapping[str, float] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)
    lends: bool = True
    borrowers: Names = ALL  # queues that it lends to
    applications: Names = ALL
    slots_share: float = 0.0  # guaranteed part of its hosts' slots
    service_class: str = ""  # whose part of a pool it is
    attaches: bool = True  # False: only jobs that name the service class (-sla)


@dataclass(frozen=True, slots=True)
class ServiceClass:
    """A service class with guarantees: which jobs may name it (-sla) or, if it attaches, belong to it by themselves."""

    name: str
    users: Names = ALL
    queues: Names = ALL
    applications: Names = ALL
    attaches: bool = True  # AUTO_ATTACH
    access: str = ""  # ACCESS_CONTROL as written
    description: str = ""
