"""bbot: move a pending job behind the others of the same priority."""

from lavactl.commands.btop import move

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io


def main(argv: list[str], io: "Io") -> int:
    """Run bbot."""
    return move(argv, io, "bbot", -1, "bottom")
