"""Tables of share accounts: bqueues -l and -r, and bhpart."""

from lavactl.text.render import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from protos import cluster_pb2

HEADER = "USER/GROUP      SHARES    PRIORITY   STARTED  RESERVED    CPU_TIME  RUN_TIME   ADJUST"
GPU_TITLE = "  GPU_RUN_TIME"


def tree_lines(owner: str, tree: "Iterable[cluster_pb2.ShareRecord]", whole: bool, gpu: bool = False) -> list[str]:
    """Accounts of a queue or host partition, with their present priority and usage, those of each group together.

    ``whole``: of all groups, not only at the top. ``gpu``: with the run time of GPUs. ADJUST is that of LSF's fairshare
    plug-in: 0.
    """
    lines, path = list[str](), None
    for share in tree:
        if share.path and not whole:
            continue
        if share.path != path:
            path = share.path
            title = f"SHARE_INFO_FOR: {owner}/{clean(path.strip('/'))}{'/' if path else ''}"
            lines += ["", title, HEADER + GPU_TITLE * gpu]
        lines.append(
            f" {clean(share.name):<14} {share.shares:>6} {share.priority:>11.3f} {share.started:>9} "
            f"{share.reserved:>9} {share.cpu_s:>11.1f} {share.run_s:>9.0f}{0:>9.3f}{f'{share.gpu_run_s:>14.0f}' * gpu}"
        )
    return lines
