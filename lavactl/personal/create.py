"""Creation of a personal cluster: everything that is decided once, written down, and kept for its life.

No process runs yet when this is done; `life` starts them.
"""

import os
import random
import secrets
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path

from lavactl.errors import CommandError
from lavactl.personal import directory as files
from lavactl.personal import site_files
from lavactl.personal.hosts import namespaces, network
from lavactl.personal.path_dir import closed_to_others
from lavactl.personal.site_files import SiteFiles
from lavactl.personal.state_file import Cluster, Mode, save
from protos.conffile import CLUSTER_NAME
from protos.trust.roles import TrustError, check_host_name, join_address

SOCKET_PATH_MAX = 100  # the kernel's 108, less a margin
# Single labels without a dot: no name server resolves them, and the hosts' own /etc/hosts does.
HOST_PREFIXES = ("lava", "host")


@dataclass(frozen=True, slots=True)
class Wishes:
    """Parameters of a new cluster."""

    hosts: int
    slots: int
    gpus: int
    database: str | None
    lsf_files: SiteFiles | None = None  # a site's own configuration, to be copied


def make(directory: Path, wishes: Wishes, user: str) -> Cluster:
    """Make a new cluster in an empty or missing directory; no process runs yet."""
    mode = namespaces.probe()
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
        run_dir=(run_dir := _run_dir(directory, identity, max(len(login), len(f"{prefix}{wishes.hosts}")))),
        state_base=_state_base(directory, mode, run_dir),
    )
    settings = files.Settings(
        cluster=_name_of_cluster(wishes, user),
        administrators=user,
        database=wishes.database or "",
        more={
            "LAVA_SOCKET": str(cluster.socket(login)),
            "LAVA_LOGIN_HOSTS": login,
            "LAVA_ADMIN_HOSTS": " ".join((login, *cluster.hosts)),  # one user's own machine: jobs may submit jobs
        },
        **addresses(cluster),
    )
    files.create(directory, settings)
    if wishes.lsf_files is not None:
        site_files.copy(wishes.lsf_files, directory)
    for name, mode_bits in (("log", 0o755), ("hosts", 0o755)):
        files.make_directory(directory / name, mode_bits)
    save(directory, cluster)
    return cluster


def _name_of_cluster(wishes: Wishes, user: str) -> str:
    """Name of the site whose files are copied, otherwise the user's."""
    named = wishes.lsf_files.cluster if wishes.lsf_files is not None else ""
    if CLUSTER_NAME.fullmatch(named):
        return named
    return f"personal-{user}"[:39] if user.isascii() and user.isalnum() else "personal"


def _free_subnet(rng: random.Random) -> str:
    return network.choose_subnet(network.taken_networks(), rng)


def _login_name() -> str:
    name = socket.gethostname().partition(".")[0]
    try:
        return check_host_name(name)
    except TrustError:
        return "login"


def _check_database_is_near(url: str | None, mode: Mode) -> None:
    """Refuse a database on loopback without root: the master's own network cannot reach this machine's loopback."""
    if (
        url is not None
        and mode is Mode.USER
        and url.startswith("postgres")
        and "host=/" not in url
        and "@/" not in url
        and ":///" not in url
    ):
        raise CommandError(
            "--db: without root the cluster has a network of its own; reach PostgreSQL by its Unix socket: "
            "postgresql+psycopg://USER@/NAME?host=/var/run/postgresql"
        )


def _run_dir(directory: Path, identity: str, name_length: int) -> str:
    """Directory of sockets and commands: open to all users for root's cluster, and short enough for a socket path."""
    if os.geteuid() == 0:
        return f"/run/lava-{identity}"
    near = directory / "run"
    if len(str(near)) + name_length + len("/.sock") <= SOCKET_PATH_MAX:
        return str(near)
    return f"{tempfile.gettempdir()}/lava-{os.geteuid()}-{identity}"


def _state_base(directory: Path, mode: Mode, run_dir: str) -> str:
    """Parent of the agents' state directories as jobs see it: another one if the directory is closed to other users."""
    if mode is Mode.ROOT and closed_to_others(directory):
        return f"{run_dir}/state"
    return str(directory / "hosts")


def addresses(cluster: Cluster) -> dict[str, str]:
    """Settings derived from the cluster's addresses."""
    address = join_address(cluster.master_address, cluster.master_port)
    return {
        "master": address,
        "listen": address,
        "enrol_listen": join_address(cluster.master_address, cluster.enrol_port),
    }
