"""bapp: application profiles with the slots of their jobs, and with -l their settings."""

from lavactl.errors import FAILURE
from lavactl.options import FLAG, Grammar, answered, printable
from lavactl.text.render import clean
from lavactl.views.thresholds import limit_lines
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bapp [-l | -w] [-alloc] [profile ...]
       bapp -h | -V
  -alloc  count all slots of its hosts for an exclusive job
"""
GRAMMAR = Grammar("bapp", USAGE, dict.fromkeys(("l", "w", "alloc"), FLAG))
HEADER = "APP_NAME            NJOBS     PEND      RUN     SUSP"
LONG_HEADER = "   NJOBS     PEND      RUN    SSUSP    USUSP      RSV"
SEPARATOR = "-" * 79


def main(argv: list[str], io: "Io") -> int:
    """Run bapp."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    request = cluster_pb2.ApplicationsRequest(names=options.words, allocated="alloc" in options)
    reply = io.client().applications(request)
    profiles = list(reply.applications)
    if "l" in options:
        io.print(f"\n{SEPARATOR}\n".join(long_text(one) for one in profiles), end="")
    elif profiles:
        io.print("\n".join([HEADER, *(row(one, "w" in options) for one in profiles)]))
    io.flush()
    for name in reply.missing:
        io.error(f"{printable(name)}: No such application profile")
    if not profiles and not reply.missing:
        io.error("No application profile found")
    return 0 if profiles and not reply.missing else FAILURE


def numbers(one: cluster_pb2.ApplicationRecord) -> tuple[int, ...]:
    """NJOBS, PEND, RUN, SSUSP, USUSP, RSV: slots, as of queues."""
    counts = (one.pend, one.run, one.ssusp, one.ususp, one.rsv)
    return sum(counts), *counts


def row(one: cluster_pb2.ApplicationRecord, uncut: bool) -> str:
    """One line of the table."""
    every, pend, run, ssusp, ususp, _ = numbers(one)
    name = clean(one.name) if uncut else clean(one.name)[:16]
    return f"{name:<16} {every:>8} {pend:>8} {run:>8} {ssusp + ususp:>8}"


def long_text(one: cluster_pb2.ApplicationRecord) -> str:
    """-l: statistics, limits as bqueues -l has them, and the other settings as written."""
    default = "  This is the default application profile." if one.is_default else ""
    lines = [
        f"APPLICATION NAME: {clean(one.name)}",
        f" -- {clean(one.description) or 'No description provided.'}{default}",
        "",
        "STATISTICS:",
        LONG_HEADER,
        " ".join(f"{number:>8}" for number in numbers(one)),
    ]
    most, usual = dict(one.limits), dict(one.default_limits)
    lines += limit_lines("DEFAULT LIMITS:", usual) + limit_lines("MAXIMUM LIMITS:", most)
    settings = [known for known in one.parameters if known.name not in most | usual]
    if settings:
        lines += ["", "PARAMETERS:", "", *(f"{known.name}: {clean(known.value)}" for known in settings)]
    return "\n".join(lines) + "\n"
