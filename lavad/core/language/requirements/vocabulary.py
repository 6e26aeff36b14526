"""Names of resources in requirements, and their kinds: LSF's own, the site's, and those reported by hosts."""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from lavad.core.model import LOAD_INDICES
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.resources import Resource, ResourceKind

ALIASES = {"swap": "swp", "login": "ls", "idle": "it", "cpu": "r1m", "ngpus_physical": "ngpus", "ngpus_shared": "ngpus"}
NUMBERS = frozenset(
    {"ncpus", "nprocs", "ncores", "nthreads", "ndisks", "maxmem", "maxswp", "maxtmp", "cpuf", "ngpus", "ngpus_physical"}
    | {"ngpus_shared", "ngpus_excl_p", "ngpus_excl_t", "slots", "maxslots", "rexpri", *LOAD_INDICES}
    | {"swap", "login", "idle", "cpu"}
)
STRINGS = frozenset({"type", "model", "hname", "status", "gpu_driver", *(f"gpu_model{at}" for at in range(16))})
NEAR = 0.75  # similarity from which a name is suggested for an unknown one
BOOLEANS = frozenset({"server", "linux", "gpu", "revocable"})
# A larger value means more load, so the smallest goes first.
INCREASING = frozenset({"r15s", "r1m", "r15m", "ut", "pg", "io", "ls", "login", "cpu"})
RESERVABLE = frozenset({"mem", "swp", "swap", "tmp"})


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Names known now. ``is_open``: an unknown name counts as a boolean resource that no host has."""

    resources: Mapping[str, Resource] = field(default_factory=dict)
    booleans: Collection[str] = ()
    is_open: bool = False
    local_type: str = ""  # of the submission host; empty: type==local matches every host
    local_model: str = ""
    unit_mib: float = 1.0  # of sizes without a unit: LSF_UNIT_FOR_LIMITS
    tmp_unit_mib: float = 1.0  # of tmp and maxtmp: likewise with LSF_ENABLE_TMP_UNIT

    @property
    def has_unit(self) -> bool:
        """True if sizes without a unit are in another one than MiB."""
        return self.unit_mib != 1.0 or self.tmp_unit_mib != 1.0

    def unit_of(self, name: str) -> float:
        """Unit, in MiB, of a size without one; 0 for a resource that is no size."""
        if name in ("mem", "swp", "swap", "maxmem", "maxswp"):
            return self.unit_mib
        return self.tmp_unit_mib if name in ("tmp", "maxtmp") else 0.0

    def kind(self, name: str) -> ResourceKind | None:
        """Kind of the resource's values; None for an unknown name."""
        if name in NUMBERS:
            return ResourceKind.NUMERIC
        if name in STRINGS:
            return ResourceKind.STRING
        if name in self.resources:
            return self.resources[name].kind
        if name in BOOLEANS or name in self.booleans or self.is_open:
            return ResourceKind.BOOLEAN
        return None

    def known(self, name: str, at: int) -> ResourceKind:
        """Kind of the resource's values.

        Raises:
            Refused: the name is unknown.
        """
        kind = self.kind(name)
        if kind is None:
            names = sorted({*NUMBERS, *STRINGS, *BOOLEANS, *self.booleans, *self.resources})
            alike = [other for other in names if len(other) == len(name) and other[0] == name[0]]
            near = difflib.get_close_matches(name, names, 1, NEAR) or difflib.get_close_matches(name, alike, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise Refused(f"Bad resource name {name!r} at character {at + 1}{hint}")
        return kind

    def is_increasing(self, name: str) -> bool:
        """True if a larger value means more load."""
        return name in INCREASING or (name in self.resources and self.resources[name].is_increasing)

    def is_consumable(self, name: str) -> bool:
        """True if rusage may reserve the resource."""
        found = self.resources.get(name)
        if found is not None:
            return found.kind is ResourceKind.NUMERIC and found.is_consumable
        return name in RESERVABLE or self.is_open


ANY = Vocabulary(is_open=True)
