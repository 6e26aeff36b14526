"""Daemons of a personal cluster: the master, one agent a host, and the login agent for this machine's users.

They are the same programs with the same options as on real hosts. Several daemons are started at once, since each
spends its first second importing.
"""

import os
import time
from pathlib import Path

from lavactl.errors import CommandError
from lavactl.personal.hosts import cgroups, namespaces
from lavactl.personal.hosts.namespace_exec import Passage
from lavactl.personal.processes import Process, end, is_alive
from lavactl.personal.readiness import Awaited, last_words, listen, wait_all
from lavactl.personal.starting import clean_environment, confirm, program, start
from lavactl.personal.state_file import PEER_PORT, Cluster, Table
from protos import gpu_vendors
from protos.trust.certificates import Register
from protos.trust.roles import TrustError, join_address

MASTER = "lavad"
READY_S = 60.0
# A master writes its last batch, an agent closes its journal: milliseconds, longer only on an overloaded machine.
END_PATIENCE_S = 10.0

# Paths of a user's own driver libraries and programs, and switches of tests: death at a chosen point, no control
# groups.
PASSED_ON = ("LAVA_FAIL", "LAVA_NO_CGROUPS", *gpu_vendors.CONTROLS, "LD_LIBRARY_PATH")


def agent_key(host: str) -> str:
    """Name of a host's agent in the process table."""
    return f"agent {host}"


def all_names(cluster: Cluster) -> list[str]:
    """Names of all daemons of the cluster."""
    return [MASTER, *(agent_key(host) for host in (cluster.login, *cluster.hosts))]


def missing(cluster: Cluster, table: Table) -> list[str]:
    """Names of daemons that do not run."""
    return [name for name in all_names(cluster) if not is_alive(table.get(name))]


def removed(directory: Path, cluster: Cluster) -> frozenset[str]:
    """Hosts that an administrator removed from the cluster permanently, by ``badmin hremove``."""
    try:
        register = Register(directory)
    except TrustError as error:
        raise CommandError(str(error)) from error
    now = time.time()
    return frozenset(
        host
        for host in cluster.hosts
        if register.host_revoked_at(host) and not any(one.is_valid(now) for one in register.of_host(host))
    )


def log_path(directory: Path, name: str) -> Path:
    """Path of a daemon's log."""
    return directory / "log" / f"{name.replace(' ', '-')}.log"


def pid_path(directory: Path, name: str) -> Path:
    """The daemon's pid file."""
    return directory / f"{name.replace(' ', '-')}.pid"


def state_path(directory: Path, host: str) -> Path:
    """The state directory of a host's agent."""
    return directory / "hosts" / host


def ticket_path(directory: Path, host: str) -> Path:
    """Path of the join ticket of a host's agent."""
    return directory / f"ticket.{host}"


def start_all(directory: Path, cluster: Cluster, table: Table, names: list[str]) -> None:
    """Start these daemons and wait until each reports readiness."""
    awaited = [listen(name, _notify_path(cluster, name), log_path(directory, name)) for name in names]
    try:
        for one in awaited:
            one.starting = start(one.name, _passage(directory, cluster, table, one))
            namespaces.settle(table, one.name, one.starting)
        for one in awaited:
            if one.starting is not None:
                confirm(one.starting)
        wait_all(awaited, READY_S)
    finally:
        for one in awaited:
            one.close()


def _notify_path(cluster: Cluster, name: str) -> Path:
    return Path(cluster.run_dir, f"notify-{all_names(cluster).index(name)}")


def _passage(directory: Path, cluster: Cluster, table: Table, one: Awaited) -> Passage:
    host = cluster.login if one.name == MASTER else one.name.removeprefix("agent ")
    pid, kinds = namespaces.entrance(cluster, table, host)
    argv = _master_argv(directory) if one.name == MASTER else _agent_argv(directory, cluster, host)
    environment = clean_environment() | {"NOTIFY_SOCKET": str(one.path)}
    environment |= {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    groups = []
    if one.name != MASTER:
        environment |= {"LAVA_BINDIR": str(cluster.commands), "LAVA_ENVDIR": str(directory)}
        environment["LAVA_HOSTS_OF_MACHINE"] = str(len(cluster.hosts))
        groups = cgroups.make(cluster.id, host)
    return Passage(argv, environment, enter_pid=pid, enter=kinds, groups=groups, log=str(one.log))


def _master_argv(directory: Path) -> list[str]:
    return program("lavad", "--conf", str(directory), "--pid-file", str(pid_path(directory, MASTER)))


def _agent_argv(directory: Path, cluster: Cluster, host: str) -> list[str]:
    is_login = host == cluster.login
    options = {
        "--master": join_address(cluster.master_address, cluster.master_port),
        "--ticket": str(ticket_path(directory, host)),
        "--name": host,
        "--state": str(state_path(directory, host) if is_login else Path(cluster.state_base, host)),
        "--socket": str(cluster.socket(host)),
        "--slots": str(0 if is_login else cluster.slots),
        "--peer-listen": join_address(cluster.address(host), PEER_PORT),
        "--pid-file": str(pid_path(directory, agent_key(host))),
    }
    if cluster.gpus and not is_login:
        options["--simulate-gpus"] = str(cluster.gpus)
    flat = [word for option in options.items() for word in option]
    return program("agents", *flat, *(["--login"] if is_login else []))


def check_running(directory: Path, cluster: Cluster) -> None:
    """CommandError, with the end of its log, if a daemon of the cluster has ended."""
    gone = {agent_key(host) for host in removed(directory, cluster)}
    for name in missing(cluster, Table(directory)):
        if name in gone:
            continue
        raise CommandError(f"{name} ended at once{last_words(log_path(directory, name))}")


def stop(directory: Path, table: Table, names: list[str]) -> None:
    """End these daemons by SIGTERM, after a timeout by SIGKILL. Jobs keep running."""
    found: list[Process] = [process for name in names if (process := table.get(name)) is not None]
    end(found, END_PATIENCE_S)
    for name in names:
        pid_path(directory, name).unlink(missing_ok=True)
    table.forget(*names)


def end_jobs(directory: Path, cluster: Cluster, table: Table, hosts: list[str]) -> None:
    """End jobs and their shepherds, which outlive agents by design, on hosts whose agents do not run."""
    starting = []
    for host in hosts:
        if state_path(directory, host).is_dir():
            argv = program("agents", "--shutdown", "--state", str(state_path(directory, host)))
            log = str(log_path(directory, agent_key(host)))
            groups = cgroups.make(cluster.id, host)
            pid, kinds = namespaces.entrance_if_open(cluster, table, host)
            passage = Passage(argv, clean_environment(), enter_pid=pid, enter=kinds, groups=groups, log=log)
            starting.append((host, start(f"The end of {host}", passage)))
    failed = []
    for host, one in starting:
        confirm(one)
        if one.process.wait() != 0:
            failed.append(host)
    if failed:
        raise CommandError(
            f"Jobs on {failed[0]} were not ended in order{last_words(log_path(directory, agent_key(failed[0])))}"
        )
