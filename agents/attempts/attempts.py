"""Attempts of this host for its other parts: owner, location, and start of tasks beside the job.

Implements the protocols of `agents.ranks.interfaces`. Owner, allocation, directory and environment come from the
master's order alone. A task is started by the attempt's own shepherd, so it is born in the job's cgroup, under its
limits, and dies with it.
"""

import asyncio
import itertools
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from agents.attempts.ledger import Ledger
from agents.attempts.ledger_entry import Entry, State
from agents.attempts.task_book import Run, TaskBook
from agents.job_setup.environment import is_resizable, place_variables
from agents.job_setup.host_context import HostContext
from agents.job_setup.task_devices import has_roles, share_of, task_in_slot, variables_of_all, variables_of_task
from agents.ranks.interfaces import KeptRequest, TaskRefused, TaskRequest
from agents.shepherd import messages
from agents.shepherd.messages import JobSetup, Key, Message, pack
from agents.shepherd.process.start import expand, place
from agents.shepherd.tasks.run_files import expand_run
from agents.shepherd_pool.pool import Handle, Pool
from protos.common_pb2 import LAUNCH_FIRST, LAUNCH_HOST, HostShare, Role
from protos.jobs_pb2 import JobSpec

TASK_START_S = 60.0
PLACE_TRIES, PLACE_PAUSE_S = 250, 0.02
NO_TASK_HERE = "No task of the job runs here."
PATIENCE_S = 300.0
SSH_TASK = b"LAVA_SSH_TASK"  # ROLE/INDEX: a task of a job of tasks, in whose place the process is started
LOST = 9  # wait status of tasks whose shepherd died: they were killed


@dataclass(frozen=True, slots=True)
class HeldAttempt:
    """An attempt that this host holds."""

    key: Key
    user: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    allocation: Sequence[HostShare]
    spec: JobSpec
    cwd: str
    environment: Mapping[bytes, bytes]
    launched: bool
    output_path: (
        str  # through the shepherd's open descriptor: no user can put another file there; empty if none is open
    )
    error_path: str  # empty if it joins the output


@dataclass(frozen=True, slots=True)
class RunOutput:
    """Output of a run: its file if the job names one, and its first process while it runs."""

    path: str
    pid: int


class TaskHandle:
    """A started task."""

    def __init__(self, shepherd: Handle, key: Key, serial: int, pid: int, ended: "asyncio.Future[int]") -> None:
        self._shepherd = shepherd
        self._key = key
        self._serial = serial
        self._ended = ended
        self.pid = pid

    def signal(self, number: int) -> None:
        """Signal the task and all its descendants, also those that outlive its first process."""
        self._shepherd.send(pack(messages.SIGNAL, *self._key, int(number), "", self._serial))

    async def wait(self) -> int:
        """Wait for the end of the task's first process and return its raw wait status."""
        return await asyncio.shield(self._ended)


@dataclass(slots=True)
class _Task:
    key: Key
    started: "asyncio.Future[int]"
    ended: "asyncio.Future[int]"


