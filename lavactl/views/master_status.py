"""badmin showconf and showstatus: the installation's settings, and the status of the master."""

import glob
import os

from lavactl.settings import socket_path
from lavactl.text.render import clean, long_time
from protos import cluster_pb2
from protos.sitecopy import PARAMS, directory_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

CLOSED = "closed"


def show_configuration(io: "Io", daemon: str = "MBD") -> int:
    """showconf mbd and lim: a title, then a line ``  NAME = VALUE`` for each setting; tools split it at `` = ``."""
    reply = io.client().parameters(installation=True)
    io.print(f"{daemon} configuration at {long_time(io.now())}")
    found = {one.name: one.value for one in reply.parameters}
    for name, value in (found | _readable(found.get("LSF_CONFDIR", ""), io)).items():
        io.print(clean(f"  {name} = {value}"))
    return 0


def _readable(confdir: str, io: "Io") -> dict[str, str]:
    """Readable replacements for LSF_CONFDIR and LSB_CONFDIR: the agent's copy, if the master's files are not on this
    host.
    """
    copy = directory_of(socket_path(io.environ))
    for path in glob.glob(f"{glob.escape(copy)}/{PARAMS.format('*')}"):
        if not os.access(confdir + path.removeprefix(copy), os.R_OK):
            return {"LSF_CONFDIR": copy, "LSB_CONFDIR": f"{copy}/lsbatch"}
    return {}


def show_status(io: "Io") -> int:
    """showstatus: counts of hosts, jobs and users, and the start time of the master."""
    client = io.client()
    status = client.status()
    hosts = [host for page in client.hosts(cluster_pb2.HostsRequest(clients_too=True)) for host in page.hosts]
    servers = [host for host in hosts if host.facts.server]
    blocks = (
        [("Available local hosts (current/peak)", None), *_machines(hosts, servers)],
        [("Number of servers", len(servers)), *_by_status(servers)],
        [
            ("Number of jobs", status.running + status.suspended + status.pending + status.finished),
            ("  Running", status.running),
            ("  Suspended", status.suspended),
            ("  Pending", status.pending),
            ("  Finished", status.finished),
        ],
        [
            ("Number of users", status.users),
            ("Number of user groups", status.user_groups),
            ("Number of active users", status.running_users),
        ],
        [
            ("Latest mbatchd start", long_time(status.started)),
            ("Active mbatchd PID", status.pid),
            ("Latest mbatchd reconfiguration", long_time(status.reconfigured) if status.reconfigured else "-"),
        ],
    )
    io.print("LSF runtime mbatchd information")
    io.print("\n\n".join("\n".join(_line(title, value) for title, value in block) for block in blocks))
    for problem in status.problems:
        io.print(f"\n    Problem: {clean(problem)}")
    return 0


def _line(title: str, value: object) -> str:
    if value is None:
        return f"    {title}:"
    return f"    {title + ':':<36} {value}"


def _machines(
    hosts: "list[cluster_pb2.HostRecord]", servers: "list[cluster_pb2.HostRecord]"
) -> list[tuple[str, object]]:
    """Hosts that are up, and all that have joined, the latter also as the maximum."""
    clients = [host for host in hosts if not host.facts.server]
    all_, up = [host.facts for host in servers], [host.facts for host in servers if is_up(host)]
    amounts = {"CPUs": "sockets", "Cores": "cores", "Slots": "slots"}
    return [
        ("  Clients", f"{sum(map(is_up, clients))}/{len(clients)}"),
        ("  Servers", f"{len(up)}/{len(all_)}"),
        *((f"  {title}", f"{_sum(up, name)}/{_sum(all_, name)}") for title, name in amounts.items()),
    ]


def is_up(host: cluster_pb2.HostRecord) -> bool:
    """True if the host's agent is connected."""
    return not host.status.startswith("un")


def _sum(facts: "list[cluster_pb2.HostFacts]", name: str) -> int:
    return sum(getattr(one, name) for one in facts)


def _by_status(servers: "list[cluster_pb2.HostRecord]") -> list[tuple[str, object]]:
    kinds = {"ok": "Ok", CLOSED: "Closed", "unreach": "Unreachable", "unavail": "Unavailable"}
    found = [host.status.partition("_")[0] for host in servers]
    return [(f"  {title}", found.count(kind)) for kind, title in kinds.items()]
