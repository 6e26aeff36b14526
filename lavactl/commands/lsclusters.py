"""lsclusters: this cluster in one line."""

from lavactl.options import FLAG, Grammar, answered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lsclusters [-w] [cluster ...]
       lsclusters -h | -V
"""
GRAMMAR = Grammar(
    "lsclusters", USAGE, {"w": FLAG, "l": "lsclusters, lsid and lsinfo show what there is to know of the one cluster."}
)
HEADER = "CLUSTER_NAME   STATUS   MASTER_HOST               ADMIN    HOSTS  SERVERS"


def main(argv: list[str], io: "Io") -> int:
    """Run lsclusters."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    info = io.client().info()
    for name in options.words:
        if name != info.cluster:
            raise GRAMMAR.wrong(f"{name}: not a cluster that is known here")
    admin = info.administrators[0] if info.administrators else "root"
    io.print(HEADER)
    io.print(f"{info.cluster:<14} {'ok':<8} {info.master_host:<20} {admin:>10} {info.hosts:>8} {info.servers:>8}")
    return 0
