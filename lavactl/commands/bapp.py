"""bapp: application profiles. lava has none yet, so that no name is known."""

from lavactl.errors import FAILURE
from lavactl.options import FLAG, Grammar, answered, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bapp [-l | -w] [profile ...]
       bapp -h | -V
"""
GRAMMAR = Grammar("bapp", USAGE, dict.fromkeys(("l", "w"), FLAG))


def main(argv: list[str], io: "Io") -> int:
    """Run bapp."""
    if answered(argv, USAGE, io):
        return 0
    names = GRAMMAR.parse(argv).words
    for name in names:
        io.error(f"{printable(name)}: No such application profile")
    if not names:
        io.error("No application profile found")
    return FAILURE
