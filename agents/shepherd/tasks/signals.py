"""Signals to tasks of a job, gathered: one look at all of its processes finds those of a thousand tasks."""

import time
from collections.abc import Callable, Mapping

from agents.shepherd.clock import NEVER
from agents.shepherd.process import processes

PAUSE_S = 0.005  # least time of gathering


class TaskSignals:
    """Signals waiting to be sent. ``first`` maps living first processes to their tasks' serials."""

    def __init__(self, first: Mapping[int, int], members: Callable[[], list[int]]) -> None:
        self.next_at = NEVER
        self._first = first
        self._members = members
        self._waiting: dict[int, list[int]] = {}
        self._pause_s = PAUSE_S

    def add(self, number: int, serial: int) -> None:
        """Signal a task, soon."""
        self._waiting.setdefault(serial, []).append(number)
        self.next_at = min(self.next_at, time.monotonic() + self._pause_s)

    def send(self) -> None:
        """Send all waiting signals."""
        began, self.next_at = time.monotonic(), NEVER
        waiting, self._waiting = self._waiting, {}
        found = processes.task_trees(waiting, self._first, self._members())
        for serial, numbers in waiting.items():
            for number in numbers:
                processes.send(found[serial], number)
        self._pause_s = max(PAUSE_S, time.monotonic() - began)  # leaves half of the time for other work
