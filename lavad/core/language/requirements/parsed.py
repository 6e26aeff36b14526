"""Parsed sections of a role's requirement, cached for equal requests."""

from dataclasses import dataclass
from functools import lru_cache

from lavad.core.language.requirements import affinity, cu, gpu, order, rusage, select
from lavad.core.language.requirements.affinity import Affinity
from lavad.core.language.requirements.cu import ComputeUnits
from lavad.core.language.requirements.gpu import GpuRequirement
from lavad.core.language.requirements.order import OrderKey
from lavad.core.language.requirements.rusage import Per, Reserve
from lavad.core.model import Request, RoleRequest

_KEPT = 8192
NOTHING_WATCHED: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ParsedRole:
    """Sections of one role. ``reserves`` are those beside a simple amount of memory."""

    reserves: tuple[Reserve, ...] = ()
    gpus: GpuRequirement | None = None
    order: tuple[OrderKey, ...] = ()
    same: tuple[str, ...] = ()
    units: ComputeUnits | None = None
    affinity: Affinity | None = None

    @property
    def is_counted(self) -> bool:
        """True if the role takes more from a host than slots, memory and whole GPUs."""
        return bool(self.reserves or self.gpus or self.affinity)

    @property
    def is_placed(self) -> bool:
        """True if particular GPUs or processors have to be chosen for the role."""
        return self.gpus is not None or self.affinity is not None


NOTHING = ParsedRole()


@lru_cache(maxsize=_KEPT)
def _wants(
    role_rusage: str, role_gpu: str, role_order: str, role_same: str, role_cu: str, role_affinity: str
) -> ParsedRole:
    return ParsedRole(
        rusage.parse(role_rusage)[0].reserves if role_rusage else (),
        gpu.parse(role_gpu) if role_gpu else None,
        order.parse(role_order) if role_order else (),
        tuple(role_same.split(":")) if role_same else (),
        cu.parse(role_cu) if role_cu else None,
        affinity.parse(role_affinity) if role_affinity else None,
    )


def wants_of(role: RoleRequest) -> ParsedRole:
    """The role's parsed sections."""
    if role.is_basic:
        return NOTHING
    return _wants(role.rusage, role.gpu, role.order, role.same, role.cu, role.affinity)


@lru_cache(maxsize=_KEPT)
def names_of(select_text: str) -> frozenset[str]:
    """Resources in a select expression."""
    return frozenset(select.names_in(select.parse(select_text))) if select_text else frozenset()


def all_roles(request: Request) -> list[RoleRequest]:
    """Roles of all alternatives."""
    return [*request.roles, *(role for one in request.alternatives for role in one.roles)]


@lru_cache(maxsize=_KEPT)
def watched_by(request: Request) -> frozenset[str]:
    """Values beside free slots, memory and GPUs by whose change the request may fit."""
    if request.is_slots_only:
        return NOTHING_WATCHED
    found: set[str] = set()
    for role in all_roles(request):
        found.update(names_of(role.select) - _STATIC)
        found.update(one.name for one in wants_of(role).reserves)
    return frozenset(found)


@lru_cache(maxsize=_KEPT)
def looked_at(role: RoleRequest) -> frozenset[str]:
    """Resources by which hosts are selected and sorted."""
    return names_of(role.select) | {key.name for key in wants_of(role).order}


_STATIC = frozenset(
    {"ncpus", "nprocs", "ncores", "nthreads", "ndisks", "maxmem", "maxswp", "maxtmp", "cpuf", "ngpus", "maxslots"}
    | {"ngpus_physical", "ngpus_shared", "ngpus_excl_p", "ngpus_excl_t", "rexpri", "type", "model", "hname", "status"}
    | {"server", "linux", "gpu", "gpu_driver"}
)


def amount_for(one: Reserve, tasks: int, is_shared: bool, is_first: bool) -> int:
    """Thousandths for ``tasks`` tasks on a host; an amount per job is taken with its first host."""
    per = one.per
    if per is Per.DEFAULT:
        per = Per.JOB if is_shared else Per.HOST
    if per is Per.TASK:
        return one.largest * tasks
    return one.largest if per is Per.HOST or is_first else 0
