"""A job that its command follows: srun and salloc outside a job submit one, pass on its output and have its exit code.

Invariants: the job ends when its command is interrupted; the exit code is the job's own. Standard error of the job
joins its output, and it reads no input: a terminal is given by bsub -Is.
"""

from lavactl.commands.bsub import final_code
from lavactl.errors import CommandError
from lavactl.slurm.submit.request import Work, job_of
from lavactl.tasks.interruption import Interruptible
from lavactl.text.render import clean
from lavactl.wire import messages
from lavactl.wire.client import Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.slurm.submit.choices import Choices

ENDED = (messages.DONE, messages.EXIT)
STARTED = (messages.RUN, messages.USUSP, messages.SSUSP, *ENDED)
NOT_YET = "ot yet started"
AGAIN_S = 0.2
TRIES = 25


def run_as_job(choices: "Choices", script: str, arguments: list[str], name: str, io: "Io") -> int:
    """Submit a script with these arguments and follow it; the job's exit code."""
    from lavactl.slurm.sbatch import submitted

    io.stay()
    spec = job_of(choices, Work(script, arguments, name.rpartition("/")[2]), io)
    spec.input = spec.output = spec.error = ""  # its output comes here
    job = submitted(choices.command, spec, io).job
    with Interruptible(lambda _: KeyboardInterrupt()) as interruption:
        try:
            return _follow(choices, job, io, interruption)
        except KeyboardInterrupt:
            _end(job, io)
            raise


def _follow(choices: "Choices", job: int, io: "Io", interruption: Interruptible) -> int:
    command, is_quiet = choices.command, "quiet" in choices
    notice = "" if is_quiet else f"{command}: job {job} queued and waiting for resources"
    first = _changed(job, io, STARTED, notice)
    interruption.check()
    if first.state not in ENDED or first.hosts:
        if not is_quiet and command == "salloc":
            io.error(f"salloc: Granted job allocation {job}")
        _pass_on(job, io, interruption)
    last = _changed(job, io, ENDED)
    if not is_quiet and command == "salloc":
        io.error(f"salloc: Relinquishing job allocation {job}")
    if last.exit_reason:
        io.error(f"{command}: error: job {job}: {clean(last.exit_reason)}")
    return final_code(last, bool(last.hosts))


def _changed(job: int, io: "Io", states: "tuple[int, ...]", notice: str = "") -> messages.JobChange:
    """First change of the job to one of these states; the notice is given once if it has to be waited for."""
    client = Client(io)  # of its own: a watch that is left early leaves its connection in the middle of an answer
    try:
        for change in client.watch([messages.JobRef(job=job)]):
            if change.state in states:
                return change
            if notice and change.state == messages.PEND:
                io.error(notice)
                notice = ""
    finally:
        client.close()
    raise CommandError(f"The master stopped telling about job {job} before its end.")


def _pass_on(job: int, io: "Io", interruption: Interruptible) -> None:
    """Write the job's output as it comes, until the job has ended."""
    request = messages.PeekRequest(follow=True)
    request.job.ref.CopyFrom(messages.JobRef(job=job))
    for _ in range(TRIES):
        for chunk in io.client().peek(request):
            if NOT_YET in chunk.error:
                break
            if chunk.error:
                io.flush()
                raise CommandError(clean(chunk.error))
            io.write(chunk.data)
            io.flush()
        else:
            return
        interruption.check()
        io.client().close()
        io.sleep(AGAIN_S)


def _end(job: int, io: "Io") -> None:
    client = Client(io)
    wanted = messages.JobFilter(refs=[messages.JobRef(job=job)], user="all")
    client.signal(messages.SignalRequest(filter=wanted, action=messages.TERMINATE))
    client.close()