class Attempts:
    """Attempts of this host."""

    def __init__(self, ledger: Ledger, pool: Pool, host: HostContext) -> None:
        self._ledger = ledger
        self._host = host
        self._pool = pool
        self._jobs: dict[Key, JobSetup] = {}
        self._tasks: dict[int, _Task] = {}
        self._serials = itertools.count(1)
        self.patience_s = PATIENCE_S
        self.in_place_of: Callable[[Key, str], Mapping[bytes, bytes]] = lambda key, label: {}  # variables of a task

    def note(self, key: Key, job: JobSetup) -> None:
        """Store the setup that an attempt was prepared with."""
        self._jobs[key] = job

    def forget(self, key: Key) -> None:
        """Drop an attempt that is over here: tasks still waited for have been killed."""
        self._jobs.pop(key, None)
        for serial in [serial for serial, task in self._tasks.items() if task.key == key]:
            self._end(self._tasks.pop(serial), LOST)

    def prepared(self, key: Key) -> JobSetup | None:
        """Return the setup that an attempt was prepared with, if this agent prepared it."""
        return self._jobs.get(key)

    def places(self, key: Key) -> tuple[str, str]:
        """Return home and working directory of an attempt; empty if this agent did not prepare it."""
        job = self._jobs.get(key)
        return ("", "") if job is None else (job.home, expand(job.cwd, key) or job.home)

    def find(self, job: int, index: int, attempt: int = 0) -> HeldAttempt | None:
        """Return the attempt, or the newest one of that job for ``attempt`` 0; None if it is not held here."""
        if attempt:
            entry = self._ledger.entries.get((job, index, attempt))
        else:
            matching = (one for one in self._ledger.entries.values() if one.key[:2] == (job, index))
            entry = max(matching, key=lambda one: one.key[2], default=None)
        if entry is None or entry.state is not State.HELD:
            return None
        return self._held(entry)

    async def place(self, key: Key, environment: Sequence[bytes]) -> tuple[Run, ...]:
        """Return the runs of tasks of which one is to have a command that is called for with these variables.

        Raises:
            TaskRefused: the task that is named does not run on this host, or none does.
        """
        entry = self._ledger.entries.get(key)
        if entry is None or entry.tasks is None:
            return ()
        label = next((one[len(SSH_TASK) + 1 :] for one in environment if one.startswith(SSH_TASK + b"=")), b"")
        found: tuple[Run, ...] | None = None
        for _ in range(PLACE_TRIES):
            found = self._runs_for(entry, entry.tasks, os.fsdecode(label)) if entry.tasks.table else None
            if found is not None:
                return found
            await asyncio.sleep(PLACE_PAUSE_S)
        raise TaskRefused(f"Task {os.fsdecode(label)} of the job does not run here." if label else NO_TASK_HERE)

    def _runs_for(self, entry: Entry, book: TaskBook, label: str) -> tuple[Run, ...] | None:
        """Return the runs of which one is to have a further process; None for no such task (yet).

        Without a label those without a command, which hold their slots for others; else any here. One process stands
        for the tasks of some roles, maybe on another host: then it is of none here.
        """
        running, here = book.running_here(), self._tasks_here(entry, book)
        if label:
            here = {label: here[label]} if label in here else {}
            running = [(run, is_held) for run, is_held in running if _stands_for(run, here, entry.blob.spec.roles)]
        held = tuple(run for run, is_held in running if is_held)
        if running:
            return held or tuple(run for run, _ in running)
        is_elsewhere = [entry.blob.spec.roles[role].launch == LAUNCH_FIRST for role, _ in here.values()]
        return () if here and all(is_elsewhere) else None

    def _tasks_here(self, entry: Entry, book: TaskBook) -> dict[str, tuple[int, int]]:
        """Return role and index of each task here by its label."""
        parts = [part for one in book.table if one.host == self._host.host for part in one.roles]
        roles = entry.blob.spec.roles
        return {f"{roles[part.role].name}/{index}": (part.role, index) for part in parts for index in part.indices}

    def all(self) -> list[HeldAttempt]:
        """Return every attempt held on this host."""
        found = (self._held(entry) for entry in self._ledger.entries.values() if entry.state is State.HELD)
        return [held for held in found if held is not None]

    def _held(self, entry: Entry) -> HeldAttempt | None:
        job = self._jobs.get(entry.key)
        shepherd = self._pool.holder(entry.key)
        if job is None or shepherd is None:
            return None
        return HeldAttempt(
            key=entry.key,
            user=job.user,
            uid=job.uid,
            gid=job.gid,
            groups=job.groups,
            home=job.home,
            allocation=entry.stage.allocation,
            spec=entry.blob.spec,
            cwd=job.cwd,
            environment=job.environment,
            launched=entry.launched,
            output_path=_through(shepherd.pid, shepherd.output),
            error_path=_through(shepherd.pid, shepherd.error),
        )

    def run_output(self, key: Key, run: Run, is_error: bool) -> RunOutput:
        """Return where a run of a held attempt writes its output, or its errors."""
        entry, job = self._ledger.entries.get(key), self._jobs.get(key)
        if entry is None or entry.tasks is None or job is None:
            return RunOutput("", 0)
        template = job.error if is_error else job.output
        path = place(job, expand_run(template, entry.blob.spec.roles[run[0]].name, run), key)
        return RunOutput(path, entry.tasks.pid_of(run))

    def _place_of(self, key: Key) -> tuple[Entry, Handle]:
        entry, shepherd = self._ledger.entries.get(key), self._pool.holder(key)
        if entry is None or entry.state is not State.HELD or entry.releasing or shepherd is None:
            raise TaskRefused("The job is not running on this host.")
        return entry, shepherd

    def open_task(self, key: Key, request: KeptRequest) -> socket.socket | None:
        """Open a connection to a task's shepherd, which starts or resumes it; None if that shepherd keeps no tasks.

        Raises:
            TaskRefused: the attempt is not running here (any more).
        """
        entry, shepherd = self._place_of(key)
        if shepherd.status.protocol < messages.KEEPS_TASKS:
            return None
        if request.window and shepherd.status.protocol < messages.HAS_TERMINALS:
            raise TaskRefused("The job was started by an older version of lava, which gives no terminals.")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        order = (
            request.connection, request.resume, request.gone, request.got, self.patience_s, request.argv, request.cwd,
            self._overlay(entry, request), request.no_input, request.pmi, request.umask, request.window,
            *_runs_of(request, shepherd),
        )  # fmt: skip
        with theirs:
            shepherd.send(pack(messages.RUN_TASK, *key, request.token, *order), (theirs.fileno(),))
        return ours

    def _overlay(self, entry: Entry, request: TaskRequest | KeptRequest) -> dict[bytes, bytes]:
        found = _overlay(entry, request) | _encoded(_devices(entry, request, self._host))
        label = found.pop(SSH_TASK, None) if entry.tasks is not None else None
        return found if label is None else {**found, **self.in_place_of(entry.key, os.fsdecode(label))}

    async def run_task(self, key: Key, request: TaskRequest) -> TaskHandle:
        """Start a task inside the attempt. The caller keeps ownership of the descriptors.

        Raises:
            TaskRefused: the attempt is not running here (any more), or the task could not be started.
        """
        entry, shepherd = self._place_of(key)
        if not request.argv:
            raise TaskRefused("There is no command to run.")
        loop = asyncio.get_running_loop()
        task = _Task(key, loop.create_future(), loop.create_future())
        serial = next(self._serials)
        self._tasks[serial] = task
        extra = () if request.pmi_fd is None else (request.pmi_fd,)
        descriptors = (request.stdin_fd, request.stdout_fd, request.stderr_fd, *extra)
        shepherd.send(
            pack(
                *(messages.TASK, *key, serial, request.argv, request.cwd, self._overlay(entry, request)),
                *_runs_of(request, shepherd),
            ),
            descriptors,
        )
        try:
            async with asyncio.timeout(TASK_START_S):
                pid = await task.started
        except TimeoutError:
            shepherd.send(pack(messages.SIGNAL, *key, 9, "", serial))
            raise TaskRefused(f"The task did not start within {TASK_START_S:.0f} seconds.") from None
        return TaskHandle(shepherd, key, serial, pid, task.ended)

    def on_message(self, message: Message) -> None:
        """Handle TASK_STARTED and TASK_ENDED of a shepherd."""
        kind, _, _, _, serial, *rest = message
        task = self._tasks.get(serial)
        if task is None:
            return
        if kind == messages.TASK_ENDED:
            del self._tasks[serial]
            self._end(task, rest[0])
        elif rest[0]:
            if not task.started.done():
                task.started.set_result(rest[0])
        else:
            del self._tasks[serial]
            self._refuse(task, rest[1])

    def _end(self, task: _Task, status: int) -> None:
        self._refuse(task, "The job has ended on this host.")
        if not task.ended.done():
            task.ended.set_result(status)

    def _refuse(self, task: _Task, why: str) -> None:
        if not task.started.done():
            task.started.set_exception(TaskRefused(why))


