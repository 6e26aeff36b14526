"""Namespaces of a cluster's hosts: processes that hold them, the network between them, the files of each host.

The bridge lives in the machine itself for root, in one user namespace for other users. Each host is a network, UTS and
mount namespace held by a process that sleeps. It shares the machine's whole file system; only /dev/shm, /etc/hosts,
/etc/hostname and /etc/resolv.conf are its own. The last is empty: an unreachable name server would make look-ups hang.
"""

import os
from pathlib import Path

from lavactl.errors import CommandError
from lavactl.personal.directory import make_directory, write_public
from lavactl.personal.hosts import network
from lavactl.personal.hosts.namespace_exec import Passage
from lavactl.personal.processes import Process, all_pids, end, identify, is_alive, is_within, namespace, sweep
from lavactl.personal.starting import Starting, clean_environment, confirm, run_inside, start
from lavactl.personal.state_file import Cluster, Mode, Table

SLEEPER = ["/bin/sleep", "infinity"]
GROUND = "ground"
KINDS = ["net", "mnt", "uts"]
_ETC_FILES = ("hosts", "hostname", "resolv.conf")


def probe() -> Mode:
    """Kind of hosts this user can have on this machine, found by trying it in namespaces that vanish at once."""
    mode = Mode.ROOT if os.geteuid() == 0 else Mode.USER
    trial = Passage(
        argv=["/bin/true"],
        environment=clean_environment(),
        unshare=KINDS if mode is Mode.ROOT else ["user", *KINDS],
        hostname="lavaprobe",
        own_shared_memory=True,
        steps=[_ip_step(["link add lavaprobe type bridge", "link add eth0 type veth peer name lavaprobe1"])],
    )
    try:
        run_inside("A trial host", trial)
    except CommandError:
        return Mode.LOOPBACK
    return mode


def host_key(host: str) -> str:
    """Name in the process table of the process that holds a host's namespaces."""
    return f"host {host}"


def entrance(cluster: Cluster, table: Table, host: str) -> tuple[int, list[str]]:
    """Process that holds the namespaces of a host's agent, and their kinds; (0, []) for the machine itself."""
    if cluster.mode is Mode.LOOPBACK:
        return 0, []
    confined = ["user"] if cluster.mode is Mode.USER else []
    if host != cluster.login:
        return _pid(table, host_key(host)), confined + KINDS
    return (_pid(table, GROUND), confined + KINDS) if confined else (0, [])


def entrance_if_open(cluster: Cluster, table: Table, host: str) -> tuple[int, list[str]]:
    """The same for a host that may be down: (0, []) if its namespaces are gone."""
    holder = table.get(GROUND if host == cluster.login else host_key(host))
    return entrance(cluster, table, host) if is_alive(holder) else (0, [])


def _pid(table: Table, name: str) -> int:
    process = table.get(name)
    if process is None:
        raise CommandError(f"The process that holds {name} is missing.")
    return process.pid


def write_etc(directory: Path, cluster: Cluster) -> None:
    """Write the files that each host sees under /etc, replacing old ones."""
    names = {cluster.login: cluster.master_address, **{host: cluster.address(host) for host in cluster.hosts}}
    lines = ["127.0.0.1 localhost", "::1 localhost ip6-localhost", *(f"{names[name]} {name}" for name in names)]
    make_directory(directory / "etc", 0o755)
    for name in names:
        make_directory(directory / "etc" / name, 0o755)
        write_public(directory / "etc" / name / "hosts", "".join(f"{line}\n" for line in lines))
        write_public(directory / "etc" / name / "hostname", f"{name}\n")
        write_public(directory / "etc" / name / "resolv.conf", "")


def _binds(directory: Path, host: str) -> list[tuple[str, str]]:
    """Bind mounts for /etc. A file that the machine lacks cannot be covered; without resolv.conf no look-up hangs."""
    return [
        (str(directory / "etc" / host / file), f"/etc/{file}") for file in _ETC_FILES if os.path.exists(f"/etc/{file}")
    ]


def _state_bind(directory: Path, cluster: Cluster, host: str) -> list[tuple[str, str]]:
    """Bind mount of the agent's files on a path open to all users, if the cluster directory is closed to them."""
    real, seen = directory / "hosts" / host, Path(cluster.state_base, host)
    if real == seen:
        return []
    for path in (real, seen):
        path.mkdir(parents=True, exist_ok=True)
    return [(str(real), str(seen))]


