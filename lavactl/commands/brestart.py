"""brestart: submit a job that goes on from the checkpoint of an earlier one, with its options and those given here."""

import os
import re

from lavactl.commands.bsub import finish, not_submitted, sent, wait_for
from lavactl.commands.show import record
from lavactl.errors import CommandError
from lavactl.files import FILE
from lavactl.jobrefs import read_ref, ref_text
from lavactl.options import FLAG, Grammar, Options, answered, printable
from lavactl.submit.submission import KINDS, NOT_IN_FILES, Submission

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.wire import messages

USAGE = """\
Usage: brestart [-f] [bsub options] directory [job_id | "job_id[index]"]
       brestart -h | -V
"""
MADE = ".checkpointed"  # as agents.shepherd.checkpoints names it
_OF_JOB = re.compile(r"([1-9][0-9]{0,18})(?:\[([1-9][0-9]{0,9})\])?")
GRAMMAR = Grammar(
    "brestart",
    USAGE,
    {
        **KINDS,
        **dict.fromkeys(NOT_IN_FILES, "the job has the command that it had before."),
        "k": "the directory and the periods of the checkpoints stay as they were.",
        "f": FLAG,
    },
    words_end=True,
)


def main(argv: list[str], io: "Io") -> int:
    """Run brestart."""
    if answered(argv, USAGE, io):
        return 0
    line = GRAMMAR.parse(argv)
    if not 1 <= len(line.words) <= 2:
        raise GRAMMAR.wrong("a checkpoint directory and perhaps a job id are expected")
    try:
        submission = restarted(line, io)
        for note in submission.notes:
            io.error(note)
        result = sent(submission, io)
    except CommandError as error:
        raise CommandError(not_submitted(error), error.code) from None
    finish(submission, result, io)
    return wait_for(result.job, submission.quiet, io) if submission.wait else 0


def restarted(line: Options, io: "Io") -> Submission:
    """Job that goes on from the checkpoint that the command line names.

    Raises:
        CommandError: there is no such checkpoint, or an option is malformed.
    """
    from lavactl.job_files.own.shown import job_file_of
    from lavactl.job_files.submitting import submission_of

    directory, *words = line.words
    directory = os.path.normpath(os.path.join(io.cwd, directory))
    word = words[0] if words else newest(directory, io)
    ref = read_ref(word)
    label = ref_text(ref)
    job = record(ref, io)
    if job.user != io.user_name():
        raise CommandError(f"Job <{label}>: it is another user's")
    spec = job.spec
    check(spec, directory, label, io)
    del spec.array[:]
    given = Options()
    given.items = [(name, value) for name, value in line.items if name != "f"]
    submission = submission_of(job_file_of(spec, f"Job <{label}>"), given, io)
    submission.spec.checkpoint.CopyFrom(spec.checkpoint)
    submission.spec.checkpoint.restarts_from = label
    submission.spec.checkpoint.forces_restart = "f" in line
    return submission


def newest(directory: str, io: "Io") -> str:
    """The caller's job with the highest number of those with a checkpoint in the directory.

    Raises:
        CommandError: there is none, or the directory cannot be read.
    """
    io.stay()  # a directory of any size is read by the caller's own process
    try:
        with os.scandir(directory) as entries:
            made = [named for one in entries if (named := _OF_JOB.fullmatch(one.name)) and _has_checkpoint(one, io.uid)]
    except OSError as error:
        raise CommandError(f"{printable(directory)}: {error.strerror}.") from None
    if not made:
        raise CommandError(f"{printable(directory)}: no checkpoint of a job of yours was made there")
    return max(made, key=lambda named: (int(named[1]), int(named[2] or 0)))[0]


def _has_checkpoint(entry: "os.DirEntry[str]", uid: int) -> bool:
    try:
        is_own = entry.is_dir(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_uid == uid
    except OSError:  # it was renamed meanwhile
        return False
    return is_own and os.path.isfile(os.path.join(entry.path, MADE))


def check(spec: "messages.JobSpec", directory: str, label: str, io: "Io") -> None:
    """Check that the directory holds a checkpoint of the job.

    Raises:
        CommandError: it does not.
    """
    if not spec.checkpoint.directory:
        raise CommandError(f"Job <{label}>: Job is not checkpointable")
    if spec.checkpoint.directory != directory:
        where = printable(spec.checkpoint.directory)
        raise CommandError(f"{printable(directory)}: the checkpoints of job <{label}> are in {where}")
    if io.kind_of(os.path.join(directory, label, MADE)) != FILE:
        raise CommandError(f"{printable(directory)}: no checkpoint of job <{label}> was made there")
