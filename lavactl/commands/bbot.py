"""bbot: move a pending job behind the others of the same priority."""

from lavactl.commands.btop import grammar_of, move

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io


GRAMMAR = grammar_of("bbot")


def main(argv: list[str], io: "Io") -> int:
    """Run bbot."""
    return move(argv, io, GRAMMAR, -1, "bottom")
