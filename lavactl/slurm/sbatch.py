"""sbatch: submit a script as a job."""

import os

from lavactl.commands.bsub import submit, wait_for
from lavactl.errors import CommandError
from lavactl.slurm.submit.choices import Choices, environment_options, refuse_components, script_options
from lavactl.slurm.submit.options import PARSERS
from lavactl.slurm.submit.request import Work, job_of
from lavactl.slurm.words.options import FAILURE, Given, answered
from lavactl.submit.scripts import SCRIPT_MAX, decode_script, without_order_mark
from lavactl.submit.submission import Submission
from lavactl.text.render import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.wire import messages

USAGE = """\
Usage: sbatch [options] script [argument ...]
       sbatch [options] --wrap=command
       sbatch [options] < script"""
PARSER = PARSERS["sbatch"]
NO_SCRIPT = (
    "This does not look like a batch script: its first line must begin with #! and the path of an interpreter, "
    "as in #!/bin/sh."
)


def main(argv: list[str], io: "Io") -> int:
    """Run sbatch."""
    line = PARSER.parse(argv)
    if answered(line, PARSER, USAGE, io):
        return 0
    refuse_components("sbatch", line.words[:1])
    work = read_work(line, io)
    choices = Choices("sbatch", line, environment_options("sbatch", io), script_options(work.script, PARSER))
    if "wait" in choices:
        io.stay()
    choices.say_ignored(io)
    spec = job_of(choices, work, io)
    result = submitted("sbatch", spec, io)
    if "parsable" in choices:
        io.print(str(result.job))
    else:
        io.print(f"Submitted batch job {result.job}")
    io.flush()
    return wait_for(result.job, True, io) if "wait" in choices else 0


def submitted(command: str, spec: "messages.JobSpec", io: "Io") -> "messages.SubmitResult":
    """Send the job.

    Raises:
        CommandError: the master refuses it.
    """
    try:
        return submit(Submission(spec, [], False, True, False), io)
    except CommandError as error:
        reason = clean(str(error)).rstrip(".")
        raise CommandError(f"{command}: error: Batch job submission failed: {reason}.", FAILURE) from None
    except UnicodeEncodeError:
        raise CommandError(f"{command}: error: a name or argument is not UTF-8 text.", FAILURE) from None


def read_work(line: Given, io: "Io") -> Work:
    """Script of the command line, of standard input, or of --wrap.

    Raises:
        CommandError: there is none, or it cannot be read.
    """
    wrapped = line.last("wrap")
    if wrapped is not None:
        if line.words:
            raise wrong("--wrap takes no script beside it.")
        return Work(f"#!/bin/sh\n# This script was created by sbatch --wrap.\n\n{wrapped}\n", [], "wrap")
    if line.words:
        path = io.path(line.words[0])
        data = io.read_file(path, SCRIPT_MAX + 1)
        if data is None:
            raise wrong(f"Unable to open file {line.words[0]}")
        name = os.path.basename(line.words[0])
    else:
        try:
            data = io.stdin.read(SCRIPT_MAX + 1)
        except OSError as error:
            raise wrong(f"The script cannot be read from standard input: {error.strerror}.") from None
        name = "sbatch"
    return Work(checked(data, io), line.words[1:], name)


def checked(data: bytes, io: "Io") -> str:
    """Script as text.

    Raises:
        CommandError: it is none.
    """
    if not data.strip():
        raise wrong("Batch script is empty!")
    try:
        text, notes = without_order_mark(decode_script(data))
    except CommandError as error:
        raise wrong(str(error)) from None
    for note in notes:
        io.error(f"sbatch: {note}")
    if not text.startswith("#!"):
        raise wrong(NO_SCRIPT)
    if text.partition("\n")[0].endswith("\r"):
        raise wrong("Batch script contains DOS line breaks (\\r\\n) instead of expected UNIX line breaks (\\n).")
    return text


def wrong(sentence: str) -> CommandError:
    """Error as Slurm writes it."""
    return CommandError(f"sbatch: error: {sentence}", FAILURE)
