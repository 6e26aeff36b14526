"""lsid: the version, the cluster's name and its master."""

from lavactl.options import Grammar, answered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = "Usage: lsid [-h] [-V]\n"
GRAMMAR = Grammar("lsid", USAGE, {})


def main(argv: list[str], io: "Io") -> int:
    """Run lsid."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if options.words:
        raise GRAMMAR.wrong("takes no arguments")
    info = io.client().info()
    io.print(f"lava {info.version}\n\nMy cluster name is {info.cluster}\nMy master name is {info.master_host}")
    return 0
