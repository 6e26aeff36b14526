"""Shared code of bpost, bread and bstatus: the job that a message is about, and the message's index."""

from lavactl.errors import CommandError
from lavactl.jobrefs import read_ref
from lavactl.options import Grammar, Options, printable
from lavactl.text import units
from lavactl.wire import messages

INDEX_MAX = 127
TEXT_MAX = 512
NO_TEXT = "no description"  # LSF's, of a message without a text


def named_job(options: Options, grammar: Grammar) -> tuple[messages.JobRef, messages.JobFilter]:
    """Reference to the job of the command line, and the filter for the newest one of a name (-J).

    Raises:
        CommandError: there is none, or more than one.
    """
    name = options.last("J")
    if (name is None) is not bool(options.words) or len(options.words) > 1:
        raise grammar.wrong("one job is expected: its id, or its name with -J")
    if name is not None:
        return messages.JobRef(), messages.JobFilter(name=name)
    ref = read_ref(options.words[0])
    if not ref.job:
        raise CommandError(f"{printable(options.words[0])}: Illegal job ID.")
    return ref, messages.JobFilter()


def label(options: Options) -> str:
    """The job as the user named it."""
    return printable(options.words[0] if options.words else options.last("J") or "")


def index_of(options: Options, command: str) -> int:
    """Index of the message (-i), by default 0.

    Raises:
        CommandError: it is no number of that range.
    """
    text = options.last("i") or "0"
    try:
        return units.read_count(text, 0, INDEX_MAX)
    except ValueError:
        raise CommandError(f"{command} -i {printable(text)}: expected a number from 0 to {INDEX_MAX}.") from None


def checked_text(text: str, command: str) -> str:
    """Text of a message (-d).

    Raises:
        CommandError: it is too long.
    """
    if len(text) > TEXT_MAX:
        raise CommandError(f"{command} -d: the message has {len(text)} characters; {TEXT_MAX} are the most.")
    return text
