"""blimits: limits of lsb.resources: how they are configured, and how much of each is used."""

from lavactl.options import FLAG, Grammar, answered
from lavactl.render import MISSING, clean
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: blimits [-c] [-w] [limit ...]
       blimits -h | -V
"""
GRAMMAR = Grammar(
    "blimits",
    USAGE,
    {
        **dict.fromkeys(("c", "w", "a"), FLAG),
        **dict.fromkeys(("n", "m", "P", "q", "u", "A", "Lp"), "not supported yet."),
    },
)
COLUMNS = (("NAME", 14), ("USERS", 12), ("QUEUES", 12), ("HOSTS", 12), ("PROJECTS", 12), ("SLOTS", 9), ("MEM", 14),
           ("TMP", 12), ("SWP", 12), ("JOBS", 9))  # fmt: skip


def main(argv: list[str], io: "Io") -> int:
    """Run blimits."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    reply = io.client().limits()
    limits = [limit for limit in reply.limits if not options.words or limit.name in options.words]
    known = {limit.name for limit in limits}
    for name in options.words:
        if name not in known:
            raise GRAMMAR.wrong(f"{name}: no such limit")
    if "c" in options:
        io.print("\n\n".join(configured_text(limit) for limit in limits) or "No resource limit is configured.")
        return 0
    lines = [line for limit in limits for line in usage_lines(limit, "w" in options)]
    if not lines:
        io.print("No resource usage found.")
        return 0
    io.print("\nINTERNAL RESOURCE LIMITS:\n")
    io.print("  ".join(f"{name:<{width}}" for name, width in COLUMNS).rstrip())
    io.print("\n".join(lines))
    return 0


def usage_lines(limit: cluster_pb2.LimitRecord, uncut: bool) -> list[str]:
    """A line for each set of consumers that uses something."""
    lines = []
    for usage in limit.usage:
        used = usage.used
        cells = [limit.name, usage.users, usage.queues, usage.hosts, usage.projects]
        cells += [used.get(name, "") for name, _ in COLUMNS[5:]]
        fitted = [_fit(clean(cell) or MISSING, width, uncut) for cell, (_, width) in zip(cells, COLUMNS, strict=True)]
        rest = [f"{name} {clean(used[name])}" for name in sorted(used) if name not in dict(COLUMNS)]
        lines.append("  ".join([*fitted, *rest]).rstrip())
    return lines


def _fit(text: str, width: int, uncut: bool) -> str:
    return f"{text if uncut else text[:width]:<{width}}"


def configured_text(limit: cluster_pb2.LimitRecord) -> str:
    """A Limit section as it could be written."""
    values = [f"{name:<19} = {clean(value)}" for name, value in sorted(limit.configured.items())]
    return "\n".join(["Begin Limit", f"{'NAME':<19} = {clean(limit.name)}", *values, "End Limit"])
