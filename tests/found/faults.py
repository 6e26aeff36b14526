"""Faults injected while jobs run: each breaks part of a running cluster, and repairs what does not recover itself."""

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.personal import Cluster, wait_for
from tests.fakes.postgres import PostgresServer

PAUSE_S = float(os.environ.get("LAVA_FAULT_PAUSE_S", "4"))  # how long a pause or an outage lasts; 20 in full size


@dataclass
class Site:
    """A cluster to break, and its PostgreSQL where it has one."""

    cluster: Cluster
    rng: random.Random
    server: PostgresServer | None = None

    @property
    def daemons(self) -> list[str]:
        """The master and the agents, by the names of their pid files."""
        return sorted(path.stem for path in self.cluster.directory.glob("*.pid"))

    def agents(self) -> list[str]:
        """The agents of hosts that run jobs."""
        return [f"agent-{host}" for host in ("lava1", "lava2")]

    def launcher(self, agent: str) -> int:
        """The launcher of an agent."""
        return next(pid for pid in children(self.cluster.pid(agent)) if "launcher.py" in command_of(pid))

    def shepherds(self, agent: str) -> list[int]:
        """The shepherds of an agent's launcher."""
        return children(self.launcher(agent))

    def writer(self) -> int:
        """The process that writes to the database."""
        return next(pid for pid in children(self.cluster.pid("lavad")) if name_of(pid) == "lavad-writer")

    def up(self) -> None:
        """Start stopped daemons, as systemd would."""
        self.cluster.up()


Fault = Callable[[Site], None]


def children(parent: int) -> list[int]:
    """The processes that this one has started and not waited for."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and _parent_of(entry) == parent:
                found.append(int(entry.name))
    return found


def _parent_of(entry: Path) -> int:
    state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
    return int(parent) if state not in "ZX" else 0


def name_of(pid: int) -> str:
    """The name by which `ps` and `top` know a process; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def command_of(pid: int) -> str:
    """The command line of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def kill(*pids: int) -> None:
    """SIGKILL."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """SIGSTOP for a while."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


# -- killed ------------------------------------------------------------------------------------------------------------


def kill_master(site: Site) -> None:
    """SIGKILL lavad."""
    site.cluster.kill("lavad")
    site.up()


def kill_writer(site: Site) -> None:
    """SIGKILL the writer; lavad ends with it."""
    kill(site.writer())
    wait_for(lambda: not site.cluster.is_running("lavad"), 60, "lavad to end")
    site.up()


def kill_agent(site: Site) -> None:
    """SIGKILL one agent."""
    site.cluster.kill(site.rng.choice(site.agents()))
    site.up()


def kill_agents(site: Site) -> None:
    """SIGKILL both agents."""
    for agent in site.agents():
        site.cluster.kill(agent)
    site.up()


def kill_shepherds(site: Site) -> None:
    """SIGKILL some shepherds of one host."""
    found = site.shepherds(site.rng.choice(site.agents()))
    kill(*site.rng.sample(found, min(3, len(found))))


def kill_launcher(site: Site) -> None:
    """SIGKILL a launcher."""
    kill(site.launcher(site.rng.choice(site.agents())))


def kill_everything(site: Site) -> None:
    """SIGKILL all processes of lava, as fast as a loop can; jobs are left alone."""
    doomed = [site.cluster.pid("lavad"), site.writer()]
    for agent in site.agents():
        launcher = site.launcher(agent)
        doomed += [site.cluster.pid(agent), launcher, *children(launcher)]
    kill(*doomed)
    site.up()


# -- paused ------------------------------------------------------------------------------------------------------------


def pause_master(site: Site) -> None:
    """SIGSTOP lavad."""
    with stopped(site.cluster.pid("lavad")):
        time.sleep(PAUSE_S)


def pause_writer(site: Site) -> None:
    """SIGSTOP the writer."""
    with stopped(site.writer()):
        time.sleep(PAUSE_S)


def pause_agent(site: Site) -> None:
    """SIGSTOP an agent."""
    with stopped(site.cluster.pid(site.rng.choice(site.agents()))):
        time.sleep(PAUSE_S)


def pause_shepherds(site: Site) -> None:
    """SIGSTOP all shepherds of one host, for less time than the agent gives them."""
    with stopped(*site.shepherds(site.rng.choice(site.agents()))):
        time.sleep(min(PAUSE_S, 5))


# -- cut off -----------------------------------------------------------------------------------------------------------


def _ip(site: Site, agent: str, *words: str) -> None:
    """``ip`` in the network of an agent's host."""
    enter = ["nsenter", "-t", str(site.cluster.pid(agent)), "-n", "ip"]
    subprocess.run([*enter, *words], check=True, timeout=60, capture_output=True)


def cut_host(site: Site) -> None:
    """A host's link is down."""
    agent = site.rng.choice(site.agents())
    _ip(site, agent, "link", "set", "eth0", "down")
    time.sleep(PAUSE_S)
    _ip(site, agent, "link", "set", "eth0", "up")


