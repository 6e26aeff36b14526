"""One step of srun within an allocation: its tasks on their hosts, by the way of blaunch, with PMI-1 as lavarun has it.

Invariants: the exit code is the largest of the tasks'; output goes where --output and --error say, on this host; what
a task writes is passed on by whole lines where several tasks share a stream.
"""

import os
import signal
import socket

from lavactl.errors import CommandError
from lavactl.io import encode
from lavactl.slurm.steps import variables
from lavactl.slurm.words.options import FAILURE
from lavactl.tasks.pmi import Pmi, rank_environments
from lavactl.tasks.task import STDERR, STDOUT, Task
from lavactl.tasks.tasks import Tasks, carried_environment, connect, places_of
from lavactl.wire.messages import TaskStart
from protos.slurm_words import expanded_name, names_of_job

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from lavactl.io import Io
    from lavactl.tasks.surrounding_job import JobKey

ENDING_S = 5.0  # between the signal to end and leaving, after which the agents kill the tasks
TERM = int(signal.SIGTERM)


class Plan:
    """A step as its options describe it.

    Attributes:
        programs: words of each rank.
        environment: entries that --export passes on.
        has_own_gpus: each task sees its own GPUs, not all of its host.
        after_first_s: the step ends so long after its first task; None for no such limit.
    """

    def __init__(self, number: int, ranks: list[str], programs: list[list[str]]) -> None:
        self.number, self.ranks, self.programs = number, ranks, programs
        self.output = self.error = ""
        self.appends = self.reads_nothing = False
        self.cwd = ""
        self.environment: list[bytes] = []
        self.cpus: int | None = None
        self.is_labelled = self.kills_all = self.has_own_gpus = False
        self.with_pmi = True
        self.after_first_s: float | None = None


class StepTasks(Tasks):
    """Tasks whose output may go to files, or with their numbers before each line."""

    sinks: "dict[tuple[int, int], BinaryIO]"
    width = 0  # of the numbers; 0 for none

    def deliver(self, task: Task, stream: int, data: bytes) -> None:
        """Write output of a task."""
        if self.width and data:
            mark = b"%*d: " % (self.width, task.number)
            data = b"".join(mark + line for line in data.splitlines(keepends=True))
        sink = self.sinks.get((task.number, stream))
        if sink is None:
            super().deliver(task, stream, data)
        else:
            sink.write(data)
            sink.flush()


