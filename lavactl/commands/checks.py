"""lavactl checks: newest results of health checks, of all hosts or of some."""

import time

from lavactl.errors import FAILURE
from lavactl.options import FLAG, Grammar, answered
from lavactl.text.columns import table
from lavactl.text.render import clean, json_text
from lavactl.views.hosts import fetch_hosts
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lavactl checks [-bad] [-json] [-noheader] [host_name | host_group ...]
  -bad  only those that warn, or found the host bad
"""
GRAMMAR = Grammar("checks", USAGE, {"bad": FLAG, "json": FLAG, "noheader": FLAG})
HEADER = ["HOST", "VERDICT", "TIME", "PROGRAM", "REASON"]
VERDICTS = ("ok", "warn", "bad")


def main(argv: list[str], io: "Io") -> int:
    """Run lavactl checks."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    hosts, complete = fetch_hosts(options.words, io, clients_too=False, unknown="No such host.")
    rows = [row for host in hosts for row in check_rows(host) if "bad" not in options or row[1] != VERDICTS[0]]
    if "json" in options:
        io.print(json_text("checks", "CHECKS", [dict(zip(HEADER, row, strict=True)) for row in rows]))
    elif not rows:
        io.error("No health check has ended since the master began.")
    elif "noheader" in options:
        io.print(table(rows[0], rows[1:]))
    else:
        io.print(table(HEADER, rows))
    return 0 if complete else FAILURE


def check_rows(host: cluster_pb2.HostRecord) -> list[list[str]]:
    """Results of one host, in the order of the programs' first runs."""
    return [
        [
            host.facts.name,
            VERDICTS[min(one.verdict, len(VERDICTS) - 1)],
            time.strftime("%b %d %H:%M:%S", time.localtime(one.time)),
            clean(one.command),
            clean(one.text) or "-",
        ]
        for one in host.checks
    ]