def _stands_for(run: Run, tasks: Mapping[str, tuple[int, int]], roles: Sequence[Role]) -> bool:
    """Return True if it is the run of one of these tasks, or of one whose process stands for it."""
    is_shared = roles[run[0]].launch in (LAUNCH_FIRST, LAUNCH_HOST)
    return any(run[:2] == one or (is_shared and run[0] == one[0]) for one in tasks.values())


def _runs_of(request: TaskRequest | KeptRequest, shepherd: Handle) -> tuple[tuple[Run, ...], ...]:
    """Return the last field of an order to start something, which older shepherds do not know."""
    return (request.runs,) if shepherd.status.protocol >= messages.HOLDS_TASKS else ()


def _through(pid: int, descriptor: int) -> str:
    return f"/proc/{pid}/fd/{descriptor}" if descriptor >= 0 else ""


def _overlay(entry: Entry, request: TaskRequest | KeptRequest) -> dict[bytes, bytes]:
    """Return a task's variables beside the job's environment; for a resizable job including its present allocation."""
    pairs = (line.partition(b"=") for line in request.environment)
    found = {name: value for name, separator, value in pairs if name and separator}
    if is_resizable(entry.blob.spec):
        found |= _encoded(place_variables(entry.stage.allocation))
    if request.task:
        found[b"LAVA_TASK_INDEX"] = b"%d" % request.task
    return found


def _encoded(variables: Mapping[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}


def _devices(entry: Entry, request: TaskRequest | KeptRequest, host: HostContext) -> dict[str, str]:
    """Return the device variables of a task; a launch agent's own processes may be any task, and see all devices."""
    share = share_of(entry.stage, host.host)
    task = task_in_slot(share, _slot(entry, request, share), entry.blob.spec)
    if task is not None:
        return variables_of_task(task, entry.stage, host)
    return variables_of_all(entry.stage, host) if has_roles(share) else {}


def _slot(entry: Entry, request: TaskRequest | KeptRequest, share: HostShare) -> int:
    """Return the task's slot on this host, from 0; -1 for none.

    Each rank has one, in order of the allocation; so has each task of a call with as many tasks as slots.
    """
    is_rank = request.pmi if isinstance(request, KeptRequest) else request.pmi_fd is not None
    if request.place:
        return request.place - 1 if is_rank or request.places == share.slots else -1
    if not is_rank:
        return -1
    before = takewhile(lambda one: one.host != share.host, entry.stage.allocation)
    return request.task - 1 - sum(one.slots for one in before)