class Step:
    """A step that runs."""

    def __init__(self, plan: Plan, job: "JobKey", io: "Io") -> None:
        self._plan, self._io, self._job = plan, io, job
        tasks = len(plan.ranks)
        self._pmi = Pmi(plan.ranks)
        self._tasks = StepTasks(io, connect(io, "srun"), job, by_line=tasks > 1 or plan.is_labelled)
        self._tasks.width = len(str(tasks - 1)) if plan.is_labelled else 0
        self._tasks.sinks = self._open_files()
        self._tasks.on_end = self._ended
        self._tasks.on_pmi = self._spoke
        self._code = 0
        self._is_ending = False

    def run(self) -> int:
        """Start the tasks and wait for their end; the exit code."""
        try:
            self._start_all()
            left = self._tasks.run()
        finally:
            for sink in set(self._tasks.sinks.values()):
                sink.close()
        return self._code or (128 + left if left and not self._is_ending else 0)

    def _start_all(self) -> None:
        plan = self._plan
        common = variables.of_step(plan.number, plan.ranks, plan.cpus, _own_address())
        places = list(places_of(plan.ranks)) if plan.has_own_gpus else [(0, 0)] * len(plan.ranks)
        entries = [encode(f"{name}={value}") for name, value in common.items()]
        of_ranks = zip(variables.of_tasks(plan.ranks), rank_environments(plan.ranks), strict=True)
        for rank, (own, pmi) in enumerate(of_ranks):
            start = TaskStart(argv=[encode(word) for word in plan.programs[rank]], cwd=encode(plan.cwd), task=rank + 1)
            start.no_input, start.pmi, start.umask_plus_one = (
                rank > 0 or plan.reads_nothing,
                plan.with_pmi,
                self._io.umask + 1,
            )
            start.place, start.places = places[rank]
            mine = {**own, **pmi} if plan.with_pmi else own
            start.environment.extend([*plan.environment, *entries])
            start.environment.extend(encode(f"{name}={value}") for name, value in mine.items())
            task = self._tasks.start(plan.ranks[rank], start)
            if not start.no_input:
                self._tasks.feed(task)

    # files

    def _open_files(self) -> "dict[tuple[int, int], BinaryIO]":
        """Files of the tasks' outputs; tasks with the same file share it."""
        plan, opened = self._plan, dict[str, "BinaryIO"]()
        sinks: dict[tuple[int, int], BinaryIO] = {}
        on_hosts = variables.of_tasks(plan.ranks)
        for rank, own in enumerate(on_hosts):
            output = self._name(plan.output, rank, own)
            error = self._name(plan.error, rank, own) or output
            for stream, name in ((STDOUT, output), (STDERR, error)):
                if name:
                    sinks[rank, stream] = opened[name] if name in opened else self._opened(name, opened)
        return sinks

    def _name(self, template: str, rank: int, own: dict[str, str]) -> str:
        if not template or template == "all":
            return ""
        if template == "none":
            return "/dev/null"
        environ = self._io.environ
        element = environ.get("SLURM_ARRAY_TASK_ID", "")
        number = int(element) if element.isdigit() else None
        name, user = environ.get("SLURM_JOB_NAME", ""), environ.get("SLURM_JOB_USER", "")
        letters = names_of_job(self._job.job, number, name, user, own["SLURMD_NODENAME"])
        letters |= {"t": str(rank), "n": own["SLURM_NODEID"], "s": str(self._plan.number)}
        letters["J"] = f"{letters['j']}.{self._plan.number}"
        return os.path.join(self._plan.cwd, expanded_name(template, letters))

    def _opened(self, name: str, opened: "dict[str, BinaryIO]") -> "BinaryIO":
        try:
            os.makedirs(os.path.dirname(name), exist_ok=True)
            opened[name] = open(name, "ab" if self._plan.appends else "wb")  # noqa: SIM115 - closed after the step
        except OSError as error:
            raise CommandError(f"srun: error: {name} cannot be written: {error.strerror}.", FAILURE) from None
        return opened[name]

    # what tasks do

    def _spoke(self, task: Task, data: bytes) -> None:
        for rank, answer in self._pmi.hear(task.number, data):
            self._tasks.answer(self._tasks.tasks[rank], answer)
        if self._pmi.aborted is not None and not self._is_ending:
            rank, code, message = self._pmi.aborted
            self._code = max(self._code, code & 0xFF or 1)
            self._tasks.note(
                f"srun: error: {self._plan.ranks[rank]}: task {rank}: aborted: {message or f'code {code}'}"
            )
            self._end_all()

    def _ended(self, task: Task) -> None:
        self._code = max(self._code, task.code)
        if task.code and not self._is_ending:
            self._tasks.note(f"srun: error: {task.host}: task {task.number}: {_how(task)}")
        if self._pmi.broke_off(task.number) or (task.code and self._plan.kills_all):
            self._code = self._code or 1
            self._end_all()
        elif self._plan.after_first_s is not None and self._tasks.deadline is None:
            self._tasks.deadline = self._io.monotonic() + self._plan.after_first_s

    def _end_all(self) -> None:
        if not self._is_ending:
            self._is_ending = True
            self._tasks.signal(TERM)
            self._tasks.deadline = self._io.monotonic() + ENDING_S


def _how(task: Task) -> str:
    """End of a task, as srun tells it."""
    if task.error:
        return task.error
    if task.status is not None and task.status & 0x7F:
        return signal.strsignal(task.status & 0x7F) or f"Signal {task.status & 0x7F}"
    return f"Exited with exit code {task.code}"


def _own_address() -> str:
    """Address of this host; empty if its name has none."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return ""


def passed_on(text: str | None, io: "Io") -> list[bytes]:
    """Entries of the environment that --export of srun passes on to tasks."""
    if text is None or text.strip() == "ALL":
        return carried_environment(io)
    words = [word.strip() for word in text.split(",") if word.strip()]
    found = carried_environment(io) if "ALL" in words else []
    known = {os.fsdecode(entry.partition(b"=")[0]): entry for entry in carried_environment(io)}
    for word in words:
        if "=" in word:
            found.append(encode(word))
        elif word in known:
            found.append(known[word])
    return found
