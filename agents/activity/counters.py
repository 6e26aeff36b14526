"""Counters that show the activity of a part: network bytes, sizes of output files, states of processes, GPU power."""

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from agents.activity.clock import NOT_KNOWN
from agents.gpus.vendor import OK
from protos.cluster_pb2 import Gpu

PROC = Path("/proc")
INFINIBAND = Path("/sys/class/infiniband")
WORD_BYTES = 4  # the unit of InfiniBand's counters
LOOPBACK = "lo"


def network_bytes(pids: Iterable[int]) -> int:
    """Return all bytes received and sent in the network namespace of the first of these processes that still runs, and
    by the host's InfiniBand ports; without any in that of this process.
    """
    for pid in (*pids, os.getpid()):
        with contextlib.suppress(OSError):
            return interface_bytes((PROC / str(pid) / "net" / "dev").read_text(encoding="ascii")) + port_bytes()
    return port_bytes()


def interface_bytes(text: str) -> int:
    """Return the sum over all interfaces of /proc/PID/net/dev; the loopback counts by the CPU time that it takes."""
    total = 0
    for line in text.splitlines()[2:]:
        name, _, figures = line.partition(":")
        words = figures.split()
        if name.strip() != LOOPBACK and len(words) >= 9:
            total += int(words[0]) + int(words[8])
    return total


def port_bytes() -> int:
    """Return the bytes received and sent by InfiniBand ports, which the kernel's interfaces do not see."""
    total = 0
    for counter in INFINIBAND.glob("*/ports/*/counters/port_*_data"):
        with contextlib.suppress(OSError, ValueError):
            total += WORD_BYTES * int(counter.read_text(encoding="ascii"))
    return total


def size_of(paths: Iterable[str]) -> int:
    """Return the size of these files together; one that is missing has none. Blocks if a file system hangs.

    NOT_KNOWN if one of them cannot be looked at, as of a server that is away.
    """
    total = 0
    for path in paths:
        try:
            total += os.stat(path).st_size
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return NOT_KNOWN
    return total


def are_stopped(pids: Sequence[int]) -> bool:
    """True if all these processes are stopped."""
    states = [state for pid in pids if (state := _state(pid))]
    return bool(states) and all(state in "Tt" for state in states)


def _state(pid: int) -> str:
    with contextlib.suppress(OSError):
        return (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    return ""


def power_of(gpus: Iterable[Gpu], indices: Iterable[int]) -> float | None:
    """Return the highest power of these devices as part of their limit; None if it is not known of one of them.

    Utilisation is no measure: a kernel that waits for others counts as busy.
    """
    known = {gpu.index: gpu for gpu in gpus}
    shares = []
    for index in indices:
        gpu = known.get(index)
        if gpu is None or gpu.status != OK or gpu.power_limit_w <= 0 or gpu.power_w <= 0:
            return None
        shares.append(gpu.power_w / gpu.power_limit_w)
    return max(shares, default=None)
