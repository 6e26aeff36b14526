"""bugroup: user groups and their members."""

from lavactl.options import FLAG, Grammar, answered
from lavactl.views.groups import show_groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bugroup [-l] [-r] [-w] [user_group ...]
       bugroup -h | -V
"""
GRAMMAR = Grammar("bugroup", USAGE, dict.fromkeys(("l", "r", "w"), FLAG))


def main(argv: list[str], io: "Io") -> int:
    """Run bugroup."""
    if answered(argv, USAGE, io):
        return 0
    return show_groups(GRAMMAR.parse(argv), io, hosts=False)
