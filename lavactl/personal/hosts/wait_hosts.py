"""Wait for the hosts of a cluster, by polling the master over the login agent's socket: it is up when all are ok.

The master has no event for "all hosts are here", so it is polled, for a bounded time. A master that keeps its hosts
waiting, as for `lavactl adopt`, names the problem; that is reported while there is time to act on it.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lavactl.errors import CommandError
from lavactl.text.render import clean
from lavactl.wire.connection import CallError, Connection, LostError
from protos import cluster_pb2

HOSTS_METHOD = "/lava.v1.ClusterService/Hosts"
STATUS_METHOD = "/lava.v1.ClusterService/Status"
ANSWER_S = 5.0
PAUSE_S = 0.05
PROBLEMS_S = 1.0  # between two questions for the master's problems


class HeldUpError(CommandError):
    """Hosts not ready in time because of a problem that the master names: its administrator can still act on it."""


def wait_for_hosts(
    socket: Path,
    hosts: tuple[str, ...],
    logs: Path,
    patience_s: float,
    check_daemons: Callable[[], None],
    tell: Callable[[str], None],
) -> None:
    """Return when the master reports all these hosts as ok.

    `check_daemons` raises when waiting is pointless; `tell` gets the first problem of the master meanwhile. A host that
    is closed by an administrator, or full, counts as ok: only silence counts against it.

    Raises:
        HeldUpError: the time is over, and the master has a problem.
        CommandError: the time is over; the error names a host that is not ready.
    """
    deadline = time.monotonic() + patience_s
    absent, reason = list(hosts), "the master has not seen it"
    problems, asked_at, has_told = list[str](), time.monotonic(), False
    while absent:
        try:
            states = ask(socket)
            absent = [host for host in hosts if states.get(host, "unavail") in ("unavail", "unreach")]
            if absent and time.monotonic() - asked_at >= PROBLEMS_S:
                problems, asked_at = problems_of(socket), time.monotonic()
        except (OSError, LostError, CallError) as error:
            reason = str(error)
        if not absent:
            return
        if problems and not has_told:
            tell(problems[0])
            has_told = True
        check_daemons()
        if time.monotonic() > deadline:
            raise _late(absent[0], problems, reason, logs)
        time.sleep(PAUSE_S)


def _late(host: str, problems: list[str], reason: str, logs: Path) -> CommandError:
    if problems:
        return HeldUpError(f"Host {host} is not ready in time: {' '.join(problems)}\nSee also the logs in {logs}.")
    return CommandError(f"Host {host} is not ready in time: {reason}; see the logs in {logs}.")


def ask(socket: Path) -> dict[str, str]:
    """Host name to status from the master; OSError, LostError or CallError if the call fails."""
    request = cluster_pb2.HostsRequest(clients_too=True)
    answers = _answers(socket, HOSTS_METHOD, request.SerializeToString())
    records = [record for page in answers for record in cluster_pb2.HostsPage.FromString(page).hosts]
    return {record.facts.name: record.status for record in records}


def problems_of(socket: Path) -> list[str]:
    """Present problems of the master, a sentence each; OSError, LostError or CallError if the call fails."""
    answers = _answers(socket, STATUS_METHOD, cluster_pb2.StatusRequest().SerializeToString())
    return [clean(problem) for reply in answers for problem in cluster_pb2.StatusReply.FromString(reply).problems]


def _answers(socket: Path, method: str, request: bytes) -> Iterator[bytes]:
    connection = Connection(str(socket))
    try:
        yield from connection.answers(method, request, ANSWER_S)
    finally:
        connection.close()
