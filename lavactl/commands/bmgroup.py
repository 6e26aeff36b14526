"""bmgroup: groups of hosts and their members."""

from lavactl.groups import show_groups
from lavactl.options import FLAG, Grammar, answered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bmgroup [-l] [-r] [-w] [host_group ...]
       bmgroup -h | -V
"""
GRAMMAR = Grammar("bmgroup", USAGE, {**dict.fromkeys(("l", "r", "w"), FLAG), "cu": "not supported yet."})


def main(argv: list[str], io: "Io") -> int:
    """Run bmgroup."""
    if answered(argv, USAGE, io):
        return 0
    return show_groups(GRAMMAR.parse(argv), io, hosts=True)
