"""lavarun: start a program's ranks on the hosts of the surrounding job, each by its host's own agent.

Programs of the MPICH family find each other by PMI-1, which this process serves over the agents' own channels, so that
no port is opened; other programs find PMI_RANK and PMI_SIZE in their environment. Invariants: ranks follow the order of
the allocation, filling host after host; the failure of one rank ends all; the exit code is that of the first rank that
failed.
"""

from lavactl.errors import CommandError, UsageError
from lavactl.io import encode
from lavactl.options import VALUE, Grammar, answer_standard
from lavactl.tasks.pmi import Pmi, rank_environments
from lavactl.tasks.surrounding_job import job_around
from lavactl.tasks.task import Task
from lavactl.tasks.tasks import Tasks, carried_environment, connect, places_of
from lavactl.wire.connection import LostError
from lavactl.wire.messages import TaskStart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.tasks.surrounding_job import JobKey

USAGE = """\
Usage: lavarun [-n ranks] program [argument ...]
       lavarun -h | -V
Runs the program once for each slot of this job, or on the first so many slots.
"""
GRAMMAR = Grammar("lavarun", USAGE, {"n": VALUE, "np": VALUE}, words_end=True)

TERM = 15
# Grace period between the signal to end and leaving, after which the agents kill the ranks.
ENDING_S = 5.0


def main(argv: "list[str]", io: "Io") -> int:
    """Run lavarun; its exit code."""
    answer = answer_standard(argv, USAGE)
    if answer is not None:
        io.print(answer)
        return 0
    options = GRAMMAR.parse(argv)
    if not options.words:
        raise UsageError("lavarun: no program is specified.", USAGE)
    job = job_around(io, "lavarun")
    program = Program(options.words, job, place(options.last("n", "np"), job), io)
    try:
        return program.run()
    except LostError as error:
        raise CommandError(f"lavarun: the agent of this host has gone, the ranks are killed: {error}.") from None


def place(wanted: str | None, job: "JobKey") -> list[str]:
    """Host of each rank.

    Raises:
        CommandError: a malformed number, or more ranks than slots.
    """
    if wanted is None:
        return job.slots
    if not (wanted.isascii() and wanted.isdigit()) or int(wanted) == 0:
        raise CommandError(f"lavarun: -n {wanted!r}: expected a number of ranks, 1 or more.")
    if int(wanted) > len(job.slots):
        raise CommandError(f"lavarun: {wanted} ranks do not fit into the {len(job.slots)} slots of job <{job.job}>.")
    return job.slots[: int(wanted)]


class Program:
    """One parallel program: its ranks, their PMI server and its exit code."""

    def __init__(self, words: list[str], job: "JobKey", hosts: list[str], io: "Io") -> None:
        self._words = [encode(word) for word in words]
        self._hosts = hosts
        self._io = io
        self._pmi = Pmi(hosts)
        self._tasks = Tasks(io, connect(io, "lavarun"), job, by_line=len(hosts) > 1)
        self._tasks.on_end = self._ended
        self._tasks.on_pmi = self._spoke
        self._code: int | None = None  # of the failure that ended the program

    def run(self) -> int:
        """Start the ranks and wait for their end; the exit code."""
        carried = carried_environment(self._io)
        places = list(places_of(self._hosts))
        for rank, own in enumerate(rank_environments(self._hosts)):
            start = TaskStart(argv=self._words, cwd=encode(self._io.cwd), task=rank + 1, no_input=rank > 0, pmi=True)
            start.umask_plus_one = self._io.umask + 1
            start.place, start.places = places[rank]
            start.environment.extend(carried)
            start.environment.extend(f"{name}={value}".encode() for name, value in own.items())
            start.environment.append(b"LSF_PM_TASKID=%d" % (rank + 1))
            task = self._tasks.start(self._hosts[rank], start)
            if rank == 0:
                self._tasks.feed(task)
        left = self._tasks.run()
        if self._code is not None:
            return self._code
        return 128 + left if left else 0

    def _spoke(self, task: Task, data: bytes) -> None:
        for rank, answer in self._pmi.hear(task.number, data):
            self._tasks.answer(self._tasks.tasks[rank], answer)
        if self._pmi.aborted is not None and self._code is None:
            rank, code, message = self._pmi.aborted
            self._fail(code & 0xFF or 1, f"rank {rank} on {self._hosts[rank]} aborted: {message or f'code {code}'}")

    def _ended(self, task: Task) -> None:
        name = f"rank {task.number} on {task.host}"
        if task.error:
            self._fail(task.code, f"{name}: {task.error}")
        elif task.code > 128 and task.status is not None and task.status & 0x7F:
            self._fail(task.code, f"{name} was killed by signal {task.code - 128}")
        elif task.code:
            self._fail(task.code, f"{name} ended with exit code {task.code}")
        elif self._pmi.broke_off(task.number):
            self._fail(1, f"{name} ended without finalizing MPI")

    def _fail(self, code: int, text: str) -> None:
        """Report the first failure and end the other ranks; later failures follow from it and are ignored."""
        if self._code is not None:
            return
        self._code = code
        self._tasks.note(f"lavarun: {text}")
        self._tasks.signal(TERM)
        self._tasks.deadline = self._io.monotonic() + ENDING_S
