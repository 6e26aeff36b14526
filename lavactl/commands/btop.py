"""btop: move a pending job before the others of the same priority."""

from lavactl.errors import FAILURE, CommandError
from lavactl.jobrefs import read_ref, ref_text
from lavactl.options import FLAG, Grammar, answered, printable
from lavactl.text import units
from lavactl.text.render import clean
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io


USAGE = """\
Usage: {command} [-u] job_id [position]
       {command} -h | -V
An administrator's position counts among the jobs of all users, with -u among those of the job's owner. Other users
move their jobs among their own in any case.
"""


def usage(command: str) -> str:
    """Usage text of the command."""
    return USAGE.format(command=command)


def grammar_of(command: str) -> Grammar:
    """Options of the command."""
    return Grammar(command, usage(command), {"u": FLAG})


GRAMMAR = grammar_of("btop")


def main(argv: list[str], io: "Io") -> int:
    """Run btop."""
    return move(argv, io, GRAMMAR, 1, "top")


def move(argv: list[str], io: "Io", grammar: Grammar, sign: int, end: str) -> int:
    """Move a job; ``sign`` 1: positions count from the top, -1: from the bottom."""
    if answered(argv, grammar.usage, io):
        return 0
    options = grammar.parse(argv)
    words = options.words
    if not 1 <= len(words) <= 2:
        raise grammar.wrong("a job id and at most one position are expected")
    ref = read_ref(words[0])
    if not ref.job:
        raise CommandError(f"{printable(words[0])}: Illegal job ID.")
    request = messages.MoveRequest(ref=ref, place=sign * position(words), among_own="u" in options)
    reply = io.client().move(request)
    if reply.error:
        io.error(f"Job <{ref_text(ref)}>: {clean(reply.error).rstrip('.')}")
        return FAILURE
    io.print(f"Job <{ref_text(ref)}> has been moved to position {abs(reply.place)} from {end}.")
    return 0


def position(words: list[str]) -> int:
    """Requested position; by default 1."""
    if len(words) < 2:
        return 1
    try:
        return units.read_count(words[1])
    except ValueError:
        raise CommandError(f"{printable(words[1])}: Illegal job position: it counts from 1.") from None
