"""lavactl checks: newest results of health checks, of all hosts or of some."""

from lavactl.errors import FAILURE
from lavactl.options import FLAG, Grammar, answered
from lavactl.text.columns import table
from lavactl.text.render import json_text
from lavactl.views.health_checks import VERDICTS, check_rows
from lavactl.views.hosts import fetch_hosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lavactl checks [-bad] [-json] [-noheader] [host_name | host_group ...]
  -bad  only those that warn, or found the host bad
"""
GRAMMAR = Grammar("checks", USAGE, {"bad": FLAG, "json": FLAG, "noheader": FLAG})
HEADER = ["HOST", "VERDICT", "TIME", "PROGRAM", "REASON"]


def main(argv: list[str], io: "Io") -> int:
    """Run lavactl checks."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    hosts, complete = fetch_hosts(options.words, io, clients_too=False, unknown="No such host.")
    ended = [row for host in hosts for row in check_rows(host)]
    rows = [row for row in ended if "bad" not in options or row[1] != VERDICTS[0]]
    if "json" in options:
        io.print(json_text("checks", "CHECKS", [dict(zip(HEADER, row, strict=True)) for row in rows]))
    elif not ended and (hosts or complete):
        io.error("No health check has ended since the master began.")
    elif ended and not rows:
        io.error("No health check warns, or found a host bad.")
    elif rows and "noheader" in options:
        io.print(table(rows[0], rows[1:]))
    elif rows:
        io.print(table(HEADER, rows))
    return 0 if complete else FAILURE
