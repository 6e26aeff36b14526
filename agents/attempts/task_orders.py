"""Orders about tasks of jobs of tasks, carried out: ports when an attempt is staged, programs when a task starts.

A start that cannot be prepared is told as the task's end, with the reason; it is never dropped.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from agents.attempts.actions import Tasks
from agents.attempts.attempts import Attempts
from agents.attempts.journal import ports_record
from agents.attempts.ledger import Ledger
from agents.attempts.ledger_entry import Entry
from agents.attempts.task_book import Run
from agents.attempts.task_ports import NoPort, reserve
from agents.job_setup import task_work
from agents.job_setup.preparation import Preparation
from agents.job_setup.role_tasks import (
    Job,
    NotPlaced,
    held_order,
    run_order,
    told_of,
    variables,
    work_directory,
)
from agents.job_setup.task_files import TaskFiles, directory_of
from agents.job_setup.told.table import Table
from agents.job_setup.told.values import CannotTell
from agents.shepherd import messages
from agents.shepherd.messages import Key, RunOrder, RunState, pack
from agents.shepherd_pool.pool import Pool
from protos.agents_pb2 import Report, Staged
from protos.common_pb2 import RoleTasks

LOG = logging.getLogger("lava.tasks")

NOT_PREPARED = 126 << 8  # wait status of a task that cannot be started
APART = 101  # places of two jobs in the range of ports


class Log(Protocol):
    """The journal."""

    def append(self, records: Iterable[bytes]) -> None: ...


def _ports_of(part: RoleTasks) -> Iterator[tuple[int, Sequence[int]]]:
    """Return the ports of each task of a role here."""
    each = len(part.ports) // len(part.indices) if part.indices else 0
    for place, index in enumerate(part.indices):
        yield index, part.ports[place * each : (place + 1) * each]


class TaskOrders:
    """Orders of this host's jobs of tasks. ``address`` is its IP address for the jobs' other hosts."""

    def __init__(
        self,
        ledger: Ledger,
        pool: Pool,
        attempts: Attempts,
        preparation: Preparation,
        journal: Log,
        say: Callable[[Report], None],
    ) -> None:
        self.address = ""
        self._files: dict[Key, TaskFiles] = {}
        self._ledger = ledger
        self._pool = pool
        self._attempts = attempts
        self._preparation = preparation
        self._state = preparation.state
        self._journal = journal
        self._say = say

    def make_ready(self, entry: Entry) -> None:
        """Reserve the ports of an attempt's tasks.

        Raises:
            NoPort: a wanted one is taken, or none is free.
            OSError: the journal takes no more data.
        """
        if entry.tasks is None:
            return
        roles, pool = entry.blob.spec.roles, self._preparation.bounds.task_ports
        tasks = reserve(roles, entry.stage.tasks, self._ledger.ports(), pool, APART * entry.key[0])
        report = self._ledger.reserve(entry.key, Staged(tasks=tasks, address=self.address))
        self._journal.append([ports_record(report)])

    def make_more_ready(self, entry: Entry) -> str:
        """Reserve ports for tasks that join on this host; return why that fails, or ""."""
        if entry.tasks is None:
            return ""
        newest = [part for one in entry.tasks.table if one.host == self._preparation.host.host for part in one.roles]
        had = {
            (part.role, index): ports
            for part in (*entry.tasks.reserved, *newest)  # a task that got another's place has its ports with it
            for index, ports in _ports_of(part)
        }
        parts = entry.stage.tasks
        new = [RoleTasks(role=one.role, indices=[i for i in one.indices if (one.role, i) not in had]) for one in parts]
        roles, pool = entry.blob.spec.roles, self._preparation.bounds.task_ports
        try:
            found = reserve(roles, new, self._ledger.ports(), pool, APART * entry.key[0])
        except NoPort as error:
            return str(error)
        had.update({(part.role, index): ports for part in found for index, ports in _ports_of(part)})
        tasks = [
            RoleTasks(role=one.role, indices=one.indices, ports=[p for i in one.indices for p in had[one.role, i]])
            for one in parts
        ]
        report = self._ledger.reserve(entry.key, Staged(tasks=tasks, address=entry.tasks.address))
        try:
            self._journal.append([ports_record(report)])
        except OSError as error:
            return f"the journal takes no more data: {error.strerror}"
        return ""

    def carry_out(self, action: Tasks) -> None:
        """Pass an order on to the attempt's shepherd."""
        key, shepherd = action.key, self._pool.holder(action.key)
        if shepherd is None:
            self.fail(key, (*action.start, *action.hold), "The job is not running on this host.")
            return
        starts = self._prepared(key, action.start)
        if shepherd.status.protocol < messages.HOLDS_TASKS:
            self._hold_here(action)
        else:
            starts += self._held(key, action.hold)
        if action.stop:
            shepherd.send(pack(messages.STOP_TASKS, *key, action.stop, action.reason))
        if action.signalled:
            shepherd.send(pack(messages.SIGNAL_TASKS, *key, action.signal, action.signalled))
        if starts:
            shepherd.send(pack(messages.START_TASKS, *key, starts))
        shepherd.ask()

    def _prepared(self, key: Key, runs: tuple[Run, ...]) -> tuple[tuple[object, ...], ...]:
        """Write the files of the newest table, and return these starts as the shepherd takes them."""
        job = self._job(key)
        if job is None:
            self.fail(key, runs, "The job's user cannot be looked up on this host.")
            return ()
        found: list[RunOrder] = []
        for run in runs or self._any_run(job):
            try:
                told = told_of(job, run)
                if not found:  # files are the same for all tasks of the attempt here
                    self._files.setdefault(key, TaskFiles(Path(job.directory))).write(told)
                if directory := work_directory(job, run):
                    task_work.make(Path(directory), job.setup.uid, job.setup.gid)
                found.append(run_order(job, run, told))
            except (NotPlaced, CannotTell) as error:
                self.fail(key, [run], str(error))
            except OSError as error:
                self.fail(key, [run], f"The files of the job's tasks cannot be written: {error.strerror}.")
            except Exception:
                LOG.exception("event=task_not_prepared key=%s run=%s", key, run)
                self.fail(key, [run], "This host's agent met an error of its own; its log has the details.")
        return tuple(one.pack() for one in found) if runs else ()

    def _held(self, key: Key, runs: tuple[Run, ...]) -> tuple[tuple[object, ...], ...]:
        """Return the starts of tasks without a command as the shepherd takes them."""
        roles = self._ledger.entries[key].blob.spec.roles
        return tuple(held_order(roles[run[0]], run).pack() for run in runs)

    def _hold_here(self, action: Tasks) -> None:
        """Report begin and end of tasks without a command, of which the shepherd's version knows nothing."""
        book, now = self._ledger.entries[action.key].tasks, time.time()
        ended = [run for run in action.stop if book is not None and book.is_held(run)]
        states = [RunState(*run, started=now) for run in action.hold]
        self.ran(action.key, states + [RunState(*run, started=now, ended=now, reason=action.reason) for run in ended])

    def _job(self, key: Key) -> Job | None:
        entry, setup = self._ledger.entries[key], self._attempts.prepared(key)
        if setup is None or entry.tasks is None:
            return None
        hosts, directory = entry.tasks.table, directory_of(self._state, key)
        table = Table.of(entry.blob, hosts)
        is_private = bool(setup.private_files)
        here = self._preparation
        return Job(
            *(key, entry.blob, entry.stage, setup, hosts, table, here.host, str(directory), is_private),
            self._state,
            here.containers,
            here.shared_directories(),
        )

    def in_place_of(self, key: Key, label: str) -> dict[bytes, bytes]:
        """Return the variables of a process that is started here in the place of a task, ROLE/INDEX.

        None if the task is not on this host: then it is a process beside the job like any other.
        """
        job = self._job(key)
        role, _, index = label.rpartition("/")
        names = [one.name for one in job.blob.spec.roles] if job is not None else []
        if job is None or role not in names or not index.isdecimal():
            return {}
        entry, task = self._ledger.entries[key], (names.index(role), int(index))
        run = (*task, entry.tasks.run_of(task) if entry.tasks is not None else 0)
        try:
            return variables(job, run, told_of(job, run))
        except (NotPlaced, CannotTell) as error:  # then it has the variables of its caller
            LOG.warning("event=task_not_told job=%d index=%d attempt=%d task=%s reason=%r", *key, label, str(error))
            return {}

    @staticmethod
    def _any_run(job: Job) -> list[Run]:
        """Return run 0, which is none, of a task here: files are written for it, by which others learn of ends."""
        parts = [part for one in job.hosts if one.host == job.host.host for part in one.roles if part.indices]
        return [(part.role, part.indices[0], 0) for part in parts[:1]]

    def forget(self, key: Key) -> None:
        """Remove the files of an attempt of which nothing is left here."""
        files = self._files.pop(key, None)
        if files is not None:
            files.remove()
            task_work.remove(self._state, key)

    def adopt(self, held: Collection[Key]) -> None:
        """Take over the files of attempts held here after a restart, and remove those of others."""
        for path in directory_of(self._state, (0, 0, 0)).parent.glob("*-*-*"):
            keys = [key for key in held if directory_of(self._state, key) == path]
            files = TaskFiles(path)
            if keys:
                self._files[keys[0]] = files
            else:
                files.remove()
        task_work.keep_only(self._state, held)

    def fail(self, key: Key, runs: Iterable[Run], why: str) -> None:
        """Report runs that cannot be started."""
        now, real = time.time(), [run for run in runs if run[2]]
        LOG.warning("event=tasks_not_started job=%d index=%d attempt=%d reason=%r", *key, why)
        self.ran(key, [RunState(*run, ended=now, status=NOT_PREPARED, detail=why) for run in real])

    def ran(self, key: Key, states: Iterable[RunState]) -> None:
        """Report what is news of the tasks of an attempt."""
        for report in self._ledger.ran(key, states):
            self._say(report)
