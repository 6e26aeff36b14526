"""Start and stop of a personal cluster; a stopped cluster leaves nothing outside its directory.

`up` is idempotent and starts exactly the missing parts; size and state stay. `down` ends every process that was ever
started for the cluster, found by pid and start time or by its namespaces. Nothing restarts by itself.
"""

import os
import random
import shutil
import time
from dataclasses import replace
from pathlib import Path

from lavactl.errors import CommandError
from lavactl.personal import daemons
from lavactl.personal import directory as files
from lavactl.personal.create import addresses
from lavactl.personal.hosts import cgroups, namespaces, network
from lavactl.personal.path_dir import LAVACTL, link_commands, link_slurm
from lavactl.personal.processes import Process, is_alive, mentioning, sweep
from lavactl.personal.state_file import Cluster, Mode, Table, own_commands, save
from protos.trust.roles import TrustError
from protos.trust.tickets import Entry, read_ticket

# A ticket is only read when a host joins; it is renewed when less than this time is left.
TICKET_LEFT_S = 86400.0


def bring_up(directory: Path, cluster: Cluster) -> Cluster:
    """Start the missing parts; returns the cluster with its present addresses."""
    table = Table(directory)
    if not _ground_stands(cluster, table):
        # Remaining processes are cut off from the network that is made now.
        take_down(directory, cluster)
        table = Table(directory)
        cluster = _make_ground(directory, cluster, table)
    _make_run_dir(directory, cluster)
    _rebuild_hosts(directory, cluster, table)
    _freshen_tickets(directory, cluster)
    gone = {daemons.agent_key(host) for host in daemons.removed(directory, cluster)}
    missing = [name for name in daemons.missing(cluster, table) if name not in gone]
    daemons.start_all(directory, cluster, table, missing)
    return cluster


def _housed(cluster: Cluster) -> tuple[str, ...]:
    return () if cluster.mode is Mode.LOOPBACK else cluster.hosts


def _ground_stands(cluster: Cluster, table: Table) -> bool:
    match cluster.mode:
        case Mode.ROOT:
            return network.bridge_name(cluster.id) in network.existing_links(cluster.id)
        case Mode.USER:
            return is_alive(table.get(namespaces.GROUND))
        case Mode.LOOPBACK:
            return any(is_alive(table.get(name)) for name in daemons.all_names(cluster))


def _make_ground(directory: Path, cluster: Cluster, table: Table) -> Cluster:
    """Make the network of a cluster that is entirely down; its addresses change if others have taken them since."""
    if cluster.mode is Mode.ROOT:
        cluster = _with_free_subnet(cluster)
    namespaces.write_etc(directory, cluster)
    namespaces.make_ground(directory, cluster, table)
    if cluster.mode is not Mode.USER:
        master_port = network.free_port(cluster.master_address, network.PORT_BASE)
        enrol_port = network.free_port(cluster.master_address, master_port + 1)
        cluster = replace(cluster, master_port=master_port, enrol_port=enrol_port)
    now = {f"LAVA_{name.upper()}": address for name, address in addresses(cluster).items()}
    if any(files.read_settings(directory).get(name) != address for name, address in now.items()):
        files.change_settings(directory, now)
        _make_tickets(directory, cluster)
    save(directory, cluster)
    return cluster


def _with_free_subnet(cluster: Cluster) -> Cluster:
    taken = network.taken_networks()
    if any(network.Network(cluster.subnet).overlaps(other) for other in taken):
        return replace(cluster, subnet=network.choose_subnet(taken, random.Random()))
    return cluster


def _rebuild_hosts(directory: Path, cluster: Cluster, table: Table) -> None:
    """Make the namespaces of hosts whose holder process is gone; left-over processes of crashed ones end first."""
    missing = [host for host in _housed(cluster) if not is_alive(table.get(namespaces.host_key(host)))]
    crashed = [host for host in missing if table.get(namespaces.host_key(host))]
    if crashed:
        _bury(directory, cluster, table, crashed)
    namespaces.make_hosts(directory, cluster, table, missing)


