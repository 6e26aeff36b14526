"""Use of one GPU by one attempt, added up from readings. Pure.

Invariants: figures never decrease; a time for which nothing was read is in no integral but that of energy, which the
device counts by itself; of a device that several attempts share each has the part that its processes have of the
multiprocessors, or an equal part where the driver does not report it.
"""

from dataclasses import dataclass

from agents.gpus.vendor import OK
from protos.cluster_pb2 import Gpu
from protos.common_pb2 import GpuProcess, GpuUsage

GAP_S = 30.0  # readings further apart say nothing of the time between them
IDLE_FRACTION = 0.1
IDLE_PART_MAX = 0.2  # of the limit: idle devices draw less, whatever was seen of this one


@dataclass(frozen=True, slots=True)
class IdlePower:
    """Power up to which a device is idle: in watts, or a fraction of the range between its idle and limit power."""

    power_w: float = 0.0
    fraction: float = 0.0

    def threshold_w(self, lowest_w: float, limit_w: float) -> float:
        """Return the threshold for a device; 0 if it is not known, and then the device never counts as idle.

        ``lowest_w``: the least power that was seen of it.
        """
        if self.power_w or not limit_w:
            return self.power_w
        rest_w = min(lowest_w or limit_w, IDLE_PART_MAX * limit_w)
        return rest_w + (self.fraction or IDLE_FRACTION) * (limit_w - rest_w)


@dataclass(frozen=True, slots=True)
class Part:
    """An attempt's part of a device in one reading: its processes, and how much of the whole is its own."""

    processes: tuple[GpuProcess, ...] = ()
    fraction: float = 1.0
    is_whole: bool = True  # no other attempt has the device


@dataclass(slots=True)
class Account:
    """Figures of one device and attempt, with what the next reading is compared to."""

    usage: GpuUsage
    at: float  # of the last reading, seconds since the epoch
    energy_j: float  # the device's counters then
    ecc_errors: int

    @staticmethod
    def opened(gpu: Gpu, now: float) -> "Account":
        """Open an account at this reading."""
        usage = GpuUsage(index=gpu.index, uuid=gpu.uuid, model=gpu.model)
        return Account(usage, now, gpu.energy_j, gpu.ecc_errors)

    def add(self, gpu: Gpu, now: float, part: Part, idle_w: float) -> None:
        """Add a reading; ``idle_w`` is the power up to which the device counts as idle."""
        usage, seconds = self.usage, max(0.0, now - self.at)
        if gpu.status != OK:
            usage.trouble = gpu.status
        if gpu.power_w or gpu.memory_used_mib or gpu.status == OK:
            energy_j = self._energy_j(gpu, seconds)
            usage.energy_j += energy_j * part.fraction
            self._note_idle(gpu, seconds, energy_j, idle_w)
            self._take(gpu, part, seconds if seconds <= GAP_S else 0.0)
            self.energy_j = gpu.energy_j
        self.at = now

    def _energy_j(self, gpu: Gpu, seconds: float) -> float:
        """Return the energy since the last reading, by the device's counter if it has one."""
        if gpu.energy_j and self.energy_j and gpu.energy_j >= self.energy_j:
            return gpu.energy_j - self.energy_j
        return gpu.power_w * seconds if seconds <= GAP_S else 0.0

    def _note_idle(self, gpu: Gpu, seconds: float, energy_j: float, idle_w: float) -> None:
        usage = self.usage
        # Over a time without readings the mean power counts, as far as the device's counter gives it.
        power_w = gpu.power_w if seconds <= GAP_S else max(gpu.power_w, energy_j / seconds)
        is_known = seconds <= GAP_S or energy_j > 0
        if not gpu.power_w or power_w > idle_w or not is_known:
            usage.idle_s = 0.0
        else:
            usage.idle_s += seconds
            usage.idle_max_s = max(usage.idle_max_s, usage.idle_s)

    def _take(self, gpu: Gpu, part: Part, seconds: float) -> None:
        usage, its = self.usage, part.processes
        in_use = gpu.utilisation if part.is_whole else _sm(its, gpu.utilisation * part.fraction)
        memory_mib = sum(process.memory_mib for process in its)
        if part.is_whole and not any(process.memory_mib for process in gpu.processes):
            memory_mib = gpu.memory_used_mib  # the driver does not report the memory of processes
        usage.seconds += seconds
        usage.utilisation = in_use
        usage.utilisation_max = max(usage.utilisation_max, in_use)
        usage.utilisation_s += in_use * seconds
        usage.memory_utilisation_max = max(usage.memory_utilisation_max, gpu.memory_utilisation)
        usage.memory_utilisation_s += gpu.memory_utilisation * seconds
        usage.memory_mib = memory_mib
        usage.memory_mib_max = max(usage.memory_mib_max, memory_mib)
        usage.memory_mib_s += memory_mib * seconds
        usage.power_w = gpu.power_w * part.fraction
        usage.power_w_max = max(usage.power_w_max, usage.power_w)
        usage.temperature_c_max = max(usage.temperature_c_max, gpu.temperature_c)
        usage.throttled_s += seconds if gpu.throttled else 0.0
        usage.ecc_errors += max(0, gpu.ecc_errors - self.ecc_errors)
        self.ecc_errors = gpu.ecc_errors
        del usage.processes[:]
        usage.processes.extend(its)


def _sm(processes: tuple[GpuProcess, ...], otherwise: float) -> float:
    """Return the processes' part of the multiprocessors."""
    known = [process.sm for process in processes if process.has_sm]
    return min(1.0, sum(known)) if known or not processes else otherwise


def parts(gpu: Gpu, holders: "dict[int, tuple[int, ...]]") -> dict[int, Part]:
    """Divide a device among its holders: number of each holder and the processes of the device that are its own."""
    found = {one: tuple(process for process in gpu.processes if process.pid in pids) for one, pids in holders.items()}
    if len(found) <= 1:
        return {one: Part(its) for one, its in found.items()}
    weights = {one: sum(process.sm for process in its) for one, its in found.items()}
    total = sum(weights.values())
    return {
        one: Part(its, weights[one] / total if total else 1 / len(found), is_whole=False) for one, its in found.items()
    }


def unowned_mib(gpu: Gpu, ended: "frozenset[int] | set[int]" = frozenset()) -> int:
    """Return the device's memory that is held without a process, or by processes in ``ended``.

    0 where the driver does not report the memory of its processes.
    """
    others = [process.memory_mib for process in gpu.processes if process.pid not in ended]
    if not all(others):
        return 0
    return max(0, gpu.memory_used_mib - sum(others))
