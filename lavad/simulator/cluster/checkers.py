"""Invariants of a whole history: processes by host and time, acknowledgements, and the end of every job.

A cluster's state may be sound at every instant while its history is not: a job that ran twice, one after the other,
leaves no trace in the state. So the simulated agents record every process they really start and end, the simulated
clients every answer they got, and the checks here look at the whole.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from lavad.core.model import FINAL, JobState, Key
from lavad.core.model.reasons import EXIT_STATUS_KILLED, EXIT_STATUS_LOST
from lavad.core.model.task_rules import TaskKey
from lavad.core.state.attempts import JobEnd

PARTIAL_S_MAX = 30.0  # longest time that some of a job's tasks may be missing while all their hosts can be reached


class Violation(AssertionError):
    """Forbidden history."""


@dataclass(slots=True)
class Process:
    """Processes of one attempt on one host, started together. ``ended`` is 0 while they run."""

    key: Key
    host: str
    slots: int
    gpus: tuple[int, ...]
    started: float
    is_command: bool  # the job's own command on its lead host, whose exit status is the job's
    ended: float = 0.0
    status: int = 0
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """End of a job or element that the master has made durable."""

    key: Key  # of its last attempt; attempt 0 if it never started
    state: JobState
    end: JobEnd


@dataclass(slots=True)
class History:
    """Record of what really happened, kept outside the master."""

    processes: list[Process] = field(default_factory=list)
    submitted: dict[bytes, set[int]] = field(default_factory=dict)  # request id -> job ids in the answers
    killed: list[tuple[int, int, int]] = field(default_factory=list)  # acknowledged: job, index, attempts until then
    elements: dict[int, tuple[int, ...]] = field(default_factory=dict)  # job -> its indices, (0,) for a plain job
    rerunnable: dict[int, bool] = field(default_factory=dict)
    limits: dict[int, int] = field(default_factory=dict)  # array -> most elements running at once (%limit)
    staged: set[tuple[Key, str]] = field(default_factory=set)  # hosts that were staged for an attempt
    forced: set[tuple[int, int]] = field(default_factory=set)  # ended by bkill -r, whatever the hosts reported
    follows: dict[bytes, int] = field(default_factory=dict)  # request id -> the job that its job depends on
    has_leases: bool = False  # silent hosts end what they run, and the master does not wait for them
    requeues: bool = False  # any job may be preempted by requeue, and then runs again
    running: dict[str, list[Process]] = field(default_factory=lambda: defaultdict(list))
    of_tasks: set[int] = field(default_factory=set)  # jobs of tasks
    task_runs: set[tuple[int, int, TaskKey, int]] = field(default_factory=set)  # job, index, task, run: started
    generations: dict[int, int] = field(default_factory=dict)  # id of a process of a task -> its run
    tasks: dict[int, TaskKey] = field(default_factory=dict)  # id of a process of a task -> the task

    def start(self, process: Process, slots: int, limit_gpus: int) -> None:
        """Record a start, with the host's real size.

        Raises:
            Violation: the attempt's command was started before, or the host is over-committed.
        """
        key = process.key
        if process.is_command:
            self._check_first_start(process)
            self._check_array_limit(key.job)
        self.processes.append(process)
        here = self.running[process.host]
        here.append(process)
        self._check_room(process.host, slots, limit_gpus)

    def start_task(
        self,
        process: Process,
        task: TaskKey,
        run: int,
        hosts: tuple[str, ...],
        slots: int,
        limit_gpus: int,
        is_gang: bool = True,
    ) -> None:
        """Record the start of a task. ``is_gang``: of a job that is always restarted as a whole.

        Raises:
            Violation: this run was started before, not all hosts of its attempt were staged, the task still runs, or,
                of a gang, a task of an earlier generation.
        """
        key = process.key
        if (key.job, key.index, task, run) in self.task_runs:
            raise Violation(f"{key}: run {run} of {task} was started twice")
        missing = [host for host in hosts if (key, host) not in self.staged]
        if missing:
            raise Violation(f"{key}: {task} starts before {missing} have staged")
        mine = [one for here in self.running.values() for one in here if one.key[:2] == key[:2]]
        if any(self.tasks.get(id(one)) == task for one in mine):
            raise Violation(f"{key}: run {run} of {task} starts beside another run of it")
        others = {self.generations[id(one)] for one in mine if id(one) in self.generations} - {run}
        if others and is_gang:
            raise Violation(f"{key}: run {run} of {task} starts beside tasks of runs {sorted(others)}")
        self.task_runs.add((key.job, key.index, task, run))
        self.generations[id(process)] = run
        self.tasks[id(process)] = task
        self.of_tasks.add(key.job)
        self.start(process, slots, limit_gpus)

    def go_on(self, process: Process, slots: int, limit_gpus: int) -> None:
        """Record that a stopped process continues.

        Raises:
            Violation: its slots are in use.
        """
        process.is_stopped = False
        self._check_room(process.host, slots, limit_gpus)

    def resize(self, process: Process, slots_held: int, slots: int, limit_gpus: int) -> None:
        """Record another number of slots of a running job on a host.

        Raises:
            Violation: the slots are in use.
        """
        process.slots = slots_held
        self._check_room(process.host, slots, limit_gpus)

    def _check_room(self, name: str, slots: int, limit_gpus: int) -> None:
        """Check slots and GPUs of a host: stopped processes take no slots but keep their GPUs."""
        here = self.running[name]
        held = {one.key: one for one in here if not one.is_stopped}
        if sum(one.slots for one in held.values()) > slots:
            raise Violation(f"{name} runs {sorted(map(str, held))}: more slots than its {slots}")
        gpus = [gpu for one in {one.key: one for one in here}.values() for gpu in one.gpus]
        if len(gpus) != len(set(gpus)) or any(gpu >= limit_gpus for gpu in gpus):
            raise Violation(f"{name}: {sorted(map(str, held))} share a GPU or have one that is not there: {gpus}")

    def check_launch(self, key: Key, hosts: tuple[str, ...], order_age_s: float, order_validity_s: float) -> None:
        """Check the order that starts an attempt.

        Raises:
            Violation: not all hosts of the attempt were staged for it, or the order is too old.
        """
        if len(hosts) > 1 and any((key, host) not in self.staged for host in hosts):
            raise Violation(f"{key} is launched before all of {hosts} have staged")
        if order_age_s > order_validity_s:
            raise Violation(f"{key} is started by an order that is {order_age_s:.1f} s old")

    def _check_first_start(self, process: Process) -> None:
        if any(one.key == process.key and one.host == process.host and one.is_command for one in self.processes):
            raise Violation(f"{process.key} was started twice on {process.host}")

    def _check_array_limit(self, job: int) -> None:
        commands = [one for here in self.running.values() for one in here if one.is_command and one.key.job == job]
        running = {one.key.index for one in commands if (job, one.key.index) not in self.forced}
        if self.limits.get(job) and len(running) >= self.limits[job]:
            raise Violation(f"array {job} runs {sorted(running)} and one more, over its limit of {self.limits[job]}")

    def stop(self, process: Process, at: float, status: int) -> None:
        """Record an end."""
        if not process.ended:
            process.ended, process.status = at, status
            self.running[process.host].remove(process)


class Alone:
    """Detector of attempts whose hosts differ in state for too long, although all of them can be reached."""

    def __init__(self, complaint: str) -> None:
        self._complaint = complaint
        self._since: dict[Key, float] = {}

    def look(self, now: float, partial: set[Key]) -> None:
        """Take the attempts whose hosts differ in state now and can all be reached (``partial``).

        Raises:
            Violation: one has been so for too long.
        """
        self._since = {key: self._since.get(key, now) for key in sorted(partial)}
        for key, since in self._since.items():
            if now - since > PARTIAL_S_MAX:
                raise Violation(f"{self._complaint.format(key)} for {now - since:.0f} s")


def check(history: History, ended: list[Ended], healed: bool) -> None:
    """Check the whole history. ``healed``: all faults are repaired and time has passed, so every job must have ended.

    Raises:
        Violation: the first forbidden thing.
    """
    for look in (_submits, _attempts_apart, _runs_once, _killed_stays_killed, _followers_wait):
        for complaint in look(history):
            raise Violation(complaint)
    for complaint in _statuses(history, ended):
        raise Violation(complaint)
    if healed:
        for complaint in _everything_ended(history, ended):
            raise Violation(complaint)


def _submits(history: History) -> Iterator[str]:
    owners: dict[int, bytes] = {}
    for request_id, jobs in history.submitted.items():
        if len(jobs) > 1:
            yield f"request {request_id!r} made jobs {sorted(jobs)}"
        for job in jobs:
            if owners.setdefault(job, request_id) != request_id:
                yield f"job {job} was acknowledged to two requests"


def _by_job(history: History) -> dict[tuple[int, int], list[Process]]:
    found: dict[tuple[int, int], list[Process]] = defaultdict(list)
    for process in history.processes:
        found[process.key.job, process.key.index].append(process)
    return found


def _attempts_apart(history: History) -> Iterator[str]:
    """Check that all processes of an attempt end before any of a later one starts."""
    for processes in _by_job(history).values():
        over: dict[int, float] = {}
        for one in processes:
            over[one.key.attempt] = max(over.get(one.key.attempt, 0.0), one.ended or float("inf"))
        for one in processes:
            for attempt, at in over.items():
                if attempt < one.key.attempt and at > one.started:
                    yield f"{one.key} began on {one.host} at {one.started:.3f}, attempt {attempt} ran until {at:.3f}"


def _runs_once(history: History) -> Iterator[str]:
    for (job, index), processes in _by_job(history).items():
        attempts = {one.key.attempt for one in processes if one.is_command}
        if len(attempts) > 1 and not history.requeues and not history.rerunnable.get(job, False):
            yield f"job {job}[{index}] may not be run again and was, in attempts {sorted(attempts)}"


def _followers_wait(history: History) -> Iterator[str]:
    """Check that a dependent job starts after the commands of its parent have ended."""
    processes = [one for one in history.processes if (one.key.job, one.key.index) not in history.forced]
    for request_id, other in history.follows.items():
        commands = [one for one in processes if one.key.job == other and one.is_command]
        last = max([one.ended or float("inf") for one in commands], default=0.0)
        for job in history.submitted.get(request_id, ()):
            for one in processes:
                if one.key.job == job and one.started < last:
                    yield f"{one.key} began at {one.started:.3f}, job {other} ran until {last:.3f}"


def _killed_stays_killed(history: History) -> Iterator[str]:
    """Check that no further attempt starts after an acknowledged kill."""
    processes = _by_job(history)
    for job, index, attempts in history.killed:
        later = {one.key.attempt for one in processes[job, index] if one.key.attempt > attempts}
        if later:
            yield f"job {job}[{index}] was killed in attempt {attempts}, yet attempts {sorted(later)} began"


def _statuses(history: History, ended: list[Ended]) -> Iterator[str]:
    """Check that recorded ends agree with what really happened."""
    commands = {one.key: one for one in history.processes if one.is_command}
    for one in ended:
        name, process = str(one.key), commands.get(one.key)
        if (one.key.job, one.key.index) in history.forced or one.key.job in history.of_tasks:
            continue
        if one.state is JobState.DONE and (process is None or not process.ended or process.status):
            yield f"{name} is DONE but its command did not end well"
        if not one.end.hosts:
            continue  # killed while pending
        if _was_to_be_repeated(history, one):
            continue
        if history.has_leases and one.end.status == EXIT_STATUS_LOST and process is not None and process.ended:
            continue  # its end was reported after the lease of its host had ended
        if process is not None and process.ended and one.end.status != process.status:
            yield f"{name} ended with status {process.status}, recorded is {one.end.status} ({one.end.reason})"
        if process is not None and not process.ended:
            yield f"{name} is recorded as ended and runs"


def _was_to_be_repeated(history: History, one: Ended) -> bool:
    """Return True if the job was killed while its failed attempt ended: the recorded status is not the attempt's."""
    killed = any((job, index) == one.key[:2] for job, index, _ in history.killed)
    is_repeated = history.requeues or history.rerunnable[one.key.job]
    return killed and is_repeated and one.end.status in (EXIT_STATUS_KILLED, EXIT_STATUS_LOST)


def _everything_ended(history: History, ended: list[Ended]) -> Iterator[str]:
    known = {(one.key.job, one.key.index) for one in ended if one.state in FINAL}
    for job in {job for jobs in history.submitted.values() for job in jobs}:
        for index in history.elements[job]:
            if (job, index) not in known:
                yield f"job {job}[{index}] was acknowledged and has not ended"
    for process in history.processes:
        if not process.ended:
            yield f"{process.key} still runs on {process.host}"
