"""Files of a personal cluster: its size and addresses in `personal.json`, its processes in `processes.json`.

The first file is written when the cluster is made and only its addresses ever change. The second names every process
started for the cluster as soon as it exists, so that `down` finds all of them after a command was killed half-way.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from lavactl.errors import CommandError
from lavactl.personal.directory import write_public
from lavactl.personal.hosts.network import MASTER_NUMBER, address_of
from lavactl.personal.processes import Process, boot_id

RECORD = "personal.json"
PROCESSES = "processes.json"
LOCK = "lock"
PEER_PORT = 6922


class Mode(Enum):
    """Kind of isolation of the hosts."""

    ROOT = "root"  # namespaces, made by root: every user of the machine may use the cluster
    USER = "user"  # namespaces inside a user namespace: for its starter only
    LOOPBACK = "loopback"  # addresses in 127/8, no namespaces


@dataclass(frozen=True, slots=True)
class Cluster:
    """A personal cluster as created; host n of `hosts` has the n-th address of `subnet`, counted from 1."""

    id: str
    mode: Mode
    hosts: tuple[str, ...]
    login: str
    slots: int
    gpus: int
    subnet: str
    master_port: int
    enrol_port: int
    run_dir: str
    state_base: str  # parent of the agents' state directories, as seen from the hosts

    @property
    def master_address(self) -> str:
        """The address of the master and of the login agent."""
        return address_of(self.subnet, MASTER_NUMBER)

    def address(self, host: str) -> str:
        """The address of a host's agent."""
        return self.master_address if host == self.login else address_of(self.subnet, self.hosts.index(host) + 1)

    def socket(self, host: str) -> Path:
        """The gateway socket of a host's agent."""
        return Path(self.run_dir, f"{host}.sock")

    @property
    def commands(self) -> Path:
        """Directory of bsub and the other commands, first on a user's PATH."""
        return Path(self.run_dir, "bin")

    @property
    def slurm_commands(self) -> Path:
        """Directory of sbatch and its kin, which is on a PATH only where it was asked for."""
        return Path(self.run_dir, "slurm")


def own_commands(directory: Path) -> Path:
    """Directory of lavactl, last on a user's PATH: it stays while the cluster is down."""
    return directory / "bin"


def load(directory: Path) -> Cluster | None:
    """Cluster in this directory; None if there is none, CommandError if its record is damaged."""
    try:
        found: dict[str, Any] = json.loads((directory / RECORD).read_text(encoding="utf-8"))
        return Cluster(**{**found, "mode": Mode(found["mode"]), "hosts": tuple(found["hosts"])})
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise CommandError(f"{directory / RECORD} cannot be used: {error}.") from error


def save(directory: Path, cluster: Cluster) -> None:
    """Write the record."""
    values = asdict(cluster) | {"mode": cluster.mode.value, "hosts": list(cluster.hosts)}
    write_public(directory / RECORD, json.dumps(values, indent=1) + "\n")


def existing(directory: Path) -> Cluster:
    """Cluster in this directory, which must be this user's; CommandError otherwise."""
    cluster = load(directory)
    if cluster is None:
        raise CommandError(f"There is no personal cluster in {directory}; make one with lavactl up --dir {directory}")
    owner = (directory / RECORD).stat().st_uid
    if owner != os.geteuid():
        raise CommandError(
            f"The cluster in {directory} belongs to user id {owner}; only that user can start or stop it."
        )
    return cluster


class Table:
    """Process table of a cluster, by name: `ground`, `host NAME`, `lavad`, `agent NAME`."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / PROCESSES
        self._entries = self._read()

    def _read(self) -> dict[str, Process]:
        try:
            found: dict[str, dict[str, Any]] = json.loads(self._path.read_text(encoding="utf-8"))
            entries = {name: Process(**fields) for name, fields in found.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError) as error:
            raise CommandError(f"{self._path} cannot be used: {error}.") from error
        boot = boot_id()
        return {name: process for name, process in entries.items() if process.boot_id == boot}

    def get(self, name: str) -> Process | None:
        """Process last started under this name, alive or not."""
        return self._entries.get(name)

    def names(self) -> list[str]:
        """All names, in start order."""
        return list(self._entries)

    def put(self, name: str, process: Process) -> None:
        """Record a process durably, for a `down` after this command was killed."""
        self._entries.pop(name, None)
        self._entries[name] = process
        self._write()

    def forget(self, *names: str) -> None:
        """Drop names of ended processes."""
        for name in names:
            self._entries.pop(name, None)
        self._write()

    def _write(self) -> None:
        values = {name: asdict(process) for name, process in self._entries.items()}
        write_public(self._path, json.dumps(values, indent=1) + "\n")


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock that admits one `up` or `down` of a cluster at a time; CommandError at once if it is taken."""
    try:
        descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise CommandError(f"{directory / LOCK} cannot be opened: {error.strerror}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise CommandError(f"Another lavactl up or down is at work on {directory}.") from error
    finally:
        os.close(descriptor)
