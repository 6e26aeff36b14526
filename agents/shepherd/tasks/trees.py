"""Processes of the tasks of an attempt: its control group, or without groups what has kept a mark of it."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from agents.shepherd.confinement.groups import Confinement
from agents.shepherd.process import processes


class Trees:
    """Finder of tasks' processes. ``first`` maps living first processes to their tasks' serials."""

    def __init__(self, confinement: Confinement, first: Mapping[int, int]) -> None:
        self._confinement = confinement
        self._first = first

    def of(self, serials: Iterable[int], sessions: Mapping[int, int] = MappingProxyType({})) -> dict[int, list[int]]:
        """Return the processes of these tasks. ``sessions`` maps ended first processes to their tasks' serials."""
        groups = self._confinement.tasks
        found: dict[int, list[int]] = {}
        others = []
        for serial in serials:
            members = groups.of(serial) if groups is not None else None
            if members is None:
                others.append(serial)
            else:
                found[serial] = members
        if others:
            found |= processes.task_trees(others, self._first, self._confinement.members(), sessions)
        return found
