"""Traces of a cluster on a machine, found from outside: processes, namespaces, links, mounts, control groups."""

import os
import re
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from lavactl.personal.processes import identify

_KINDS = ("net", "mnt", "uts", "user")


@dataclass(frozen=True)
class Traces:
    """Everything that could be left behind."""

    processes: frozenset[tuple[int, str]]
    namespaces: frozenset[tuple[str, int]]
    links: frozenset[str]
    mounts: frozenset[str]
    groups: frozenset[str]
    sockets: frozenset[str]


def processes_of(directory: Path, cluster_id: str) -> frozenset[tuple[int, str]]:
    """Processes that name the cluster's directory, live in its control groups, or descend from such a process."""
    found: dict[int, str] = {}
    parents: dict[int, int] = {}
    marks = (str(directory).encode(), f"lava-{cluster_id}".encode())
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with suppress(OSError):
            stat = Path("/proc", name, "stat").read_text(errors="replace")
            state, parent = stat.rpartition(")")[2].split()[:2]
            if state in "ZX":  # it has ended: only its parent has not collected its exit status
                continue
            parents[int(name)] = int(parent)
            texts = [Path("/proc", name, part).read_bytes() for part in ("cmdline", "cgroup")]
            with suppress(PermissionError):
                texts.append(Path("/proc", name, "environ").read_bytes())
            if any(mark in text for mark in marks for text in texts):
                found[int(name)] = stat[:60]
    for pid in parents:
        if parents[pid] in found and pid != os.getpid():
            found.setdefault(pid, f"child of {parents[pid]}")
    return frozenset(found.items())


def look(directory: Path, cluster_id: str) -> Traces:
    """Present traces of one cluster; the machine's own namespaces are among them, so compare."""
    pids = processes_of(directory, cluster_id)
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    links = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    groups = [path for path, _, _ in os.walk("/sys/fs/cgroup") if cluster_id in path]
    run = [str(path) for base in ("/run", "/tmp") for path in Path(base).glob(f"*{cluster_id}*")]
    return Traces(
        processes=pids,
        namespaces=all_namespaces(),
        links=frozenset(name for name in re.findall(r"^\d+: ([^:@]+)", links, re.MULTILINE) if cluster_id in name),
        mounts=frozenset(line for line in mounts if str(directory) in line or cluster_id in line),
        groups=frozenset(groups),
        sockets=frozenset(run),
    )


def all_namespaces(begun_by: float = float("inf")) -> frozenset[tuple[str, int]]:
    """Every namespace that any process of this machine lives in which began by that time.

    An ended process lives in none, though its user namespace is named until init has collected its exit status. The
    kernel gives the number of a namespace that is gone to the next one.
    """
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit() and identify(int(name)) is not None and _began(int(name)) <= begun_by:
            for kind in _KINDS:
                with suppress(OSError):
                    found.add((kind, os.stat(f"/proc/{name}/ns/{kind}").st_ino))
    return frozenset(found)


def _began(pid: int) -> float:
    with suppress(psutil.Error):
        return psutil.Process(pid).create_time()
    return float("inf")


def namespaces_of(pids: list[int]) -> frozenset[tuple[str, int]]:
    """Those that these processes live in and this one does not."""
    return frozenset().union(*map(_namespaces, pids)) - _namespaces(os.getpid())


def _namespaces(pid: int) -> frozenset[tuple[str, int]]:
    """Namespaces of a process; none of one that has ended since it was listed."""
    try:
        return frozenset((kind, os.stat(f"/proc/{pid}/ns/{kind}").st_ino) for kind in _KINDS)
    except (FileNotFoundError, ProcessLookupError):
        return frozenset()
