"""lsclusters: this cluster in one line; with -l its administrators and what its hosts have."""

from lavactl.commands.lsinfo import built_in
from lavactl.options import FLAG, Grammar, answered
from lavactl.text.render import MISSING, clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from lavactl.io import Io
    from protos import cluster_pb2

USAGE = """\
Usage: lsclusters [-l | -w] [cluster ...]
       lsclusters -h | -V
"""
GRAMMAR = Grammar("lsclusters", USAGE, dict.fromkeys(("l", "w"), FLAG))
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
    if "l" in options:
        io.print(long_text(list(info.administrators) or ["root"], io.client().resources(definitions=True)))
    return 0


def long_text(administrators: "Sequence[str]", told: "cluster_pb2.ResourcesReply") -> str:
    """Part of -l: all administrators, and the resources, types and models of hosts, of which lsinfo tells more."""
    resources = [one.name for one in (*built_in(), *told.definitions)]
    models = [one.name.replace(" ", "_") for one in told.models]
    rows = (
        ("LSF administrators", administrators),
        ("Available resources", resources),
        ("Available host types", told.types),
        ("Available host models", models),
    )
    return "\n".join(["", *(f"{title}: {clean(' '.join(names)) or MISSING}" for title, names in rows)])
