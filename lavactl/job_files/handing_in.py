"""Submission of all jobs of a file, or of none: every job is complete before the first is sent."""

from lavactl.errors import CommandError
from lavactl.job_files import dry_run, submitting
from lavactl.job_files.model import JobFile
from lavactl.job_files.understanding import Understood, understand
from lavactl.options import Options
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lavactl.io import Io
    from lavactl.submit.submission import Submission

    Send = Callable[[Submission, Io], messages.SubmitResult]
    Sent = tuple[Submission, messages.SubmitResult]


def hand_in(path: str, line: Options, io: "Io", send: "Send") -> "list[Sent]":
    """Submit the jobs of a file; remarks go to standard error.

    Args:
        line: the options and the command that were typed beside the file.
        send: submits one job.

    Raises:
        CommandError: the file is wrong, holds no job, or the master refused one; then none is left.
    """
    found = understand(path, io)
    if not found.jobs:
        raise CommandError(dry_run.describe(found))
    _refuse_name(found, line)
    prepared = [(job, submitting.submission_of(job, line, io)) for job in found.jobs]
    if "BSUB_QUIET" not in io.environ:
        _tell(found, io)
    return _send_all(prepared, io, send)


def check(found: Understood, line: Options, io: "Io") -> None:
    """Refuse jobs that a submission would refuse by itself; a command that is missing may be given there."""
    _refuse_name(found, line)
    given = Options()
    given.items = line.items
    for job in found.jobs:
        given.words = line.words or ["COMMAND"] * bool(job.lacks)
        submitting.submission_of(job, given, io, asks_site=False)


def _refuse_name(found: Understood, line: Options) -> None:
    if "J" in line and len(found.jobs) > 1:
        raise CommandError(f"-J: {found.file} has {len(found.jobs)} jobs, each with a name of its own.")


def _tell(found: Understood, io: "Io") -> None:
    for note in sorted([*found.notes, *(note for job in found.jobs for note in job.notes)]):
        io.error(dry_run.note_text(found.file, note))


def _send_all(prepared: "list[tuple[JobFile, Submission]]", io: "Io", send: "Send") -> "list[Sent]":
    sent: list[Sent] = []
    numbers: dict[str, int] = {}
    for job, submission in prepared:
        for note in [*submission.notes, submitting.drop_unknown_queue(submission, job, io)]:
            if note:
                io.error(note)
        submission.spec.dependency = _dependency(submission.spec.dependency, job, numbers)
        try:
            result = send(submission, io)
        except CommandError as error:
            _take_back([one.job for _, one in sent], io)
            raise submitting.located(job, str(error)) from None
        numbers[job.name] = result.job
        sent.append((submission, result))
    return sent


def _dependency(given: str, job: JobFile, numbers: dict[str, int]) -> str:
    """Dependency condition of a job on those before it in its file, beside one that was given."""
    parts = [f"done({numbers[name]})" for name in job.after]
    if given:
        parts.insert(0, f"({given})" if parts else given)
    return " && ".join(parts)


def _take_back(jobs: list[int], io: "Io") -> None:
    """End the jobs that were submitted before one was refused."""
    if not jobs:
        return
    filter_ = messages.JobFilter(refs=[messages.JobRef(job=job) for job in jobs])
    reply = io.client().signal(messages.SignalRequest(filter=filter_, action=messages.TERMINATE))
    names = ", ".join(f"<{job}>" for job in jobs)
    failed = reply.error or next((one.error for one in reply.results if one.error), "")
    io.error(
        f"Job {names} could not be ended: {failed}" if failed else f"Job {names}, submitted before it, is being ended."
    )
