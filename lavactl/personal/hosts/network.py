"""The network of a personal cluster: one bridge, a /24 of its own, one veth pair to each host.

Existing interfaces and routes are untouched: the subnet overlaps no route or address of the machine, interface names
are derived from the cluster's random id and kept under the kernel's 15 characters. The bridge holds the master's
address, the last of the subnet; host n has the n-th.
"""

import errno
import ipaddress
import json
import random
import shutil
import socket
import subprocess
from collections.abc import Iterable
from typing import Any

from lavactl.errors import CommandError
from lavactl.personal.starting import SYSTEM_PATH

HOSTS_MAX = 250
MASTER_NUMBER = 254
IP_TIMEOUT_S = 30
# Searched in this order: private networks, and the one reserved for benchmarks, which no site should route.
_POOLS = tuple(ipaddress.IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "198.18.0.0/15"))
_TRIES = 200
PORT_BASE = 6920
PORTS_TRIED = 2000

Network = ipaddress.IPv4Network


def ip_program() -> str:
    """Absolute path of iproute2's `ip`; CommandError when it is not installed."""
    found = shutil.which("ip", path=SYSTEM_PATH)
    if found is None:
        raise CommandError("A personal cluster needs the program ip; install the package iproute2.")
    return found


def bridge_name(cluster_id: str) -> str:
    """Name of the bridge interface."""
    return f"lava{cluster_id}"


def wire_name(cluster_id: str, number: int) -> str:
    """Name of the machine's end of the veth pair to host `number`; the host's own end is eth0."""
    return f"lv{cluster_id}h{number}"


def address_of(subnet: str, number: int) -> str:
    """Address of host `number`, or of the master."""
    return str(ipaddress.IPv4Network(subnet)[number])


def choose_subnet(taken: Iterable[Network], rng: random.Random) -> str:
    """A /24 that overlaps nothing in `taken`; CommandError if there is none."""
    occupied = list(taken)
    for pool in _POOLS:
        for _ in range(_TRIES):
            # The first and last /24 of a pool are the ones people choose by hand.
            index = rng.randrange(1, 2 ** (24 - pool.prefixlen) - 1)
            candidate = ipaddress.IPv4Network((int(pool.network_address) + (index << 8), 24))
            if not any(candidate.overlaps(other) for other in occupied):
                return str(candidate)
    raise CommandError("No private network is free on this machine for the hosts of a personal cluster.")


def loopback_subnet(rng: random.Random) -> str:
    """A /24 of loopback addresses, for hosts without namespaces."""
    return f"127.{rng.randrange(16, 255)}.{rng.randrange(1, 255)}.0/24"


def taken_networks() -> list[Network]:
    """IPv4 networks that this machine has addresses in or routes to, except the default route."""
    texts = [route.get("dst", "default") for route in _ip_json("route", "show", "table", "all")]
    for link in _ip_json("address", "show"):
        texts += [f"{entry['local']}/{entry['prefixlen']}" for entry in link.get("addr_info", ()) if "local" in entry]
    return [ipaddress.IPv4Network(text, strict=False) for text in texts if text[:1].isdigit() and text != "0.0.0.0/0"]


def _ip_json(*words: str) -> list[dict[str, Any]]:
    done = _run_ip(["-json", "-4", *words])
    found: list[dict[str, Any]] = json.loads(done or "[]")
    return found


def _run_ip(words: list[str], text: str = "") -> str:
    try:
        done = subprocess.run(
            [ip_program(), *words],
            input=text,
            capture_output=True,
            text=True,
            env={"PATH": SYSTEM_PATH, "LANG": "C.UTF-8"},
            timeout=IP_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"The program ip does not work: {error}.") from error
    if done.returncode != 0:
        raise CommandError(f"The network cannot be set up: {' '.join(done.stderr.split())}.")
    return done.stdout


def batch(lines: Iterable[str]) -> None:
    """Run many `ip` commands in this network namespace at once."""
    _run_ip(["-batch", "-"], "".join(f"{line}\n" for line in lines))


def bridge_lines(cluster_id: str, subnet: str) -> list[str]:
    """Commands that make the bridge."""
    bridge = bridge_name(cluster_id)
    return [
        f"link add {bridge} type bridge",
        f"address add {address_of(subnet, MASTER_NUMBER)}/24 dev {bridge}",
        f"link set {bridge} up",
    ]


def wire_lines(cluster_id: str, subnet: str, number: int, far_pid: int) -> list[str]:
    """Commands run on a host: its veth pair, with the other end moved to process `far_pid`, its address and routes."""
    return [
        "link set lo up",
        f"link add eth0 type veth peer name {wire_name(cluster_id, number)} netns {far_pid}",
        f"address add {address_of(subnet, number)}/24 dev eth0",
        "link set eth0 up",
        f"route add default via {address_of(subnet, MASTER_NUMBER)}",
    ]


def plug_lines(cluster_id: str, numbers: Iterable[int]) -> list[str]:
    """Commands run beside the bridge: attach the hosts' interfaces."""
    return [f"link set {wire_name(cluster_id, number)} master {bridge_name(cluster_id)} up" for number in numbers]


def existing_links(cluster_id: str) -> list[str]:
    """Interfaces of this cluster in this network namespace, host interfaces first."""
    names = [name for _, name in socket.if_nameindex()]
    wires = [name for name in names if name.startswith(f"lv{cluster_id}h")]
    return wires + [name for name in names if name == bridge_name(cluster_id)]


def remove_links(names: Iterable[str]) -> None:
    """Delete interfaces; one that has vanished in the meantime is no error."""
    for name in names:
        try:
            _run_ip(["link", "delete", name])
        except CommandError:
            if name in (present for _, present in socket.if_nameindex()):
                raise


def free_port(address: str, start: int) -> int:
    """The first port from `start` on that is unused on this address, wildcard listeners included."""
    for port in range(start, start + PORTS_TRIED):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise CommandError(f"No port can be opened on {address}: {error.strerror}.") from error
                continue
            return port
    raise CommandError(f"No port is free on {address} from {start} to {start + PORTS_TRIED - 1}.")