def _bury(directory: Path, cluster: Cluster, table: Table, hosts: list[str]) -> None:
    agents = [daemons.agent_key(host) for host in hosts]
    namespaces.clear([process for name in agents if (process := table.get(name)) and is_alive(process)], ("net",))
    daemons.stop(directory, table, agents)
    daemons.end_jobs(directory, cluster, table, hosts)
    for host in hosts:
        cgroups.clear_host(cluster.id, host)
    if cluster.mode is Mode.ROOT:
        wires = {network.wire_name(cluster.id, cluster.hosts.index(host) + 1) for host in hosts}
        network.remove_links(wires & set(network.existing_links(cluster.id)))


def _make_run_dir(directory: Path, cluster: Cluster) -> None:
    run = Path(cluster.run_dir)
    try:
        run.mkdir(exist_ok=True)
        # In a directory writable by all, another user may have taken the name first.
        if run.is_symlink() or run.stat().st_uid != os.geteuid():
            raise CommandError(f"{run} belongs to someone else; remove it and try again.")
        run.chmod(0o755)
        link_commands(cluster.commands, stub_socket=str(cluster.socket(cluster.login)))
        link_slurm(cluster.slurm_commands, str(cluster.socket(cluster.login)))
        (cluster.commands / "lavactl").unlink(missing_ok=True)  # an older version put it there
        link_commands(own_commands(directory), LAVACTL)
    except OSError as error:
        raise CommandError(f"{run} cannot be made: {error.strerror}.") from error


def _freshen_tickets(directory: Path, cluster: Cluster) -> None:
    """Make tickets anew if one is missing, damaged or about to expire."""
    soon = time.time() + TICKET_LEFT_S
    try:
        if all(read_ticket(daemons.ticket_path(directory, host)).expires > soon for host in _everyone(cluster)):
            return
    except TrustError:
        pass  # missing or damaged: replaced below
    _make_tickets(directory, cluster)


def _make_tickets(directory: Path, cluster: Cluster) -> None:
    """Make a ticket for each host, valid for its name only; it replaces a certificate lost with the host's state."""
    entries = {
        daemons.ticket_path(directory, host).name: Entry(0.0, host, replaces=True) for host in _everyone(cluster)
    }
    files.new_tickets(directory, entries, files.TICKET_DAYS)


def _everyone(cluster: Cluster) -> tuple[str, ...]:
    return (cluster.login, *cluster.hosts)


def take_down(directory: Path, cluster: Cluster) -> str:
    """End every process of the cluster and remove what it left outside its directory. State stays.

    Returns a sentence for the user if jobs had to be ended without a record; otherwise an empty string.
    """
    table = Table(directory)
    everyone = [cluster.login, *cluster.hosts]
    # The master first, so that it does not refill the slots of the jobs that end next.
    daemons.stop(directory, table, [daemons.MASTER])
    daemons.stop(directory, table, [daemons.agent_key(host) for host in everyone])
    note = ""
    try:
        daemons.end_jobs(directory, cluster, table, everyone)
    except CommandError as error:
        # With namespaces or control groups every remaining process can be found and ended; without them it cannot.
        if cluster.mode is Mode.LOOPBACK:
            raise
        note = str(error)
    finally:
        _clear(directory, cluster, table)
    return note


def _launched(directory: Path) -> set[int]:
    """Launchers and shepherds of the cluster, by their command line: the only trace without namespaces."""
    return mentioning(b"launcher.py") & mentioning(f"{directory}/hosts/".encode())


def _sleepers(cluster: Cluster, table: Table) -> list[Process]:
    names = [namespaces.GROUND, *(namespaces.host_key(host) for host in cluster.hosts)]
    return [process for name in names if (process := table.get(name)) and is_alive(process)]


def _clear(directory: Path, cluster: Cluster, table: Table) -> None:
    """Kill remaining processes by control group and namespace; then remove the network and the run directory."""
    cgroups.clear(cluster.id)
    namespaces.clear(_sleepers(cluster, table))
    if cluster.mode is Mode.LOOPBACK:
        sweep(lambda: _launched(directory))
    table.forget(namespaces.GROUND, *(namespaces.host_key(host) for host in cluster.hosts))
    if cluster.mode is Mode.ROOT:
        network.remove_links(network.existing_links(cluster.id))
    shutil.rmtree(cluster.run_dir, ignore_errors=True)


def purge(directory: Path) -> None:
    """Remove the directory of a cluster that is down, with its state."""
    try:
        shutil.rmtree(directory)
    except OSError as error:
        raise CommandError(f"{directory} cannot be removed: {error.strerror}.") from error
