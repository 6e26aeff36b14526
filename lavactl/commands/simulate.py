"""lavactl simulate: replay a trace through the master's scheduler in virtual time, without a cluster.

The simulator is part of the master and runs as a program of its own: commands never import the master.
"""

from lavactl.admin import maintenance
from lavactl.options import answered_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io


def main(argv: list[str], io: "Io") -> int:
    """Run the simulator with these arguments and print its output; the exit code."""
    if answered_version(argv, io):
        return 0
    return maintenance.of_master("lavad.simulator", argv, io)
