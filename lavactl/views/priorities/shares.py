"""Tables of share accounts: bqueues -l and -r, and bhpart."""

from lavactl.text.render import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from protos import cluster_pb2

HEADER = "USER/GROUP      SHARES    PRIORITY   STARTED  RESERVED    CPU_TIME  RUN_TIME"
ADJUST = "   ADJUST"


def tree_lines(owner: str, tree: "Iterable[cluster_pb2.ShareRecord]", whole: bool, adjust: bool = False) -> list[str]:
    """Accounts of a queue or host partition, with their present priority and usage, those of each group together.

    ``whole``: of all groups, not only at the top. ``adjust``: with the column of LSF's fairshare plug-in, which is 0.
    """
    lines, path = list[str](), None
    for share in tree:
        if share.path and not whole:
            continue
        if share.path != path:
            path = share.path
            title = f"SHARE_INFO_FOR: {owner}/{clean(path.strip('/'))}{'/' if path else ''}"
            lines += ["", title, HEADER + ADJUST * adjust]
        lines.append(
            f" {clean(share.name):<14} {share.shares:>6} {share.priority:>11.3f} {share.started:>9} "
            f"{share.reserved:>9} {share.cpu_s:>11.1f} {share.run_s:>9.0f}{f'{0:>9.3f}' * adjust}"
        )
    return lines
