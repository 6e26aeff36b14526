"""Use of one GPU by an attempt, as its host has added it up."""

from dataclasses import asdict, dataclass, fields
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


GpusByHost = tuple[tuple[str, tuple[GpuUse, ...]], ...]


def encoded(use: GpuUse) -> dict[str, Any]:
    """Figures that differ from their defaults, without processes: those are of the moment."""
    return {name: value for name, value in asdict(use).items() if value and name != "pids"}


_NAMES = frozenset(one.name for one in fields(GpuUse)) - {"pids"}


def decoded(values: dict[str, Any]) -> GpuUse:
    """Figures from their encoding, of any version."""
    return GpuUse(**{name: value for name, value in values.items() if name in _NAMES})
