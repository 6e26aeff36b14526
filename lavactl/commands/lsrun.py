"""lsrun: run a command on a host that fits a requirement, as a short interactive job.

Exit code: the command's own. Nothing runs outside of jobs in lava: limits, queues and accounting hold for it as well.
"""

from lavactl.errors import CommandError
from lavactl.options import FLAG, VALUE, Grammar, Ignored, Options, answered
from lavactl.submit.submission import GRAMMAR as SUBMISSION
from lavactl.submit.submission import submission_of
from lavactl.tasks.interactive import InteractiveJob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lsrun [-P | -S] [-L] [-v] [-m "host ..."] [-R requirement] command [argument ...]
       lsrun -h | -V
  The command is a short interactive job (bsub -I) with its output here; it waits until a host is free.
  -P   it has a terminal; -S: a shell's, with its job control
  -v   name the host
"""
GRAMMAR = Grammar(
    "lsrun",
    USAGE,
    {
        **dict.fromkeys(("P", "S", "v"), FLAG),
        **dict.fromkeys(("m", "R"), VALUE),
        "L": Ignored(FLAG, "every command goes through the agent of its host."),
        "l": "not supported: the command is a job, and a login shell is asked for as bsub -L SHELL.",
        "p": "not supported: there is no local task list; every command is a job.",
    },
    words_end=True,
)
DISABLED = "LSF_DISABLE_LSRUN of lsf.conf allows it to administrators only; bsub -I submits an interactive job."


class Task(InteractiveJob):
    """The job of one lsrun; ``name`` is that of its command, if the host is to be named."""

    def __init__(self, job: int, kind: str, io: "Io", name: str) -> None:
        super().__init__(job, kind, True, io)
        self._name = name
        self._out = io

    def tell_start(self, host: str) -> None:
        """Name the host, as lsrun -v of LSF does."""
        if self._name:
            self._out.error(f"<<Execute {self._name} on remote host {host}>>")


def main(argv: list[str], io: "Io") -> int:
    """Run lsrun."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if not options.words:
        raise GRAMMAR.wrong("a command is missing")
    if "P" in options and "S" in options:
        raise GRAMMAR.wrong("-P and -S cannot be used together")
    check_allowed("lsrun", io)
    return run(options, io)


def check_allowed(command: str, io: "Io") -> None:
    """Refuse the command where the site has switched it off.

    Raises:
        CommandError: it has, and the caller is no administrator.
    """
    word = (io.site_setting("LSF_DISABLE_LSRUN") or "").strip().lower()
    if word in ("y", "yes") and io.uid and io.user_name() not in io.client().info().administrators:
        raise CommandError(f"{command}: {DISABLED}")


def run(options: Options, io: "Io") -> int:
    """Submit the job, be its terminal, and return its exit code."""
    from lavactl.text.render import clean

    kind = "-Ip" if "P" in options else "-Is" if "S" in options else "-I"
    words = [kind]
    for letter in ("m", "R"):
        if letter in options:
            words += [f"-{letter}", options.last(letter) or ""]
    name = clean(options.words[0]) if "v" in options else ""
    return submit_and_follow([*words, *options.words], GRAMMAR.notes(options), name, io)


def submit_and_follow(line: list[str], notes: list[str], name: str, io: "Io") -> int:
    """Submit the interactive job of a command line of bsub, follow it to its end, and return its exit code.

    Args:
        notes: sentences for the user.
        name: the command, if its host is to be named.
    """
    from lavactl.commands.bsub import sent, tell_site

    io.stay()
    submission = submission_of(SUBMISSION.parse(line), io)
    for note in [*notes, *submission.notes]:
        io.error(note)
    result = sent(submission, io)
    tell_site(submission, result.job, result.queue, 0, io)
    return Task(result.job, submission.spec.interactive, io, name).run()
