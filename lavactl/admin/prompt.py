"""The prompt of badmin and lsadmin, which is there when they are called without a subcommand: a subcommand a line.

Invariant: no error of a subcommand ends it; ``quit``, the end of the input or a closed output does.
"""

import shlex

from lavactl.errors import FAILURE, UsageError
from lavactl.options import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

QUIT = ("quit", "exit", "q")
HELP = ("help", "?")


def converse(command: str, io: "Io") -> int:
    """Run subcommands until ``quit``; the exit code is that of the last one that failed, 0 if none did.

    Lines that come from no terminal are taken without a prompt.
    """
    from lavactl.main import OUTPUT_CLOSED

    io.stay()
    prompt = f"{command}>" if io.is_terminal(io.stdin) else ""
    code = 0
    while True:
        io.print(prompt, end="")
        io.flush()
        line = io.stdin.readline()
        if not line:
            io.print("\n" if prompt else "", end="")
            return code
        words = _words(line, io)
        if words is None:
            code = FAILURE
        elif words and words[0] in QUIT:
            return code
        elif words:
            ended = _run(command, words, io)
            if ended == OUTPUT_CLOSED:
                return ended
            code = ended or code


def _words(line: bytes, io: "Io") -> list[str] | None:
    """Words of a line, split as by a shell; None if that cannot be done."""
    try:
        return shlex.split(line.decode(errors="surrogateescape"))
    except ValueError:
        io.error("A quote is not closed.")
        return None


def _run(command: str, words: list[str], io: "Io") -> int:
    from lavactl.main import run

    return run(command, ["help", *words[1:]] if words[0] in HELP else words, io)


def give_help(command: str, usage: str, names: list[str], io: "Io") -> int:
    """Print the usage of the subcommands named, or all of it.

    Raises:
        UsageError: one of them does not exist.
    """
    lines = usage.rstrip().splitlines()
    if not names:
        io.print("\n".join(lines))
    for name in names:
        found = [line for line in lines if name in line.replace("|", " ").split()]
        if not found:
            raise UsageError(f"{command} help: {printable(name)}: no such subcommand", usage)
        io.print("\n".join(line.replace("Usage:", "").strip() for line in found))
    return 0
