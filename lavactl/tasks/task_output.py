"""Output of a job's tasks: of one alone as it is, of several at once in whole lines with the name of their task.

All come over one connection, so that one that is silent keeps none of the others back: all that are followed at once,
of others a few at a time.
"""

from lavactl.errors import FAILURE, CommandError
from lavactl.jobrefs import key_text
from lavactl.taskrefs import TaskRef, task_text
from lavactl.text.render import clean
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from lavactl.io import Io

    Arrival = tuple[int, messages.TailChunk | str | None]

AT_ONCE = 12  # tasks whose output so far is read at the same time
FOLLOWED_MAX = 1024  # tasks; a connection carries 2,048 calls, and an agent reads as many files for one user


def show_tasks(
    job: messages.JobRecord,
    chosen: TaskRef | None,
    io: "Io",
    *,
    run: int = 0,
    follow: bool = False,
    apart: bool = False,
) -> int:
    """Print the output of a job's tasks that were started; of one alone without its name.

    Args:
        run: number of the run; 0 for each task's newest.

    Raises:
        CommandError: no such task, or none was started yet.
    """
    found = _started(job, chosen, run)
    key = messages.JobRef(job=job.job)
    if job.index:
        key.indices.add(first=job.index, last=job.index)

    def request(role: str, index: int) -> messages.PeekRequest:
        wanted = messages.PeekRequest(follow=follow)
        wanted.job.ref.CopyFrom(key)
        wanted.job.role, wanted.job.task, wanted.job.run = role, index, run
        return wanted

    if len(found) == 1 or apart:
        return _one_by_one(found, request, io)
    if follow and len(found) > FOLLOWED_MAX:
        raise CommandError(f"-f follows at most {FOLLOWED_MAX} tasks; these are {len(found)}: name a role.", FAILURE)
    names = [clean(task_text(*one)) for one in found]
    arrivals = io.client().peek_many([request(*one) for one in found], FOLLOWED_MAX if follow else AT_ONCE)
    errors = interleaved(names, arrivals, lambda data: _put(data, io))
    for error in errors:
        io.error(clean(error))
    return FAILURE if errors else 0


def _put(data: bytes, io: "Io") -> None:
    if data:
        io.write(data)
        io.flush()


def _started(job: messages.JobRecord, chosen: TaskRef | None, run: int) -> list[tuple[str, int]]:
    """Tasks of that choice that have had this run, or any."""
    names = [role.name for role in job.spec.roles]
    tasks = [(names[one.task.role], one.task.index, one.task.run) for one in job.tasks]
    wanted = [one for one in tasks if chosen is None or chosen.selects(one[0], one[1])]
    label = str(chosen) if chosen else key_text(job.job, job.index)
    if not wanted:
        raise CommandError(f"Job <{label}> has no such task.", FAILURE)
    found = [(role, index) for role, index, newest in wanted if newest >= max(run, 1)]
    if not found:
        what = f"run {run} of it was not started" if run else "Not yet started"
        raise CommandError(f"Job <{label}> : {what}.", FAILURE)
    return found


def _one_by_one(found: list[tuple[str, int]], request: "Callable[[str, int], messages.PeekRequest]", io: "Io") -> int:
    code = 0
    for number, one in enumerate(found):
        if len(found) > 1:
            io.print(("\n" if number else "") + f"<< output of {clean(task_text(*one))} >>")
            io.flush()
        for chunk in io.client().peek(request(*one)):
            if chunk.error:
                io.error(clean(chunk.error))
                code = FAILURE
            _put(chunk.data, io)
    return code


class Lines:
    """Lines of one task: what follows the last line break is kept until the rest of its line arrives."""

    def __init__(self, name: str) -> None:
        self._mark = f"{name}: ".encode()
        self._rest = b""

    def add(self, data: bytes) -> bytes:
        """Whole lines up to here, marked."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        return b"".join(self._mark + line + b"\n" for line in whole)

    def end(self) -> bytes:
        """The unfinished last line."""
        rest, self._rest = self._rest, b""
        return self._mark + rest + b"\n" if rest else b""


def interleaved(names: "Sequence[str]", arrivals: "Iterable[Arrival]", write: "Callable[[bytes], None]") -> list[str]:
    """Write the output of tasks as it arrives; the errors of those that could not be read, in a sentence each."""
    lines, errors = [Lines(name) for name in names], []
    for number, arrived in arrivals:
        if isinstance(arrived, str):
            errors.append(f"{names[number]}: {arrived}")
        elif arrived is None:
            write(lines[number].end())
        else:
            write(lines[number].add(arrived.data))
            if arrived.error:
                errors.append(f"{names[number]}: {arrived.error}")
    return errors
