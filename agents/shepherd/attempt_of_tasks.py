"""An attempt of a job of tasks: its processes come and go one by one, and it lasts until the master ends it.

Invariants: as of every attempt; the end of a task ends no attempt; the newest state of each task is kept until the
attempt is over, for the next agent.
"""

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from resource import struct_rusage

from agents.shepherd import messages
from agents.shepherd.attempt import ENDING, HELD, PRE, RUNNING
from agents.shepherd.checkpoints import CheckpointedWork
from agents.shepherd.clock import NEVER
from agents.shepherd.controls import STOPPING
from agents.shepherd.messages import JobSetup, Key, Message, RunOrder, RunState, fields_of, pack, unpack
from agents.shepherd.process.descriptors import raise_limit
from agents.shepherd.process.gpu_daemon import directory_of
from agents.shepherd.process.start import UNUSABLE, StartFailure
from agents.shepherd.tasks.run_files import KeptOutput, Run, kept_run_path, setup_of_run, setups_to_empty
from agents.shepherd.tasks.runs import ENDED_BEFORE_START, Host, Runs, TaskKey
from agents.shepherd.tools import Tools

ENDING_HERE = "The job is ending on this host."
KEPT_MANY = 64  # tasks beyond which the limit of descriptors is raised


def _with_own_files(setup: JobSetup, key: Key) -> JobSetup:
    """Name the attempt's own private files: the setup names the directory of those of all attempts."""
    base = setup.private_files
    return setup._replace(private_files=f"{directory_of(base, key)}/tree") if base else setup