def flap_host(site: Site) -> None:
    """A host's link goes up and down."""
    agent = site.rng.choice(site.agents())
    for _ in range(max(2, int(PAUSE_S / 2))):
        _ip(site, agent, "link", "set", "eth0", "down")
        time.sleep(0.5)
        _ip(site, agent, "link", "set", "eth0", "up")
        time.sleep(0.5)


def cut_one_way(site: Site) -> None:
    """Drop all packets of a host to the master; the other direction is open."""
    agent = site.rng.choice(site.agents())
    routes = subprocess.run(
        ["nsenter", "-t", str(site.cluster.pid(agent)), "-n", "ip", "-o", "-4", "address", "show", "dev", "eth0"],
        check=True, timeout=60, capture_output=True, text=True,
    ).stdout  # fmt: skip
    address = routes.split()[3].partition("/")[0]
    master = f"{address.rpartition('.')[0]}.254/32"
    _ip(site, agent, "route", "add", "blackhole", master)
    time.sleep(PAUSE_S)
    _ip(site, agent, "route", "del", "blackhole", master)


# -- SQLite ------------------------------------------------------------------------------------------------------------


def lock_database(site: Site) -> None:
    """Another process holds the database."""
    path = next(site.cluster.directory.rglob("lava.db"))
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
        time.sleep(PAUSE_S)
        connection.execute("ROLLBACK")
    finally:
        connection.close()


def fill_disk(site: Site) -> None:
    """The file system of the database is full for a while; it is one of the test's own."""
    path = next(site.cluster.directory.rglob("lava.db")).parent
    with contextlib.suppress(OSError), (path / "ballast").open("wb") as ballast:
        while True:
            ballast.write(bytes(1 << 16))
            ballast.flush()
    time.sleep(PAUSE_S)
    (path / "ballast").unlink()


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


def _server(site: Site) -> PostgresServer:
    assert site.server is not None
    return site.server


def stop_postgres(site: Site) -> None:
    """The server is stopped, and started again."""
    server = _server(site)
    server.stop("fast")
    time.sleep(PAUSE_S)
    server.start()


def crash_postgres(site: Site) -> None:
    """The server crashes and restarts, several times."""
    server = _server(site)
    for _ in range(3):
        server.stop("immediate")
        server.start()
        time.sleep(1)


def _sql(site: Site, text: str) -> None:
    words = ["psql", "-q", "-h", str(_server(site).directory), "-U", "lava", "-d", "postgres", "-c", text]
    program = shutil.which("psql") or "psql"
    subprocess.run([program, *words[1:]], check=True, timeout=60 + PAUSE_S, capture_output=True)


def terminate_backends(site: Site) -> None:
    """Terminate all sessions of the database, repeatedly."""
    for _ in range(int(PAUSE_S / 0.4)):
        others = "pid <> pg_backend_pid() and backend_type = 'client backend'"
        _sql(site, f"select pg_terminate_backend(pid) from pg_stat_activity where {others}")
        time.sleep(0.3)


def lock_tables(site: Site) -> None:
    """Lock the tables in another session."""
    _sql(site, f"begin; lock table jobs in access exclusive mode; select pg_sleep({PAUSE_S}); commit")


def make_read_only(site: Site) -> None:
    """The database takes no writes for a while."""
    _sql(site, "alter system set default_transaction_read_only = on")
    _sql(site, "select pg_reload_conf()")
    time.sleep(PAUSE_S)
    reset = "set default_transaction_read_only = off"
    for text in ("alter system reset default_transaction_read_only", "select pg_reload_conf()"):
        words = ["-q", "-h", str(_server(site).directory), "-U", "lava", "-d", "postgres", "-c", reset, "-c", text]
        subprocess.run(["psql", *words], check=True, timeout=60, capture_output=True)


ON_SQLITE: dict[str, tuple[Fault, int]] = {  # and how often in full size
    "SIGKILL lavad": (kill_master, 12),
    "SIGKILL writer": (kill_writer, 12),
    "SIGKILL one agent": (kill_agent, 12),
    "SIGKILL both agents": (kill_agents, 12),
    "SIGKILL shepherds": (kill_shepherds, 20),
    "SIGKILL launcher": (kill_launcher, 12),
    "SIGKILL everything of lava at once": (kill_everything, 6),
    "SIGSTOP lavad": (pause_master, 1),
    "SIGSTOP writer": (pause_writer, 1),
    "SIGSTOP agent": (pause_agent, 1),
    "SIGSTOP all shepherds of a host": (pause_shepherds, 1),
    "link down": (cut_host, 1),
    "link flapping": (flap_host, 1),
    "one way": (cut_one_way, 1),
    "SQLite BEGIN EXCLUSIVE": (lock_database, 1),
    "database disk full": (fill_disk, 2),
}
ON_POSTGRES: dict[str, tuple[Fault, int]] = {
    "PostgreSQL stopped": (stop_postgres, 1),
    "PostgreSQL crashes three times": (crash_postgres, 2),
    "pg_terminate_backend": (terminate_backends, 1),
    "ACCESS EXCLUSIVE lock": (lock_tables, 1),
    "default_transaction_read_only": (make_read_only, 1),
    "SIGKILL lavad": (kill_master, 4),
}
