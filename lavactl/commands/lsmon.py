"""lsmon: the load of hosts on the whole screen, shown again every few seconds."""

from lavactl.admin.load_screen import LoadScreen
from lavactl.errors import CommandError
from lavactl.options import FLAG, VALUE, Grammar, answered
from lavactl.text.units import is_digits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from lavactl.options import Options

USAGE = """\
Usage: lsmon [-N | -E] [-n number] [-R requirement] [-I index[:index ...]] [-i seconds] [-L file] [host ...]
       lsmon -h | -V
  -i   seconds between two looks; 10
  -L   also append what is shown to the file
  Keys: q leaves, N and E switch these options, n, R, I and i ask for a value, any other key looks again at once.
"""
GRAMMAR = Grammar(
    "lsmon", USAGE, {**dict.fromkeys(("N", "E"), FLAG), **dict.fromkeys(("n", "R", "I", "i", "L"), VALUE)}
)
INTERVAL_S = 10
INTERVAL_MAX_S = 86_400


def main(argv: list[str], io: "Io") -> int:
    """Run lsmon."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if "N" in options and "E" in options:
        raise GRAMMAR.wrong("-E and -N cannot be used together")
    number = options.last("n")
    if number is not None and not is_digits(number):
        raise GRAMMAR.wrong(f"-n takes a number of hosts, not {number}")
    screen = LoadScreen(options, interval_s(options), io)
    if not (io.is_terminal(io.stdin) and io.is_terminal(io.stdout)):
        raise CommandError("lsmon: a terminal is needed; lsload prints the same once.")
    io.stay()
    return screen.run()


def interval_s(options: "Options") -> int:
    """Seconds between two looks."""
    text = options.last("i")
    if text is None:
        return INTERVAL_S
    if not is_digits(text) or not 0 < int(text[:9]) <= INTERVAL_MAX_S:
        raise GRAMMAR.wrong(f"-i takes 1 to {INTERVAL_MAX_S} seconds, not {text}")
    return int(text)