class WorkOfTasks(CheckpointedWork):
    """Attempt of a job of tasks, held by this shepherd."""

    def __init__(self, key: Key, setup: JobSetup, tools: Tools) -> None:
        super().__init__(key, _with_own_files(setup, key), tools)
        self._has_command = True
        here = Host(
            self._spawn_run, self._output, self.beside.signals.add, self.beside.trees, self._run_over,
            self.beside.serials, self._tell_states, self._why_ending,
        )  # fmt: skip
        self._runs = Runs(here, setup.terminate_interval_s)
        self._first: list[RunOrder] = []  # until the pre-execution command has ended
        self._kept_paths: list[str] = []

    # -- orders of the agent

    def order(self, kind: int, fields: Message) -> None:
        """Carry out an order about tasks."""
        if kind == messages.START_TASKS:
            self._start_runs([RunOrder.of(one) for one in fields[0]])
        elif kind == messages.STOP_TASKS:
            self._first = [one for one in self._first if not _is_among(one, fields[0])]
            self._runs.stop(fields[0], fields[1])
        elif kind == messages.SIGNAL_TASKS:
            self._runs.signal(fields[0], fields[1])

    def revoke(self, seconds: float) -> None:
        """End with the host, tasks included."""
        super().revoke(seconds)
        self._runs.revoke(self._termination.kill_due)

    def _start_runs(self, orders: list[RunOrder]) -> None:
        if self.phase not in (HELD, PRE, RUNNING) or self._is_being_ended:
            self._runs.refuse(orders, ENDING_HERE)
            return
        if len(orders) > KEPT_MANY:
            raise_limit()
        if self.phase == RUNNING:
            self._runs.start(orders)
            return
        self._first += orders
        if self.phase == HELD:
            self.launched = True
            self._attempt(self._begin)

    def _staged(self) -> None:
        if self.setup.is_lead:
            try:
                for setup in setups_to_empty(self.setup):
                    self._spawner.empty(setup)
            except (StartFailure, OSError, *UNUSABLE) as failure:  # each task meets it again, and its end says so
                print(f"event=output_not_emptied key={self.key} error={failure}", file=sys.stderr)
        super()._staged()

    def _start_processes(self) -> None:
        self._spare_others()
        self._note_start()
        self._running(0)
        orders, self._first = self._first, []
        self._runs.start(orders)

    def _running(self, pid: int) -> None:
        super()._running(pid)
        self._announce_at = NEVER  # tasks are told of, one by one

    def status(self) -> bytes:
        """Return the STATUS message, with the states of all tasks."""
        whole = fields_of(messages.Status, unpack(super().status())[1:])
        return pack(messages.STATUS, *whole._replace(tasks=tuple(map(tuple, self._runs.states()))))

    # -- for the runs

    def _spawn_run(self, order: RunOrder, serial: int, spooled: int) -> int:
        setup = setup_of_run(self.setup, self.key, order)
        overlay = {**order.environment, b"LAVA_TASK_SERIAL": b"%d" % serial}
        for name, path in ((b"LSB_OUTPUTFILE", setup.output), (b"LSB_ERRORFILE", setup.error)):
            if path:
                overlay[name] = os.fsencode(path)
        groups = self._tools.confinement.tasks
        with groups.entered(serial) if groups is not None else contextlib.nullcontext():
            return self._spawner.run(setup, order.program, overlay, spooled)

    def _placed(self, serial: int, runs: tuple[Run, ...]) -> contextlib.AbstractContextManager[None]:
        return self._in_place(serial, self._runs.place_of(runs)) if runs else super()._placed(serial, runs)

    @contextlib.contextmanager
    def _in_place(self, serial: int, task: TaskKey) -> Iterator[None]:
        groups = self._tools.confinement.tasks
        with groups.entered(serial) if groups is not None else contextlib.nullcontext():
            yield
        self._runs.joined(task, serial)

    def _run_over(self, serial: int) -> None:
        if self._tools.confinement.tasks is not None:
            self._tools.confinement.tasks.drop(serial)

    def _output(self, run: Run) -> KeptOutput | None:
        if self.setup.output:
            return None
        path = kept_run_path(self._tools.output.directory, self.key, run)
        output = KeptOutput(path, self.setup)
        self._kept_paths.append(path)
        return output

    def _tell_states(self, states: list[RunState]) -> None:
        self._send(messages.TASKS, tuple(map(tuple, states)))

    def _why_ending(self) -> str:
        return self._reason if self._is_being_ended or self.phase == ENDING else ""

    @property
    def _is_being_ended(self) -> bool:
        return self._termination.next_at != NEVER

    # -- timers and ends of processes

    @property
    def next_at(self) -> float:
        """Monotonic time of the next `tick` with work."""
        return min(super().next_at, self._runs.next_at)

    def tick(self, now: float) -> None:
        """Carry out all due work; an attempt that is being ended is over with its last task."""
        super().tick(now)
        if self._is_being_ended:
            self._runs.end_with_all()
        self._runs.tick(now)
        if self._is_being_ended and self.phase in (HELD, RUNNING) and not self._runs.are_alive:
            self.launched = True
            self._end(self._runs.last_status or ENDED_BEFORE_START)

    def reaped(self, pid: int, status: int, usage: struct_rusage) -> None:
        """Handle the end of a child of the shepherd: of a task's first process, or another."""
        serial = self.beside.serials.get(pid, 0)
        failure = self._tools.identity.late_failure(pid) if serial else 0
        detail = f"The task's program cannot be executed: {os.strerror(failure)}." if failure else ""
        if serial and self._runs.ended(serial, status, detail):
            del self.beside.serials[pid]
            self._meter.reaped(usage)
        else:
            super().reaped(pid, status, usage)
            if serial:
                self._runs.left(serial, pid)

    def settle(self, children: bool) -> None:
        """Continue the attempt's end after reaping: ended tasks are told before it."""
        if self.phase == ENDING:
            self._runs.close()
        super().settle(children)

    def _end(self, status: int) -> None:
        super()._end(status)
        if not self._refusal:  # else they were never to be started here
            self._runs.refuse(self._first, ENDING_HERE)
        self._first = []
        self._runs.end_with_all()
        self._runs.close()

    def _close(self) -> None:
        super()._close()
        for path in self._kept_paths:  # their time is counted from here
            with contextlib.suppress(FileNotFoundError):  # removed for want of room
                os.utime(path)

    def _signal_as_configured(self, number: int, causes: int) -> None:
        super()._signal_as_configured(number, causes)
        if number in STOPPING:
            self._runs.suspend()
        elif number == signal.SIGCONT:
            self._runs.resume()


def _is_among(order: RunOrder, runs: list[Run]) -> bool:
    return any((order.role, order.index) == run[:2] and order.run <= run[2] for run in runs)
