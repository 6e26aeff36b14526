"""Use of GPUs between the wire and the core."""

from collections.abc import Iterable
from typing import Any

from lavad.api import checks
from lavad.core.model.gpu_use import GpusByHost, GpuUse
from protos.common_pb2 import GpuProcess, GpuUsage

_AMOUNTS = (
    "seconds", "utilisation", "utilisation_max", "utilisation_s", "memory_utilisation_max", "memory_utilisation_s",
    "memory_mib_s", "power_w", "power_w_max", "energy_j", "throttled_s", "idle_s", "idle_max_s",
)  # fmt: skip
_COUNTS = ("index", "memory_mib", "memory_mib_max", "temperature_c_max", "ecc_errors")
_WORDS = ("uuid", "model", "trouble")


def use_of(said: Iterable[GpuUsage]) -> tuple[GpuUse, ...]:
    """Convert what an agent reports, kept within bounds."""
    return tuple(map(_use, said))


def _use(usage: GpuUsage) -> GpuUse:
    figures: dict[str, Any] = {name: checks.amount_of(getattr(usage, name)) for name in _AMOUNTS}
    figures |= {name: min(getattr(usage, name), checks.MEMORY_MAX_MIB) for name in _COUNTS}
    figures |= {name: checks.words_of(getattr(usage, name)) for name in _WORDS}
    return GpuUse(**figures, pids=tuple(map(_process, usage.processes[: checks.PIDS_MAX])))


def _process(one: GpuProcess) -> tuple[int, int, float]:
    sm = checks.amount_of(one.sm, 1.0) if one.has_sm else -1.0
    return (one.pid, min(one.memory_mib, checks.MEMORY_MAX_MIB), sm)


def messages_of(gpus: GpusByHost) -> list[GpuUsage]:
    """Convert for commands, a message for each GPU of each host."""
    return [_message(host, use) for host, uses in gpus for use in uses]


def _message(host: str, use: GpuUse) -> GpuUsage:
    message = GpuUsage(host=host)
    for name in (*_AMOUNTS, *_COUNTS, *_WORDS):
        setattr(message, name, getattr(use, name))
    message.processes.extend(
        GpuProcess(pid=pid, memory_mib=memory_mib, sm=max(0.0, sm), has_sm=sm >= 0) for pid, memory_mib, sm in use.pids
    )
    return message
