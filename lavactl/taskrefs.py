"""Tasks as users name them: ``12[worker]`` for a role of job 12, ``12[worker/3]`` for one task, ``12[5][worker/3]`` for
a task of an element."""

from lavactl.errors import FAILURE, CommandError
from lavactl.jobrefs import read_ref, ref_text
from lavactl.options import printable
from lavactl.text.units import is_digits
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

INDEX_MAX = 2**31 - 2
NONE = "it has no tasks of its own: its command is not started task by task"


class TaskRef:
    """Tasks of one job: all of a role, or one of them."""

    def __init__(self, job: messages.JobRef, role: str, index: int | None) -> None:
        self.job = job
        self.role = role
        self.index = index

    def __str__(self) -> str:
        return f"{ref_text(self.job)}[{task_text(self.role, self.index)}]"

    def selects(self, role: str, index: int) -> bool:
        """True if the task is one of these."""
        return role == self.role and self.index in (None, index)


def task_text(role: str, index: int | None) -> str:
    """``worker/3``, or ``worker`` for the whole role."""
    return role if index is None else f"{role}/{index}"


def names_tasks(word: str) -> bool:
    """True if a word names tasks of a job: its last brackets hold no array indices."""
    inside = word.rstrip()[word.rfind("[") + 1 : -1] if word.rstrip().endswith("]") else ""
    return bool(inside) and not set(inside) <= set("0123456789-:, ")


def read_task_ref(word: str) -> TaskRef:
    """One reference to tasks.

    Raises:
        CommandError: it is none.
    """
    job, _, inside = word.strip().removesuffix("]").rpartition("[")
    return TaskRef(read_ref(job), *read_task(inside))


def read_task(text: str) -> tuple[str, int | None]:
    """(role, index) of ``worker/3`` or ``worker``.

    Raises:
        CommandError: the index is no number.
    """
    role, slash, index = text.partition("/")
    if not role or (slash and not (is_digits(index) and int(index) <= INDEX_MAX)):
        raise CommandError(f"{printable(text)}: Illegal task: a role, or role/index, is expected.")
    return role, int(index) if slash else None


def job_of(ref: messages.JobRef, io: "Io") -> messages.JobRecord:
    """The job of tasks that a reference names.

    Raises:
        CommandError: there is none, or its tasks are not started one by one.
    """
    wanted = messages.JobFilter(refs=[ref], user="all", finished_too=True)
    pages = io.client().list_jobs(messages.ListJobsRequest(filter=wanted, details=True))
    found = [job for page in pages for job in page.jobs]
    if not found:
        raise CommandError(f"Job <{ref_text(ref)}> is not found", FAILURE)
    if len(found) > 1:
        raise CommandError(f"Job <{ref_text(ref)}> is a job array: name one element of it.", FAILURE)
    if not found[0].spec.HasField("tasks"):
        raise CommandError(f"Job <{ref_text(ref)}>: {NONE}.", FAILURE)
    return found[0]
