"""Runs of the tasks of a job of tasks on this host: started, limited and ended one by one.

A run has its program and what others start in its place (ssh, blaunch, attach); one without a program has only these.
Invariants: a run that is not newer than the newest one known is never started; a run is told as ended only when none of
its processes is left, or with the whole attempt; the next run of a task starts only then; nothing is started in the
place of a run that is being ended. What belongs to a run is in the control groups of its program and of each further
start; without groups it descends from a first process, stayed in its session, or has a mark in its environment.
"""

import itertools
import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from agents.shepherd.clock import KILL, NEVER, NO_LIMITS, RunClock, Termination
from agents.shepherd.messages import RunOrder, RunState
from agents.shepherd.process import processes, start
from agents.shepherd.process.start import UNUSABLE, HostFailure, StartFailure
from agents.shepherd.tasks.kept import Refusal
from agents.shepherd.tasks.run_files import KeptOutput, Run
from agents.shepherd.tasks.trees import Trees

FIRST_SERIAL = 1 << 48  # those of tasks beside a job are smaller
STOP = (signal.SIGTERM, signal.SIGKILL)
PAUSE_S, PAUSE_MAX_S = 0.02, 0.5  # between two looks at them, growing
LOOK_S, LOOK_MAX_S = 1.0, 5.0  # at memory, and at kept outputs
ENDED_BEFORE_START = start.exit_status(130)
NOT_STARTED = "The task was ended before it started."
MIB = 1 << 20

TaskKey = tuple[int, int]


class Host(NamedTuple):
    """Interface of the attempt to its runs."""

    spawn: Callable[[RunOrder, int, int], int]  # order, serial, descriptor of a kept output or -1 -> process id
    output: Callable[[Run], KeptOutput | None]  # None if the job's output goes to files
    signal: Callable[[int, int], None]  # number, serial
    trees: Trees
    over: Callable[[int], None]  # a serial whose run is over
    first: dict[int, int]  # process id of each living first process -> serial
    tell: Callable[[list[RunState]], None]
    reason: Callable[[], str]  # why the whole attempt is being ended, or empty


@dataclass(slots=True, eq=False)
class _Task:
    """The newest run of a task."""

    order: RunOrder
    state: RunState
    termination: Termination
    serial: int = 0
    clock: RunClock = NO_LIMITS
    output: KeptOutput | None = None
    reason: str = ""
    status: int = 0  # of its first process, once that has ended
    beside: set[int] = field(default_factory=set)  # serials of what was started in its place
    look_at: float = NEVER  # next look at what is left of it, once its first process has ended
    is_killed: bool = False
    pause_s: float = PAUSE_S

    @property
    def has_program(self) -> bool:
        return bool(self.order.program.path)

    @property
    def serials(self) -> set[int]:
        return {self.serial, *self.beside} if self.has_program else self.beside

    @property
    def is_ending(self) -> bool:
        return self.termination.next_at != NEVER or self.look_at != NEVER

    @property
    def is_alive(self) -> bool:
        return not self.state.ended

    @property
    def next_at(self) -> float:
        return min(self.termination.next_at, self.clock.next_at, self.look_at) if self.is_alive else NEVER


