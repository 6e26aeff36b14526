"""Control groups for the agents of one cluster, so that two clusters on one machine never share one.

An agent makes the groups of its jobs below its own group. In a group of its own it cannot collide with another agent of
the same host name, nor move the processes of a user's shell; and every process in the group when the cluster goes down
belongs to the cluster, even if it left the host's namespaces. Where no groups can be made, agents run without them.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from lavactl.personal.processes import sweep

V1_CONTROLLERS = ("cpuacct", "memory", "pids")
V2_CONTROLLERS = ("memory", "pids", "cpu", "cpuset", "io")
# Where an agent on version 2 is, beside the groups of its jobs: a group that delegates controllers takes no processes.
SUPERVISOR = "supervisor"


def roots(cluster_id: str) -> list[Path]:
    """Root groups of the cluster, made or not: below this process's own for version 1, at the top for version 2.

    A version 2 group that has processes of its own cannot delegate controllers, except at the top.
    """
    own = dict(_memberships(Path("/proc/self/cgroup").read_text(encoding="utf-8")))
    mounted = _mounts(Path("/proc/self/mounts").read_text(encoding="utf-8"))
    if all(controller in mounted and controller in own for controller in V1_CONTROLLERS):
        inner = {controller: own[controller].lstrip("/") for controller in V1_CONTROLLERS}
        return [mounted[controller] / inner[controller] / f"lava-{cluster_id}" for controller in V1_CONTROLLERS]
    return [mounted[""] / f"lava-{cluster_id}"] if "" in mounted else []


def _memberships(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            yield controller, path


def _mounts(text: str) -> dict[str, Path]:
    """Mount point of each version 1 controller, and of version 2 under the empty name."""
    found: dict[str, Path] = {}
    for line in text.splitlines():
        _, point, kind, options = line.split()[:4]
        if kind == "cgroup":
            for controller in set(options.split(",")) & set(V1_CONTROLLERS):
                found.setdefault(controller, Path(point))
        elif kind == "cgroup2":
            found.setdefault("", Path(point))
    return found


def make(cluster_id: str, host: str) -> list[str]:
    """Make the groups for a host's agent; empty where they cannot be made."""
    made = []
    try:
        for root in roots(cluster_id):
            root.mkdir(exist_ok=True)
            group = root / host
            if (root / "cgroup.subtree_control").exists():
                _hand_down(root)
                group /= SUPERVISOR
            group.mkdir(parents=True, exist_ok=True)
            made.append(str(group))
    except OSError:
        return []
    return made


def _hand_down(group: Path) -> None:
    """Delegate this group's controllers to its children."""
    available = (group / "cgroup.controllers").read_text(encoding="ascii").split()
    for controller in set(available) & set(V2_CONTROLLERS):
        (group / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")


def clear(cluster_id: str) -> None:
    """Kill every process in the cluster's groups and remove the groups."""
    present = [root for root in roots(cluster_id) if root.is_dir()]
    if present:
        sweep(lambda: _members(present))
    for root in present:
        for directory, _, _ in os.walk(root, topdown=False):
            with contextlib.suppress(OSError):  # a group in use stays, and is visible
                os.rmdir(directory)


def members(cluster_id: str) -> set[int]:
    """Processes in the cluster's groups."""
    return _members([root for root in roots(cluster_id) if root.is_dir()])


def clear_host(cluster_id: str, host: str) -> None:
    """Kill every process in the groups of one host; the groups stay."""
    present = [root / host for root in roots(cluster_id) if (root / host).is_dir()]
    if present:
        sweep(lambda: _members(present))


def _members(groups: list[Path]) -> set[int]:
    found: set[int] = set()
    for group in groups:
        for directory, _, _ in os.walk(group):
            # A group may vanish while the tree is walked.
            with contextlib.suppress(FileNotFoundError):
                found.update(int(pid) for pid in Path(directory, "cgroup.procs").read_text(encoding="ascii").split())
    return found
