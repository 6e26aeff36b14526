"""The life of a personal cluster: made, started where it is not running, stopped without a trace outside its directory.

`up` may be repeated at any time and starts exactly what is missing; size and state stay. `down` ends everything that
was ever started for the cluster, found by pid and start time or by living in its namespaces. Nothing restarts by
itself.
"""

import os
import random
import secrets
import shutil
import socket
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from lavactl.errors import CommandError
from lavactl.personal import cells, daemons, ground, network
from lavactl.personal import directory as files
from lavactl.personal.processes import Process, identify, is_alive, wait_until_collected
from lavactl.personal.record import Cluster, Mode, Table, save
from lavactl.personal.toolbox import link_commands
from protos.tickets import read_ticket
from protos.tls import TrustError, check_host_name, join_address

SOCKET_PATH_MAX = 100  # the kernel's 108, less some room
HOST_PREFIXES = ("lava", "host")
# The ticket is only read when a host joins; it is renewed when less than this is left of it.
TICKET_LEFT_S = 86400.0
# How long init may take to collect what has ended.
COLLECTED_S = 5.0


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a new cluster is to be."""

    hosts: int
    slots: int
    gpus: int
    database: str | None


def make(directory: Path, wishes: Wishes, user: str) -> Cluster:
    """A new cluster in an empty or missing directory; nothing runs yet."""
    files.check_database(wishes.database)
    mode = ground.probe()
    _check_database_is_near(wishes.database, mode)
    identity = secrets.token_hex(3)
    rng = random.Random(identity)
    subnet = network.loopback_subnet(rng) if mode is Mode.LOOPBACK else _free_subnet(rng)
    login = _login_name()
    prefix = next(prefix for prefix in HOST_PREFIXES if not login.startswith(prefix))
    cluster = Cluster(
        id=identity,
        mode=mode,
        hosts=tuple(f"{prefix}{number}" for number in range(1, wishes.hosts + 1)),
        login=login,
        slots=wishes.slots,
        gpus=wishes.gpus,
        subnet=subnet,
        master_port=network.PORT_BASE,
        enrol_port=network.PORT_BASE + 1,
        run_dir=_run_dir(directory, identity, max(len(login), len(f"{prefix}{wishes.hosts}"))),
    )
    settings = files.Settings(
        cluster=f"personal-{user}"[:39] if user.isascii() and user.isalnum() else "personal",
        administrators=user,
        database=wishes.database or "",
        more={"LAVA_SOCKET": str(cluster.socket(login)), "LAVA_LOGIN_HOSTS": login},
        **_addresses(cluster),
    )
    files.create(directory, settings)
    for name, mode_bits in (("log", 0o755), ("hosts", 0o755)):
        files.make_directory(directory / name, mode_bits)
    save(directory, cluster)
    return cluster


def _free_subnet(rng: random.Random) -> str:
    return network.choose_subnet(network.taken_networks(), rng)


def _login_name() -> str:
    name = socket.gethostname().partition(".")[0]
    try:
        return check_host_name(name)
    except TrustError:
        return "login"


def _check_database_is_near(url: str | None, mode: Mode) -> None:
    """Without root the master lives in a network of its own, from where this machine's loopback cannot be reached."""
    if (
        url is not None
        and mode is Mode.USER
        and url.startswith("postgresql")
        and "host=/" not in url
        and "@/" not in url
        and ":///" not in url
    ):
        raise CommandError(
            "--db: without root the cluster has a network of its own; reach PostgreSQL by its Unix socket: "
            "postgresql+psycopg://USER@/NAME?host=/var/run/postgresql"
        )


def _run_dir(directory: Path, identity: str, name_length: int) -> str:
    """Where sockets and commands are: open to all users for root's cluster, with a path short enough for a socket."""
    if os.geteuid() == 0:
        return f"/run/lava-{identity}"
    near = directory / "run"
    if len(str(near)) + name_length + len("/.sock") <= SOCKET_PATH_MAX:
        return str(near)
    return f"{tempfile.gettempdir()}/lava-{os.geteuid()}-{identity}"


def _addresses(cluster: Cluster) -> dict[str, str]:
    address = join_address(cluster.master_address, cluster.master_port)
    return {
        "master": address,
        "listen": address,
        "enrol_listen": join_address(cluster.master_address, cluster.enrol_port),
    }


def bring_up(directory: Path, cluster: Cluster) -> Cluster:
    """Start what does not run; gives the cluster with the addresses it has now."""
    table = Table(directory)
    missing = daemons.missing(cluster, table)
    if not missing and all(is_alive(table.get(ground.host_key(host))) for host in _housed(cluster)):
        _make_run_dir(cluster)
        return cluster
    if not _ground_stands(cluster, table):
        # Whatever is left of it is cut off from what will be made now.
        take_down(directory, cluster)
        table = Table(directory)
        cluster = _make_ground(directory, cluster, table)
    _make_run_dir(cluster)
    _rebuild_hosts(directory, cluster, table)
    _freshen_ticket(directory)
    daemons.start_all(directory, cluster, table, daemons.missing(cluster, table))
    return cluster


def _housed(cluster: Cluster) -> tuple[str, ...]:
    return () if cluster.mode is Mode.LOOPBACK else cluster.hosts


