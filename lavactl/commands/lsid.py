"""lsid: the version, the cluster's name and its master."""

from lavactl.options import Grammar, answered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = "Usage: lsid [-h] [-V]\n"
GRAMMAR = Grammar("lsid", USAGE, {})
# Three lines and an empty one, as in LSF: some clients count them.
HEADER = """\
lava {}, batch scheduler with the commands of LSF
Free software under the Apache License, version 2.0
Without any warranty
"""


def main(argv: list[str], io: "Io") -> int:
    """Run lsid."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if options.words:
        raise GRAMMAR.wrong("takes no arguments")
    info = io.client().info()
    io.print(HEADER.format(info.version))
    io.print(f"My cluster name is {info.cluster}\nMy master name is {info.master_host}")
    return 0
