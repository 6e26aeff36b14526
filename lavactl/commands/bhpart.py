"""bhpart: host partitions with their hosts, and the accounts that share them."""

from lavactl.errors import FAILURE
from lavactl.options import FLAG, Grammar, answered, printable
from lavactl.text.render import clean
from lavactl.views.priorities.shares import tree_lines
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bhpart [-r] [host_partition ...]
       bhpart -h | -V
  -r                with the accounts of all groups, not only at the top
"""
GRAMMAR = Grammar("bhpart", USAGE, {"r": FLAG})


def main(argv: list[str], io: "Io") -> int:
    """Run bhpart."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    reply = io.client().host_partitions(cluster_pb2.HostPartitionsRequest(names=options.words))
    if reply.partitions:
        io.print("\n\n".join(text_of(one, "r" in options) for one in reply.partitions))
    io.flush()
    for name in reply.missing:
        io.error(f"{printable(name)}: No such host partition")
    if not reply.partitions and not reply.missing:
        io.error("No host partition found")
    return 0 if reply.partitions and not reply.missing else FAILURE


def text_of(one: cluster_pb2.HostPartitionRecord, whole: bool) -> str:
    """A partition, and its share tree."""
    hosts = "all hosts" if list(one.hosts) == ["all"] else clean(" ".join(one.hosts))
    lines = [f"HOST_PARTITION_NAME: {clean(one.name)}", f"HOSTS: {hosts}"]
    return "\n".join([*lines, *tree_lines(clean(one.name), one.share_tree, whole)])
