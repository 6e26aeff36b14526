"""Asking the master, by the login agent's socket, which hosts it has: a cluster is up when all of them are ok.

The master has no word for "all are here now" that one could wait for, so it is asked again and again, for a bounded
time.
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
    """Return when the master calls all these hosts ok; CommandError, naming one that is not, when the time is over.

    `check_daemons` raises as soon as there is nothing more to wait for. A host that an administrator closed, or that is
    full, is there as well: only silence counts against it.
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
    """Host name to status, as the master sees it now; OSError, LostError or CallError when it cannot be asked."""
    connection = Connection(str(socket))
    try:
        request = cluster_pb2.HostsRequest(clients_too=True)
        pages = connection.answers(HOSTS_METHOD, request.SerializeToString(), ANSWER_S)
        records = [record for page in pages for record in cluster_pb2.HostsPage.FromString(page).hosts]
        return {record.facts.name: record.status for record in records}
    finally:
        connection.close()
