"""Newest results of a host's health checks, in the words of lavactl checks and bhosts -l."""

import time

from lavactl.text.render import clean
from protos import cluster_pb2

VERDICTS = ("ok", "warn", "bad")


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
