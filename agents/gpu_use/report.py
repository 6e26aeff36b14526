"""The part of a job report about GPUs: a line for each GPU of each host."""

from collections.abc import Iterable, Iterator

from protos.common_pb2 import GpuUsage


def report_text(uses: Iterable[tuple[str, Iterable[GpuUsage]]]) -> str:
    """Render the use of GPUs by host; empty if nothing was measured."""
    lines = [line for host, gpus in uses for gpu in gpus for line in _lines(host, gpu)]
    return "\n".join(["GPU usage:", "", *lines, ""]) if lines else ""


def _lines(host: str, gpu: GpuUsage) -> Iterator[str]:
    label = f"{host} GPU {gpu.index} :"
    yield f"    {label:<44} {gpu.seconds:.0f} sec."
    yield _pair("SM utilization", 100 * _mean(gpu.utilisation_s, gpu), 100 * gpu.utilisation_max, "%")
    yield _pair("Memory", _mean(gpu.memory_mib_s, gpu), gpu.memory_mib_max, " MB")
    yield _pair("Power", _mean(gpu.energy_j, gpu), gpu.power_w_max, " W")
    yield f"      {'Energy :':<42} {gpu.energy_j:.0f} J"
    if gpu.idle_max_s >= 1:
        yield f"      {'Longest time at idle power :':<42} {gpu.idle_max_s:.0f} sec."
    if gpu.ecc_errors:
        yield f"      {'Uncorrected memory errors :':<42} {gpu.ecc_errors}"
    if gpu.trouble:
        yield f"      {'Trouble :':<42} {gpu.trouble}"


def _pair(name: str, mean: float, most: float, unit: str) -> str:
    return f"      {f'{name} :':<42} {mean:.0f}{unit} on average, {most:.0f}{unit} at most"


def _mean(integral: float, gpu: GpuUsage) -> float:
    return integral / gpu.seconds if gpu.seconds else 0.0