def _ground_stands(cluster: Cluster, table: Table) -> bool:
    match cluster.mode:
        case Mode.ROOT:
            return network.bridge_name(cluster.id) in network.existing_links(cluster.id)
        case Mode.USER:
            return is_alive(table.get(ground.GROUND))
        case Mode.LOOPBACK:
            return any(is_alive(table.get(name)) for name in daemons.all_names(cluster))


def _make_ground(directory: Path, cluster: Cluster, table: Table) -> Cluster:
    """Nothing of the cluster runs, so its addresses may change, and do when others have taken them since."""
    if cluster.mode is Mode.ROOT:
        cluster = _with_free_subnet(cluster)
    ground.write_etc(directory, cluster)
    ground.make_ground(directory, cluster, table)
    if cluster.mode is not Mode.USER:
        master_port = network.free_port(cluster.master_address, network.PORT_BASE)
        enrol_port = network.free_port(cluster.master_address, master_port + 1)
        cluster = replace(cluster, master_port=master_port, enrol_port=enrol_port)
    addresses = _addresses(cluster)
    now = {f"LAVA_{name.upper()}": address for name, address in addresses.items()}
    if any(files.read_settings(directory).get(name) != address for name, address in now.items()):
        files.change_settings(directory, now)
        files.new_ticket(directory)
    save(directory, cluster)
    return cluster


def _with_free_subnet(cluster: Cluster) -> Cluster:
    taken = network.taken_networks()
    if any(network.Network(cluster.subnet).overlaps(other) for other in taken):
        return replace(cluster, subnet=network.choose_subnet(taken, random.Random()))
    return cluster


def _rebuild_hosts(directory: Path, cluster: Cluster, table: Table) -> None:
    """Hosts whose sleeper is gone: if they ever had one they have crashed, and what is left of them ends first."""
    missing = [host for host in _housed(cluster) if not is_alive(table.get(ground.host_key(host)))]
    crashed = [host for host in missing if table.get(ground.host_key(host))]
    if crashed:
        _bury(directory, cluster, table, crashed)
    ground.make_hosts(directory, cluster, table, missing)


def _bury(directory: Path, cluster: Cluster, table: Table, hosts: list[str]) -> None:
    agents = [daemons.agent_key(host) for host in hosts]
    ground.clear([process for name in agents if (process := table.get(name)) and is_alive(process)])
    daemons.stop(directory, table, agents)
    daemons.end_jobs(directory, hosts)
    for host in hosts:
        cells.clear_host(cluster.id, host)
    if cluster.mode is Mode.ROOT:
        wires = {network.wire_name(cluster.id, cluster.hosts.index(host) + 1) for host in hosts}
        network.remove_links(wires & set(network.existing_links(cluster.id)))


def _make_run_dir(cluster: Cluster) -> None:
    run = Path(cluster.run_dir)
    try:
        run.mkdir(exist_ok=True)
        # In a directory that all may write to, the name may have been taken by someone else first.
        if run.is_symlink() or run.stat().st_uid != os.geteuid():
            raise CommandError(f"{run} belongs to someone else; remove it and try again.")
        run.chmod(0o755)
        link_commands(cluster.commands)
    except OSError as error:
        raise CommandError(f"{run} cannot be made: {error.strerror}.") from error


def _freshen_ticket(directory: Path) -> None:
    try:
        if read_ticket(directory / "ticket").expires > time.time() + TICKET_LEFT_S:
            return
    except TrustError:
        pass  # missing or damaged: a new one mends that
    files.new_ticket(directory)


def take_down(directory: Path, cluster: Cluster) -> None:
    """End every process of the cluster and remove what it left outside its directory. State stays."""
    table = Table(directory)
    everyone = [cluster.login, *cluster.hosts]
    present = _present(cluster, table)
    # The master first, so that it does not fill the slots of the jobs that end next.
    daemons.stop(directory, table, [daemons.MASTER])
    daemons.stop(directory, table, [daemons.agent_key(host) for host in everyone])
    try:
        daemons.end_jobs(directory, everyone)
    finally:
        _clear(cluster, table)
        wait_until_collected(present, COLLECTED_S)


def _present(cluster: Cluster, table: Table) -> list[Process]:
    """Every process of the cluster now, as far as anything tells."""
    known = [process for name in table.names() if (process := table.get(name)) and is_alive(process)]
    others = {*cells.members(cluster.id), *ground.residents(_sleepers(cluster, table))}
    return known + [process for pid in others if (process := identify(pid))]


def _sleepers(cluster: Cluster, table: Table) -> list[Process]:
    names = [ground.GROUND, *(ground.host_key(host) for host in cluster.hosts)]
    return [process for name in names if (process := table.get(name)) and is_alive(process)]


def _clear(cluster: Cluster, table: Table) -> None:
    """Whatever is left, by what it lives in: control groups, namespaces; then the network and the run directory."""
    cells.clear(cluster.id)
    ground.clear(_sleepers(cluster, table))
    table.forget(ground.GROUND, *(ground.host_key(host) for host in cluster.hosts))
    if cluster.mode is Mode.ROOT:
        network.remove_links(network.existing_links(cluster.id))
    shutil.rmtree(cluster.run_dir, ignore_errors=True)


def purge(directory: Path) -> None:
    """Remove the directory of a cluster that is down, with its state."""
    try:
        shutil.rmtree(directory)
    except OSError as error:
        raise CommandError(f"{directory} cannot be removed: {error.strerror}.") from error