@dataclass(slots=True)
class Runs:
    """Newest run of each task of an attempt. ``interval_s`` lies between TERM and KILL."""

    host: Host
    interval_s: float
    last_status: int = 0  # of the last run that failed
    kill_due: float = NEVER  # of runs that are told to end within the host's notice
    _newest: dict[TaskKey, _Task] = field(default_factory=dict)
    _by_serial: dict[int, _Task] = field(default_factory=dict)  # living ones
    _waiting: dict[TaskKey, RunOrder] = field(default_factory=dict)  # until the older run is over, or a resumption
    _sessions: dict[int, int] = field(default_factory=dict)  # ended first process of a further start -> its serial
    _ends_with_all: bool = False
    _timed: set[_Task] = field(default_factory=set)  # with due work, now or later
    _look_at: float = NEVER
    _is_suspended: bool = False
    _news: list[RunState] = field(default_factory=list)  # to be told together
    _serials: "itertools.count[int]" = field(default_factory=lambda: itertools.count(FIRST_SERIAL))

    # -- orders

    def start(self, orders: Iterable[RunOrder]) -> None:
        """Start these runs, each as soon as the task's older one is over."""
        for order in orders:
            key = (order.role, order.index)
            if order.run <= self._newest_run(key):
                continue
            older = self._newest.get(key)
            if older is not None and older.is_alive:
                self._waiting[key] = order
                self._terminate(older, "")
            elif self._is_suspended:
                self._waiting[key] = order
            else:
                self._start(order)
        self._tell()

    def _tell(self) -> None:
        if self._news:
            news, self._news = self._news, []
            self.host.tell(news)

    def _newest_run(self, key: TaskKey) -> int:
        waiting, newest = self._waiting.get(key), self._newest.get(key)
        return waiting.run if waiting is not None else newest.order.run if newest is not None else 0

    def refuse(self, orders: Iterable[RunOrder], why: str) -> None:
        """Report these runs, if they are news, as ended before their start."""
        for order in orders:
            key = (order.role, order.index)
            if order.run > self._newest_run(key):
                self._never(order, StartFailure(130, why))
        self._tell()

    def _start(self, order: RunOrder) -> None:
        serial = next(self._serials)
        output: KeptOutput | None = None
        has_program = bool(order.program.path)
        try:
            output = self.host.output((order.role, order.index, order.run)) if has_program else None
            pid = 0 if not has_program else self.host.spawn(order, serial, -1 if output is None else output.descriptor)
        except (StartFailure, HostFailure, OSError, *UNUSABLE) as failure:
            _close(output)
            self._never(order, failure)
            return
        now, wall = time.monotonic(), time.time()
        state = RunState(order.role, order.index, order.run, pid, wall)
        task = _Task(
            order, state, Termination(self.interval_s, self.kill_due), serial, RunClock(order.run_limit_s, 0, now, wall)
        )
        task.output = output
        self._newest[order.role, order.index] = self._by_serial[serial] = task
        if pid:
            self.host.first[pid] = serial
        if order.run_limit_s:
            self._timed.add(task)
        if order.memory_limit_mib or output is not None:
            self._look_at = min(self._look_at, now + LOOK_S)
        self._news.append(state)

    def _never(self, order: RunOrder, failure: Exception) -> None:
        status = failure.status if isinstance(failure, StartFailure) else start.exit_status(126)
        reason = (failure.reason if isinstance(failure, StartFailure) else "") or self.host.reason()
        state = RunState(
            order.role,
            order.index,
            order.run,
            ended=time.time(),
            status=status,
            reason=reason,
            detail=_sentence(failure),
        )
        self._newest[order.role, order.index] = _Task(order, state, Termination(self.interval_s))
        self._news.append(state)

    def stop(self, runs: Iterable[Run], reason: str) -> None:
        """End these runs, or older ones of their tasks; one that was not started yet never will be."""
        for run in runs:
            waiting, newest = self._waiting.get(run[:2]), self._newest.get(run[:2])
            if waiting is not None and waiting.run <= run[2]:
                del self._waiting[run[:2]]
            if newest is not None and newest.is_alive and newest.order.run <= run[2]:
                self._terminate(newest, reason)

    def revoke(self, at: float) -> None:
        """Kill runs that are told to end when the host is taken away; NEVER: as before."""
        self.kill_due = at
        for task in self._by_serial.values():
            task.termination.kill_due = at

    def signal(self, number: int, runs: Iterable[Run]) -> None:
        """Send a signal to all processes of these runs."""
        for run in runs:
            task = self._newest.get(run[:2])
            if task is not None and task.is_alive and task.order.run == run[2]:
                self._signal(task, number)

    def _signal(self, task: _Task, number: int) -> None:
        for serial in task.serials:
            self.host.signal(number, serial)

    def suspend(self) -> None:
        """Stop the clocks; what is ordered to start waits."""
        self._is_suspended = True
        for task in self._by_serial.values():
            task.clock.stop(time.monotonic())

    def resume(self) -> None:
        """Resume the clocks, and start what waits."""
        self._is_suspended = False
        for task in self._by_serial.values():
            task.clock.resume(time.monotonic())
        for key in list(self._waiting):
            newest = self._newest.get(key)
            if newest is None or not newest.is_alive:
                self._start(self._waiting.pop(key))
        self._tell()

    def _terminate(self, task: _Task, reason: str, signals: tuple[int, ...] = STOP) -> None:
        if task.termination.begin(signals, time.monotonic()):
            task.reason = task.reason or reason
            self._timed.add(task)
            if not task.has_program:
                task.look_at = 0.0

    def _limit_reached(self, task: _Task, reason: str, signals: tuple[int, ...]) -> None:
        if not task.has_program:  # no process has its status
            task.status = int(signals[0])
        self._terminate(task, reason, signals)

    # -- what is started in the place of a task

    def place_of(self, runs: Iterable[Run]) -> TaskKey:
        """Return the task that is to have a further process: of these the one with the fewest, the first of several.

        Raises:
            Refusal: none of them is alive, or all are being ended.
        """
        known = [(run, self._newest.get(run[:2])) for run in runs]
        found = [(run, task) for run, task in known if task is not None and task.is_alive and task.order.run == run[2]]
        open_ = [(run, task) for run, task in found if not task.is_ending]
        if not open_:
            raise Refusal("The task is ending." if found else "The task does not run.")
        for _, task in open_:
            self._forget_gone(task)
        return min(open_, key=lambda one: len(one[1].beside))[0][:2]

    def joined(self, task: TaskKey, serial: int) -> None:
        """Note that a further process belongs to a task."""
        self._newest[task].beside.add(serial)

    def left(self, serial: int, pid: int) -> None:
        """Note the end of the first process of a further start; what it has left still belongs to the task."""
        task = next((one for one in self._by_serial.values() if serial in one.beside), None)
        if task is not None:
            self._sessions[pid] = serial
            self._forget_gone(task)
            if task.look_at != NEVER:
                task.look_at = 0.0

    def _forget_gone(self, task: _Task) -> None:
        """Forget further starts of which nothing is left."""
        living = set(self.host.first.values())
        ended = task.beside - living
        if not ended:
            return
        found = self.host.trees.of(ended, self._sessions_of(ended))
        self._forget(task, [serial for serial in ended if not found[serial]])

    def _forget(self, task: _Task, serials: Iterable[int]) -> None:
        gone = set(serials)
        task.beside -= gone
        for serial in gone:
            self.host.over(serial)
        for pid in [pid for pid, serial in self._sessions.items() if serial in gone]:
            del self._sessions[pid]

    def _sessions_of(self, serials: Collection[int]) -> dict[int, int]:
        return {pid: serial for pid, serial in self._sessions.items() if serial in serials}

    def _processes_of(self, tasks: Collection[_Task]) -> dict[_Task, list[int]]:
        """Return all processes of these tasks."""
        serials = {serial: task for task in tasks for serial in task.serials}
        sessions = self._sessions_of(serials)
        sessions |= {task.state.pid: task.serial for task in tasks if task.has_program and task.look_at != NEVER}
        found: dict[_Task, list[int]] = {task: [] for task in tasks}
        if serials:
            for serial, pids in self.host.trees.of(serials, sessions).items():
                found[serials[serial]] += pids
        return found

    # -- ends

    def end_with_all(self) -> None:
        """End with the whole attempt, whose own signals reach all processes: runs are over when they have none."""
        if not self._ends_with_all:
            self._ends_with_all = True
            for task in self._by_serial.values():
                if not task.has_program:
                    task.look_at = 0.0
                    self._timed.add(task)

    @property
    def are_alive(self) -> bool:
        """True if any run has not ended."""
        return bool(self._by_serial)

    def states(self) -> list[RunState]:
        """Return the newest state of each task."""
        return [task.state for task in self._newest.values()]

    def ended(self, serial: int, status: int, detail: str) -> bool:
        """Note the end of a run's first process; return False if it is none of these."""
        task = self._by_serial.get(serial)
        if task is None:
            return False
        task.status, task.state = status, task.state._replace(detail=detail)
        task.look_at = 0.0
        self._timed.add(task)
        return True

    def close(self) -> None:
        """End the book-keeping with the attempt: all ended runs are told, those that wait never start."""
        for order in self._waiting.values():
            self._never(order, StartFailure(130, NOT_STARTED))
        self._waiting.clear()
        for task in [task for task in self._by_serial.values() if task.look_at != NEVER]:
            self._over(task)
        self._tell()

    @property
    def next_at(self) -> float:
        """Monotonic time of the next `tick` with work."""
        return min(self._look_at, min((task.next_at for task in self._timed), default=NEVER))

    def tick(self, now: float) -> None:
        """Carry out all due work."""
        due = [task for task in self._timed if now >= task.next_at]
        for task in due:
            if now >= task.clock.next_at and (reason := task.clock.reached(now)):
                self._limit_reached(task, reason, STOP)
            if now >= task.termination.next_at:
                self._signal_due(task, now)
        if ended := [task for task in due if now >= task.look_at]:
            self._look_at_leftovers(ended, now)
        if now >= self._look_at:
            self._look(now)
        self._timed.difference_update([task for task in due if task.next_at == NEVER])
        self._tell()

    def _signal_due(self, task: _Task, now: float) -> None:
        number = task.termination.due(now)
        self._signal(task, number)
        if number == signal.SIGKILL:
            task.is_killed = True
        else:
            self._signal(task, signal.SIGCONT)

    def _look_at_leftovers(self, ended: list[_Task], now: float) -> None:
        """End what runs have left whose first process has ended; those that have left nothing are over."""
        found = self._processes_of(ended)
        for task in ended:
            if not found[task]:
                self._over(task)
                continue
            if task.is_killed:  # and what they have started meanwhile
                processes.send(found[task], signal.SIGKILL)
            elif not self._ends_with_all:
                self._terminate(task, "")
            task.look_at = now + task.pause_s
            task.pause_s = min(PAUSE_MAX_S, 1.5 * task.pause_s)

    def _over(self, task: _Task) -> None:
        del self._by_serial[task.serial]
        self._forget(task, list(task.beside))
        self.host.over(task.serial)
        task.look_at = NEVER
        reason = task.reason or self.host.reason()
        task.state = task.state._replace(ended=time.time(), status=task.status, reason=reason)
        self.last_status = task.status or self.last_status
        _close(task.output)
        task.output = None
        self._news.append(task.state)
        key = (task.order.role, task.order.index)
        if key in self._waiting and not self._is_suspended:
            self._start(self._waiting.pop(key))

    # -- limits

    def _look(self, now: float) -> None:
        """Check memory and kept outputs."""
        limited = [task for task in self._by_serial.values() if task.order.memory_limit_mib]
        found = self._processes_of(limited)
        for task in limited:
            used = sum(one.resident for pid in found[task] if (one := processes.stat(pid)) is not None)
            if used > task.order.memory_limit_mib * MIB:
                self._limit_reached(task, "TERM_MEMLIMIT", KILL)
        outputs = [task.output for task in self._by_serial.values() if task.output is not None]
        for output in outputs:
            output.bound(now)
        due = min((output.next_at for output in outputs), default=NEVER)
        self._look_at = min(now + LOOK_S, due) if limited else due


def _close(output: KeptOutput | None) -> None:
    if output is None:
        return
    try:
        output.close()
    except OSError as error:  # the disk is full: the end itself matters more
        print(f"event=output_not_kept error={error.strerror!r}", file=sys.stderr)


def _sentence(failure: Exception) -> str:
    if isinstance(failure, OSError):
        return f"The task could not be started: {failure.strerror or os.strerror(failure.errno or 0)}."
    if isinstance(failure, UNUSABLE):
        return f"The task cannot be started as it was submitted: {failure}."
    return str(failure)
