"""lavactl attach: run a shell, or a command, within a running job: its user, hosts, limits, environment and devices.

Exit code: the command's own; 255 if it could not be started, or its end is not known.
"""

from lavactl.errors import FAILURE, CommandError
from lavactl.io import encode
from lavactl.jobrefs import read_ref
from lavactl.options import VALUE, Grammar, answered
from lavactl.submit.words import shell_line
from lavactl.taskrefs import job_of, names_tasks, read_task_ref, task_text
from lavactl.tasks.keyboard import keyboard_of
from lavactl.tasks.session import Session
from lavactl.tasks.surrounding_job import JobKey
from lavactl.tasks.task_table import RUNNING
from lavactl.text.render import clean
from lavactl.wire import messages
from lavactl.wire.connection import LostError
from protos import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.taskrefs import TaskRef

USAGE = """\
Usage: lavactl attach [-m host] job_id | "job_id[index]" | "job_id[role/task]" [command [argument ...]]
Runs the command, or a shell, within that running job, in the place of that task of it. It ends with the job.
  -m host   one of the job's hosts; the first one, or the task's, is taken else
"""
GRAMMAR = Grammar("lavactl attach", USAGE, {"m": VALUE}, words_end=True)
SHELL = 'exec "${SHELL:-/bin/sh}"'


def main(argv: list[str], io: "Io") -> int:
    """Run lavactl attach."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if not options.words:
        raise GRAMMAR.wrong("Job ID must be specified")
    word, *command = options.words
    io.stay()
    host, start = options.last("m") or "", messages.TaskStart()
    start.command = encode(shell_line(command) if command else SHELL)
    if names_tasks(word):
        ref = read_task_ref(word)
        job, task_host, label = _place(ref, io)
        if host and names.host_meant(host, [task_host]) is None:
            raise CommandError(f"lavactl attach: task {label} runs on {task_host}, not on {host}.")
        host = task_host
        start.environment.append(encode(f"LAVA_SSH_TASK={label}"))
    else:
        job = _key(read_ref(word), word)
    return _run(job, host, start, io)


def _key(ref: messages.JobRef, word: str) -> JobKey:
    """The job, or one element of an array."""
    indices = [(one.first, one.last) for one in ref.indices]
    if not ref.job or len(indices) > 1 or any(first != last for first, last in indices):
        raise CommandError(f"lavactl attach: {clean(word)}: one job, or one element of an array, is expected.")
    return JobKey(ref.job, indices[0][0] if indices else 0, 0, [])


def _place(ref: "TaskRef", io: "Io") -> tuple[JobKey, str, str]:
    """(job, host, ROLE/INDEX) of the task that runs; of a role without an index its only one."""
    job = job_of(ref.job, io)
    names = [role.name for role in job.spec.roles]
    found = [one for one in job.tasks if ref.selects(names[one.task.role], one.task.index)]
    if not found:
        raise CommandError(f"Job <{ref}> has no such task.", FAILURE)
    if len(found) > 1:
        raise CommandError(f"Job <{ref}>: the role has {len(found)} tasks: name one of them.", FAILURE)
    label = task_text(names[found[0].task.role], found[0].task.index)
    if not found[0].host or found[0].phase != RUNNING:
        raise CommandError(f"Job <{ref}>: task {label} does not run.", FAILURE)
    return JobKey(job.job, job.index, 0, []), found[0].host, label


def _run(job: JobKey, host: str, start: messages.TaskStart, io: "Io") -> int:
    keyboard = keyboard_of(io, keeps_signals=False) if io.is_terminal(io.stdout) else None
    if keyboard is not None:
        start.terminal = True
        start.environment.extend(entry for entry in io.raw_environ if entry.startswith(b"TERM="))
    session = Session(io, "lavactl attach", job, keyboard, lambda text: io.error(f"lavactl attach: {text}"))
    try:
        task, left = session.pass_on(host, start)
    except LostError as error:
        raise CommandError(f"lavactl attach: the agent of this host has gone: {error}.") from None
    if left:
        return 128 + left
    if task.error:
        raise CommandError(clean(task.error), FAILURE)
    return task.code
