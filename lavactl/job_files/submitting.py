"""Conversion of the jobs of a file to what is submitted, with the options that were typed beside the file.

An option of the command line wins over the file's; one that each role says for itself is refused there.
"""

import os

from lavactl.errors import CommandError
from lavactl.job_files.model import JobFile
from lavactl.job_files.own.keys import OF_ONE_ROLE
from lavactl.job_files.text.nodes import FileError
from lavactl.options import Options
from lavactl.submit import submission
from lavactl.submit.words import shell_line
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

DEFAULT_QUEUE = "default"
NAMED_BY_NAME = "openpai"  # origins of jobs whose names are unique among a user's unfinished ones


def submission_of(job: JobFile, line: Options, io: "Io", asks_site: bool = True) -> submission.Submission:
    """A job ready to be sent.

    Args:
        asks_site: False for one that is only looked at: the site's programs do not see it.

    Raises:
        CommandError: the file or the options beside it are wrong.
    """
    file = Options()
    file.items = list(job.options)
    if job.rules is None and line.words:
        job.command, job.is_script = shell_line(line.words), False
    choices = submission.Choices(line, file)
    try:
        return _build(job, line, choices, io, asks_site)
    except FileError:
        raise
    except CommandError as error:
        raise located(job, str(error)) from None


def located(job: JobFile, sentence: str) -> FileError:
    """Error of a job at the place of the option that its sentence begins with, or with the value of; else its own."""
    for name, value in reversed(job.options):
        begins = (f"-{name} ", f"-{name}: ", *(f"{word}: " for word in value.split()))
        if name in job.places and sentence.startswith(begins):
            place, field = job.places[name]
            return FileError(job.file, place, field, sentence)
    return FileError(job.file, job.place, "", sentence)


def _build(
    job: JobFile, line: Options, choices: submission.Choices, io: "Io", asks_site: bool
) -> submission.Submission:
    ran = submission.ask_site(choices, job.command, io) if asks_site else None
    if ran is not None:
        choices, job.command = ran.choices, ran.command
    submission.refuse_empty(choices)
    if (given := choices.last(*submission.INTERACTIVE, "tty")) is not None:
        raise CommandError(f"-{given[0]}: jobs of a file are not interactive; name the command on bsub's command line.")
    if "Zs" in choices:
        raise CommandError("-Zs spools a command file of bsub's command line; the script of a job file is its own.")
    spec = messages.JobSpec(command=job.command, is_script=job.is_script)
    submission.place(spec, choices, io)
    spec.environment.extend(entry.encode("utf-8", "surrogateescape") for entry in job.environment)
    _replace_surroundings(spec, job, choices)
    submission.describe(spec, choices)
    by_default = submission.fill_from_environment(spec, io)
    submission.limit(spec, choices, io)
    if job.run_limit_s and choices.value("W") is None:
        spec.run_limit_s = job.run_limit_s
    if job.rules is None:
        submission.request(spec, choices, io)
        submission.check_text(spec)
    else:
        _fill_roles(spec, job, line)
        submission.rank(spec, choices)
    notes = submission.mail_notes(choices, io, of_tasks=job.rules is not None)
    built = submission.Submission(spec, notes, "K" in choices, "BSUB_QUIET" in io.environ, by_default)
    submission.take_outcome(built, ran)
    built.has_unique_name = spec.tasks.origin.startswith(NAMED_BY_NAME)
    return built


def _replace_surroundings(spec: messages.JobSpec, job: JobFile, choices: submission.Choices) -> None:
    """Replace variables of the caller by those of the file, and directory and umask where the file names them."""
    kept = {entry.partition(b"=")[0]: entry for entry in spec.environment}
    spec.environment[:] = list(kept.values())
    if job.umask is not None:
        spec.umask_plus_one = job.umask + 1
    if not job.submit_cwd:
        return
    spec.submit_cwd = job.submit_cwd
    spec.cwd = os.path.normpath(os.path.join(job.submit_cwd, choices.value("cwd") or ""))
    if (output_dir := choices.value("outdir")) is not None:
        spec.output_dir = os.path.normpath(os.path.join(job.submit_cwd, output_dir))


def _fill_roles(spec: messages.JobSpec, job: JobFile, line: Options) -> None:
    given = next((option for option in OF_ONE_ROLE if option in line), None)
    if given:
        raise CommandError(f"-{given}: each role of {job.file} says this for itself; change it there.")
    if line.words:
        spec.command = shell_line(line.words)
    elif job.lacks:
        lack = job.lacks[0]
        raise FileError(job.file, lack.place, lack.field, lack.text)
    assert job.rules is not None
    spec.tasks.CopyFrom(job.rules)
    for role in job.roles:
        added = spec.roles.add()
        added.CopyFrom(role)
        if line.words and added.name in job.arguments:
            del added.argv[:]
            added.command = ""
        if added.cwd:
            added.cwd = os.path.normpath(os.path.join(spec.cwd, added.cwd))


def drop_unknown_queue(one: submission.Submission, job: JobFile, io: "Io") -> str:
    """Leave the queue to the cluster where a file of another system says ``default`` and no queue has that name.

    Returns:
        A note about it, or an empty text.
    """
    if job.own_queue or list(one.spec.queues) != [DEFAULT_QUEUE] or job.option("q") != DEFAULT_QUEUE:
        return ""
    from protos import cluster_pb2

    reply = io.client().queues(cluster_pb2.QueuesRequest(names=[DEFAULT_QUEUE]))
    if any(queue.name == DEFAULT_QUEUE for queue in reply.queues):
        return ""
    del one.spec.queues[:]
    return f"{job.file}: there is no queue {DEFAULT_QUEUE}: the cluster's default queue is taken."
