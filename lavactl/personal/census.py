"""Wait for the hosts of a cluster, by polling the master over the login agent's socket: it is up when all are ok.

The master has no event for "all hosts are here", so it is polled, for a bounded time.
"""

import time
from collections.abc import Callable
from pathlib import Path

from lavactl.connection import CallError, Connection, LostError
from lavactl.errors import CommandError
from protos import cluster_pb2

HOSTS_METHOD = "/lava.v1.ClusterService/Hosts"
ANSWER_S = 5.0
PAUSE_S = 0.05


def wait_for_hosts(
    socket: Path, hosts: tuple[str, ...], logs: Path, patience_s: float, check_daemons: Callable[[], None]
) -> None:
    """Return when the master reports all these hosts as ok; CommandError, naming one that is not, on timeout.

    `check_daemons` raises when waiting is pointless. A host that is closed by an administrator, or full, counts as ok:
    only silence counts against it.
    """
    deadline = time.monotonic() + patience_s
    absent, reason = list(hosts), "the master has not seen it"
    while absent:
        try:
            states = ask(socket)
            absent = [host for host in hosts if states.get(host, "unavail") in ("unavail", "unreach")]
        except (OSError, LostError, CallError) as error:
            reason = str(error)
        if not absent:
            return
        check_daemons()
        if time.monotonic() > deadline:
            raise CommandError(f"Host {absent[0]} is not ready in time: {reason}; see the logs in {logs}.")
        time.sleep(PAUSE_S)


def ask(socket: Path) -> dict[str, str]:
    """Host name to status from the master; OSError, LostError or CallError if the call fails."""
    connection = Connection(str(socket))
    try:
        request = cluster_pb2.HostsRequest(clients_too=True)
        pages = connection.answers(HOSTS_METHOD, request.SerializeToString(), ANSWER_S)
        records = [record for page in pages for record in cluster_pb2.HostsPage.FromString(page).hosts]
        return {record.facts.name: record.status for record in records}
    finally:
        connection.close()
