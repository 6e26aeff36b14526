"""Processes beside a job's own: tasks whose streams the agent owns, and kept tasks.

Invariant: none is started on a host where the attempt does not run, and the descriptors that came with an order are
closed in any case.
"""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from agents.shepherd.messages import JobSetup
from agents.shepherd.process import processes
from agents.shepherd.process.spawner import Spawner
from agents.shepherd.process.start import UNUSABLE, HostFailure, StartFailure
from agents.shepherd.tasks.kept import Host, KeptTasks, Order, Refusal
from agents.shepherd.tasks.trees import Trees
from agents.shepherd.tools import Tools

TaskRun = tuple[int, int, int]  # role, index, run of a task of a job of tasks


class TasksBeside:
    """Tasks beside the processes of one attempt on this host.

    Args:
        starting: called before each start; raises Refusal if the attempt takes no further process, OSError if the start
            cannot be noted.
        started: called after each.
        placed: returns the context of a start, for its serial number and the runs of which one is to have it; raises
            Refusal if none takes it.
    """

    def __init__(
        self,
        setup: JobSetup,
        tools: Tools,
        spawner: Spawner,
        starting: Callable[[], None],
        started: Callable[[], None],
        placed: Callable[[int, tuple[TaskRun, ...]], AbstractContextManager[None]],
    ) -> None:
        self.serials: dict[int, int] = {}  # of living first processes, by process id
        self.trees = Trees(tools.confinement, self.serials)
        self.signals = processes.TaskSignals(self.trees.of)
        self._spawner = spawner
        self._identity = tools.identity
        self._starting = starting
        self._started = started
        self._placed = placed
        here = Host(
            self._spawn_kept, self.signals.add, tools.watch, tools.has_agent, (setup.uid, setup.gid), tools.null
        )
        self.kept = KeptTasks(here)

    def start(
        self,
        serial: int,
        argv: tuple[bytes, ...],
        cwd: str,
        overlay: dict[bytes, bytes],
        fds: list[int],
        umask: int | None = None,
        runs: tuple[TaskRun, ...] = (),
    ) -> int:
        """Start a process with these descriptors, which are closed; return its process id.

        Raises:
            Refusal: it cannot be started.
        """
        try:
            self._starting()
            place = self._placed(serial, runs)
        except (Refusal, OSError) as error:
            for descriptor in fds:
                os.close(descriptor)
            raise Refusal(str(error)) from None
        try:
            with place:
                pid = self._spawner.task(serial, argv, cwd, overlay, fds, umask)
        except (StartFailure, HostFailure, OSError, *UNUSABLE) as failure:
            raise Refusal(str(failure)) from None
        self.serials[pid] = serial
        self._started()
        return pid

    def _spawn_kept(self, serial: int, order: Order, fds: list[int]) -> int:
        umask = None if order.umask < 0 else order.umask
        with self._identity.on_terminal() if order.window else nullcontext():
            return self.start(serial, order.argv, order.cwd, order.environment, fds, umask, order.runs)

    @property
    def next_at(self) -> float:
        """Monotonic time of the next `tick` with work."""
        return min(self.signals.next_at, self.kept.next_at)

    def tick(self, now: float) -> None:
        """Carry out all due work."""
        self.kept.tick(now)
        if now >= self.signals.next_at:
            self.signals.send()