def make_ground(directory: Path, cluster: Cluster, table: Table) -> None:
    """Make the bridge and, unless root, the namespace it lives in."""
    lines = network.bridge_lines(cluster.id, cluster.subnet)
    if cluster.mode is Mode.ROOT:
        network.batch(lines)
    elif cluster.mode is Mode.USER:
        passage = Passage(
            argv=SLEEPER,
            environment=clean_environment(),
            unshare=["user", *KINDS],
            binds=_binds(directory, cluster.login),
            steps=[_ip_step(["link set lo up", *lines])],
        )
        starting = start("The cluster's network", passage)
        settle(table, GROUND, starting)
        confirm(starting)


def make_hosts(directory: Path, cluster: Cluster, table: Table, hosts: list[str]) -> None:
    """Make the namespaces of these hosts, all at once, and connect them to the bridge."""
    if cluster.mode is Mode.LOOPBACK or not hosts:
        return
    starting = []
    for host in hosts:
        starting.append(start(f"Host {host}", _host_passage(directory, cluster, table, host)))
        settle(table, host_key(host), starting[-1])
    problems = []
    for one in starting:
        try:
            confirm(one)
        except CommandError as error:
            problems.append(error)
    if problems:
        raise problems[0]
    numbers = [cluster.hosts.index(host) + 1 for host in hosts]
    _ip_on_ground(cluster, table, network.plug_lines(cluster.id, numbers))


def _host_passage(directory: Path, cluster: Cluster, table: Table, host: str) -> Passage:
    far_pid, kinds = os.getpid(), list[str]()
    if cluster.mode is Mode.USER:
        far_pid, kinds = _pid(table, GROUND), ["user", *KINDS]
    number = cluster.hosts.index(host) + 1
    lines = network.wire_lines(cluster.id, cluster.subnet, number, far_pid)
    return Passage(
        argv=SLEEPER,
        environment=clean_environment(),
        enter_pid=far_pid,
        enter=kinds,
        unshare=KINDS,
        hostname=host,
        binds=_binds(directory, host) + _state_bind(directory, cluster, host),
        own_shared_memory=True,
        steps=[_ip_step(lines)],
    )


def _ip_step(lines: list[str]) -> tuple[list[str], str]:
    return [network.ip_program(), "-batch", "-"], "".join(f"{line}\n" for line in lines)


def settle(table: Table, name: str, starting: Starting) -> None:
    """Record a process as soon as it exists: if this command is killed now, `down` must still find it."""
    process = identify(starting.process.pid)
    if process is not None:  # otherwise it failed already, and `confirm` reports the reason
        table.put(name, process)


def _ip_on_ground(cluster: Cluster, table: Table, lines: list[str]) -> None:
    if cluster.mode is Mode.ROOT:
        network.batch(lines)
        return
    passage = Passage(
        argv=["/bin/true"],
        environment=clean_environment(),
        enter_pid=_pid(table, GROUND),
        enter=["user", *KINDS],
        steps=[_ip_step(lines)],
    )
    run_inside("Plugging in the hosts", passage)


def residents(anchors: list[Process], kinds: tuple[str, ...] = ("net", "user")) -> list[int]:
    """Processes in these kinds of namespaces of the anchor processes, without the anchors themselves."""
    networks = _namespaces_of(anchors, "net") if "net" in kinds else set()
    users = _namespaces_of(anchors, "user") if "user" in kinds else set()
    held = {anchor.pid for anchor in anchors}
    if not networks and not users:
        return []
    return [pid for pid in all_pids() if pid not in held and _is_inside(pid, networks, users)]


def clear(anchors: list[Process], kinds: tuple[str, ...] = ("net", "user")) -> None:
    """Kill all processes in these kinds of namespaces of the anchors, then the anchors; `net` alone means one host.

    Only a living process proves that a namespace is this cluster's: the kernel reuses its number once it is gone. So
    the anchors end last.
    """
    sweep(lambda: residents(anchors, kinds))
    end(anchors, 0)


def _namespaces_of(anchors: list[Process], kind: str) -> set[int]:
    """Namespaces of this kind of the anchors, without this command's own: the machine must never be swept."""
    found = {namespace(anchor.pid, kind) for anchor in anchors if is_alive(anchor)}
    return {one for one in found if one is not None} - {namespace(os.getpid(), kind)}


def _is_inside(pid: int, networks: set[int], users: set[int]) -> bool:
    return namespace(pid, "net") in networks or any(is_within(pid, user) for user in users)
