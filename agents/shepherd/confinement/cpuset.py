"""CPUs and memory nodes of a slot's cgroup, which no process in it can leave."""

import os
from collections.abc import Sequence

from agents.shepherd.confinement.hierarchy import read, write

CPUS, NODES = "cpuset.cpus", "cpuset.mems"


class Cpuset:
    """Cpuset of one group. ``above`` is the group with all that a job may have; empty if an empty file means that.

    Raises:
        OSError: the group can't be set up.
    """

    def __init__(self, path: str, above: str = "") -> None:
        self._path = path
        self._all = {name: read(f"{above}/{name}").strip() if above else "" for name in (CPUS, NODES)}
        self._now: dict[str, str] = {}
        self.hold((), ())

    def hold(self, cpus: Sequence[int], nodes: Sequence[int]) -> None:
        """Restrict the group to these; no restriction if empty. OSError if one of them does not exist."""
        for name, numbers in ((CPUS, cpus), (NODES, nodes)):
            text = ",".join(map(str, numbers)) or self._all[name]
            if self._now.get(name) != text:
                write(f"{self._path}/{name}", text or "\n")
                self._now[name] = text


def is_in(path: str) -> bool:
    """Return True if this group (version 2) has the cpuset controller."""
    return os.path.exists(f"{path}/{CPUS}")
