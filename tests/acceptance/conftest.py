"""One cluster that the tests which do not break it share, and ordinary users of this machine."""

import shutil
import signal
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster
from tests.personal.conftest import account, public_commands

__all__ = ["account", "public_commands"]  # fixtures


@pytest.fixture(scope="session", autouse=True)
def _ended_in_order() -> Iterator[None]:
    """A run ended by SIGTERM (by a time limit of make's, say) takes its clusters down like an interrupted one."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    yield
    signal.signal(signal.SIGTERM, before)


def _open_directory() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="lava-a-"))
    directory.chmod(0o1777)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def open_directory() -> Iterator[Path]:
    """A directory of this file's tests that every user may enter and write to."""
    yield from _open_directory()


@pytest.fixture(scope="session")
def shared_directory() -> Iterator[Path]:
    """One of the clusters that several files share."""
    yield from _open_directory()


@pytest.fixture(scope="session")
def shared_cluster(shared_directory: Path, public_commands: Path) -> Iterator[Cluster]:
    """Two hosts with four slots and two simulated GPUs each, of an installation that every user can run."""
    login = socket.gethostname().partition(".")[0]
    settings = {
        "LAVA_TERMINATE_INTERVAL": "1",
        "LAVA_HEARTBEAT": "1",
        "LAVA_ADMIN_HOSTS": login,  # as on real hosts; a personal cluster has its own
    }
    directory = shared_directory / "D"
    with a_cluster(directory, 2, 4, "--simulate-gpus", "2", commands=public_commands, **settings) as made:
        yield made


@pytest.fixture
def cluster(shared_cluster: Cluster) -> Cluster:
    """The shared cluster, with all its daemons."""
    shared_cluster.complete()
    return shared_cluster
