"""bmgroup: host groups, compute units, host partitions, and their members."""

from lavactl.options import FLAG, Grammar, answered
from lavactl.views.groups import show_groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bmgroup [-cu] [-l] [-r] [-w] [host_group | compute_unit | host_partition ...]
       bmgroup -h | -V
"""
GRAMMAR = Grammar("bmgroup", USAGE, dict.fromkeys(("cu", "l", "r", "w"), FLAG))


def main(argv: list[str], io: "Io") -> int:
    """Run bmgroup."""
    if answered(argv, USAGE, io):
        return 0
    return show_groups(GRAMMAR.parse(argv), io, hosts=True)
