"""CPUs and memory nodes of a slot's cgroup, which no process in it can leave."""

import os
from collections.abc import Sequence

from agents.shepherd.confinement.hierarchy import read, write

CPUS, NODES = "cpuset.cpus", "cpuset.mems"


class Cpuset:
    """Cpuset of one group.

    ``above`` is the group with all that a job may have. Without it (version 2) a group is made without a restriction;
    one that has had a restriction and has members can't be made empty again, so it gets all of its parent's.

    Raises:
        OSError: the group can't be set up.
    """

    def __init__(self, path: str, above: str = "") -> None:
        self._path = path
        self._above, self._suffix = (above, "") if above else (os.path.dirname(path), ".effective")
        unrestricted = [name for name in (CPUS, NODES) if not above and not read(f"{path}/{name}").strip()]
        self._now: dict[str, str] = dict.fromkeys(unrestricted, "")
        self.hold((), ())

    def hold(self, cpus: Sequence[int], nodes: Sequence[int]) -> None:
        """Restrict the group to these; no restriction if empty. OSError if one of them does not exist."""
        for name, numbers in ((CPUS, cpus), (NODES, nodes)):
            text = ",".join(map(str, numbers))
            if self._now.get(name) != text:
                write(f"{self._path}/{name}", text or read(f"{self._above}/{name}{self._suffix}").strip())
                self._now[name] = text


def is_in(path: str) -> bool:
    """Return True if this group (version 2) has the cpuset controller."""
    return os.path.exists(f"{path}/{CPUS}")
