"""Use of GPUs by a job, as ``bjobs -l -gpu`` and ``bhist -l -gpu`` show it: in LSF's lines, and a few of lava's own."""

from lavactl.text.render import MISSING, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from lavactl.wire import messages


def usage_text(gpus: "Sequence[messages.GpuUsage]") -> str:
    """The use of each GPU by host, and the energy of all; empty if nothing was measured."""
    return "\n".join(["", *_lines(gpus), ""]) if gpus else ""


def _lines(gpus: "Sequence[messages.GpuUsage]") -> "Iterator[str]":
    host = ""
    for gpu in sorted(gpus, key=lambda one: (one.host, one.index)):
        if gpu.host != host:
            host = gpu.host
            yield f" HOST: {host}"
        yield f"       GPU ID: {gpu.index}"
        for line in _figures(gpu):
            yield f"           {line}"
    yield f"GPU Energy Consumed: {energy_of(gpus):.0f} Joules"


def _figures(gpu: "messages.GpuUsage") -> "Iterator[str]":
    yield f"Total Execution Time: {gpu.seconds:.0f} seconds"
    yield f"Energy Consumed: {gpu.energy_j:.0f} Joules"
    yield f"SM Utilization (%): Avg {100 * mean(gpu.utilisation_s, gpu):.0f}, Max {100 * gpu.utilisation_max:.0f}"
    memory_mean = 100 * mean(gpu.memory_utilisation_s, gpu)
    yield f"Memory Utilization (%): Avg {memory_mean:.0f}, Max {100 * gpu.memory_utilisation_max:.0f}"
    yield f"Max GPU Memory Used: {gpu.memory_mib_max} Megabytes"
    yield f"Average GPU Memory Used: {mean(gpu.memory_mib_s, gpu):.0f} Megabytes"
    power_mean = gpu.energy_j / gpu.seconds if gpu.seconds else 0.0
    yield f"Power (W): Avg {power_mean:.0f}, Max {gpu.power_w_max:.0f}; Max Temperature: {gpu.temperature_c_max}C"
    yield from _remarks(gpu)
    for process in gpu.processes:
        yield f"PID {process.pid}: SM {_percent(process)}, Memory {process.memory_mib} Megabytes"


def _remarks(gpu: "messages.GpuUsage") -> "Iterator[str]":
    """Lines that only some devices have."""
    if gpu.idle_max_s >= 1:
        now = f", now for {gpu.idle_s:.0f} seconds" if gpu.idle_s >= 1 else ""
        yield f"Idle by Power: up to {gpu.idle_max_s:.0f} seconds{now}"
    if gpu.throttled_s >= 1:
        yield f"Slowed Down (heat or power): {gpu.throttled_s:.0f} seconds"
    if gpu.ecc_errors:
        yield f"Uncorrected Memory Errors: {gpu.ecc_errors}"
    if gpu.trouble:
        yield f"Trouble: {clean(gpu.trouble)}"


def _percent(process: "messages.GpuProcess") -> str:
    return f"{100 * process.sm:.0f}%" if process.has_sm else MISSING


def mean(integral: float, gpu: "messages.GpuUsage") -> float:
    """Mean of a figure over the time for which the device was measured."""
    return integral / gpu.seconds if gpu.seconds else 0.0


def energy_of(gpus: "Iterable[messages.GpuUsage]") -> float:
    """Energy of all devices in joules."""
    return sum(gpu.energy_j for gpu in gpus)
