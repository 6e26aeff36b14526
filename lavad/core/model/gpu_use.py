"""Use of one GPU by an attempt, as its host has added it up, and the rule on idle ones."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class GpuUse:
    """Figures of one GPU of a host since the attempt's start there. Utilisation is from 0 to 1, a ``_s`` figure an
    integral over the seconds for which the device was measured."""

    index: int = 0
    uuid: str = ""
    model: str = ""
    seconds: float = 0.0
    utilisation: float = 0.0  # now
    utilisation_max: float = 0.0
    utilisation_s: float = 0.0
    memory_utilisation_max: float = 0.0
    memory_utilisation_s: float = 0.0
    memory_mib: int = 0  # now
    memory_mib_max: int = 0
    memory_mib_s: float = 0.0
    power_w: float = 0.0  # now
    power_w_max: float = 0.0
    energy_j: float = 0.0
    temperature_c_max: int = 0
    throttled_s: float = 0.0
    idle_s: float = 0.0  # since its power was last above that of an idle device
    ecc_errors: int = 0
    trouble: str = ""
    idle_max_s: float = 0.0
    pids: tuple[tuple[int, int, float], ...] = ()  # process, its memory in MiB, its part of the device (-1: unknown)


_SUMS = ("seconds", "utilisation_s", "memory_utilisation_s", "memory_mib_s", "energy_j", "throttled_s", "ecc_errors")
_LARGEST = (
    "utilisation_max", "memory_utilisation_max", "memory_mib_max", "power_w_max", "temperature_c_max", "idle_max_s",
)  # fmt: skip


def continued(known: tuple[GpuUse, ...], said: tuple[GpuUse, ...]) -> tuple[GpuUse, ...]:
    """The newest report of a host's devices, with the last figures of those that the attempt does not have any more."""
    if not known:
        return said
    here = {_device(use) for use in said}
    gone = [_at_rest(use) for use in known if _device(use) not in here]
    return tuple(sorted([*said, *gone], key=_device)) if gone else said


def together(first: tuple[GpuUse, ...], second: tuple[GpuUse, ...]) -> tuple[GpuUse, ...]:
    """Use of a host's devices in two stays there; what is of the moment is that of the second."""
    found = {_device(use): _at_rest(use) for use in first}
    for use in second:
        before = found.get(_device(use))
        found[_device(use)] = use if before is None else _added(before, use)
    return tuple(found.values())


def _device(use: GpuUse) -> tuple[int, str]:
    return use.index, use.uuid


def _at_rest(use: GpuUse) -> GpuUse:
    return replace(use, utilisation=0.0, memory_mib=0, power_w=0.0, idle_s=0.0, pids=())


def _added(before: GpuUse, use: GpuUse) -> GpuUse:
    sums = {name: getattr(before, name) + getattr(use, name) for name in _SUMS}
    largest = {name: max(getattr(before, name), getattr(use, name)) for name in _LARGEST}
    return replace(use, **sums, **largest)


GpusByHost = tuple[tuple[str, tuple[GpuUse, ...]], ...]


def encoded(use: GpuUse) -> dict[str, Any]:
    """Figures that differ from their defaults, without processes: those are of the moment."""
    return {name: value for name, value in asdict(use).items() if value and name != "pids"}


_NAMES = frozenset(one.name for one in fields(GpuUse)) - {"pids"}


def decoded(values: dict[str, Any]) -> GpuUse:
    """Figures from their encoding, of any version."""
    return GpuUse(**{name: value for name, value in values.items() if name in _NAMES})


@dataclass(frozen=True, slots=True)
class GpuIdleRule:
    """Warning and limit for jobs whose GPUs draw no more power than idle ones. None: as the cluster's rule says.

    Utilisation does not tell: a process that waits in a loop keeps it at 100 %. ``power_w`` is the power of an idle
    device; 0: given by ``fraction``, of the range between the device's idle and limit power.
    """

    warn_s: float | None = None  # 0: no warning
    power_w: float | None = None
    fraction: float | None = None
    limit_s: float | None = None  # 0: none
    requeues: bool | None = None  # at the limit; else the job is ended

    def over(self, base: "GpuIdleRule") -> "GpuIdleRule":
        """This rule, with what it leaves open from another."""
        mine = {name: value for name in _GPU_IDLE if (value := getattr(self, name)) is not None}
        if self.power_w is not None or self.fraction is not None:  # one of both is meant
            mine = {"power_w": 0.0, "fraction": 0.0, **mine}
        return replace(base, **mine)


_GPU_IDLE = ("warn_s", "power_w", "fraction", "limit_s", "requeues")
GPU_IDLE = GpuIdleRule(1800.0, 0.0, 0.0, 0.0, requeues=False)  # where nothing is configured
NO_GPU_IDLE_RULE = GpuIdleRule()
