"""Facts of a host that stay constant while an agent runs: CPUs, memory, GPUs, the boot.

Counts are of the CPUs this process may use, so that an agent in a container or a cpuset offers only those.
"""

import os
import platform
import re
from pathlib import Path

import psutil

from agents.gpus.vendors import vendor
from protos import __version__
from protos.cluster_pb2 import Gpu, HostFacts

MIB = 1 << 20
TEMPORARY_DIRECTORY = "/tmp"
PROCESSORS = Path("/sys/devices/system/cpu")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
CPU_INFO = Path("/proc/cpuinfo")

# Unless a site sets the factors of its models, all hosts have the same.
CPU_FACTOR = 1.0


def facts(name: str, slots: int | None, simulate_gpus: int) -> HostFacts:
    """Return the facts of this machine under the cluster's name for it.

    `slots` None means one slot a core; 0 makes it a host that runs no jobs. The caller adds the address for peers and
    the launcher's findings about cgroups.
    """
    cpus, cores, sockets = processors(PROCESSORS)
    devices = _gpus(simulate_gpus)
    return HostFacts(
        name=name,
        type=platform.machine().upper(),
        model=model_name(_text(CPU_INFO)),
        cpu_factor=CPU_FACTOR,
        cpus=cpus,
        cores=cores,
        sockets=sockets,
        memory_mib=psutil.virtual_memory().total // MIB,
        swap_mib=psutil.swap_memory().total // MIB,
        tmp_mib=psutil.disk_usage(TEMPORARY_DIRECTORY).total // MIB,
        resources=["linux", "gpu"] if devices else ["linux"],
        boot_id=_text(BOOT_ID).strip(),
        slots=cores if slots is None else slots,
        server=slots is None or slots > 0,
        version=__version__,
        gpus=devices,
        topology=topology(PROCESSORS),
        disks=_disks(),
    )


def processors(root: Path) -> tuple[int, int, int]:
    """Return the logical CPUs, cores and sockets among those this process may run on."""
    usable = os.sched_getaffinity(0)
    cores: set[tuple[str, str]] = set()
    for cpu in usable:
        topology = root / f"cpu{cpu}" / "topology"
        # Without topology (some virtual machines) each CPU counts as a core of one socket.
        cores.add((_text(topology / "physical_package_id") or "0", _text(topology / "core_id") or f"cpu{cpu}"))
    return len(usable), len(cores), len({package for package, _ in cores})


def topology(root: Path) -> str:
    """Return number, core, socket and memory node of each usable CPU: "0 0 0 0,1 1 0 0"."""
    found = []
    for cpu in sorted(os.sched_getaffinity(0)):
        folder = root / f"cpu{cpu}"
        socket = _number(folder / "topology" / "physical_package_id", 0)
        nodes = [int(name[4:]) for name in _names(folder) if name.startswith("node") and name[4:].isdigit()]
        core = _number(folder / "topology" / "core_id", cpu)
        found.append(f"{cpu} {core} {socket} {min(nodes, default=0)}")
    return ",".join(found)


def _number(path: Path, otherwise: int) -> int:
    """Return the kernel's number; some virtual machines have none, or -1."""
    text = _text(path)
    return int(text) if text.isdigit() else otherwise


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _disks() -> int:
    counters = psutil.disk_io_counters(perdisk=True)
    return len([name for name in counters if not name.startswith(("loop", "ram"))])


def model_name(cpu_info: str) -> str:
    """Return the CPU's model as one word: "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz" is Intel_Xeon_Gold_6338."""
    found = re.search(r"^(?:model name|Model|cpu)\s*:\s*(.+)$", cpu_info, re.MULTILINE)
    if found is None:
        return platform.machine()
    name = re.sub(r"\((?:R|TM)\)|@.*|\bCPU\b|\bProcessor\b|\b\d+-Core\b", " ", found.group(1), flags=re.IGNORECASE)
    return "_".join(re.findall(r"[A-Za-z0-9.+-]+", name)) or platform.machine()


def _gpus(simulate: int) -> list[Gpu]:
    devices = vendor(simulate).devices()
    try:
        return devices.read()
    finally:
        devices.close()


def _text(path: Path) -> str:
    """Return the file's text, or "" if this kernel lacks the file."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
