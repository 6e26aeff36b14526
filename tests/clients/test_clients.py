"""Each client of ``../shared/clients`` against a personal cluster, run by an ordinary user: `make test-clients`.

A client is a program ``run-NAME`` that makes a virtual environment with the released client in it, drives the commands
that are first in PATH through it, and exits with 0 if every result is right.
"""

import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import open_directory
from tests.acceptance.personal import Cluster, a_cluster
from tests.personal.conftest import account, public_commands
from tests.personal.people import is_open

__all__ = ["account", "open_directory", "public_commands"]
CLIENTS = Path(__file__).resolve().parents[3] / "shared" / "clients"
NAMES = sorted(path.name.removeprefix("run-") for path in CLIENTS.glob("run-*"))
WORK_S, INSTALL_S = 300, 900
# A developer's own Python may lie in a closed home.
PYTHON = sys.executable if is_open(Path(sys.executable)) else "/usr/bin/python3"

pytestmark = [
    pytest.mark.acceptance,
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(not os.environ.get("LAVA_CLIENTS"), reason="only by make test-clients"),
    pytest.mark.skipif(not NAMES, reason="the clients are not beside the repository (../shared)"),
]


@pytest.fixture(scope="module")
def cluster(open_directory: Path, public_commands: Path) -> Iterator[Cluster]:
    """Two hosts of four slots."""
    with a_cluster(open_directory / "C", 2, 4, commands=public_commands) as made:
        yield made


@pytest.fixture
def addresses(cluster: Cluster, open_directory: Path) -> Iterator[dict[str, str]]:
    """Addresses of the login host as jobs see it, and of the only host that is open meanwhile.

    At the login host no table of names has the hosts of a personal cluster.
    """
    first, second = cluster.hosts()
    cluster.run("badmin", "hclose", second)
    told = open_directory / "addresses"
    names = f"{socket.gethostname()} {first}"
    job = cluster.submit("-o", str(told), f"for name in {names}; do echo at:$(getent hosts $name); done")
    cluster.becomes(job, "DONE")
    hub, notebook = [line[3:].split()[0] for line in told.read_text().splitlines() if line.startswith("at:")]
    yield {"HUB_ADDR": hub, "NB_ADDR": notebook}
    cluster.run("badmin", "hopen", second)


@pytest.mark.parametrize("client", NAMES)
def test_the_client_runs(
    cluster: Cluster, client: str, account: str, open_directory: Path, request: pytest.FixtureRequest
) -> None:
    """All its results are right."""
    user = pwd.getpwnam(account)
    scratch = open_directory / f"client-{client}"
    scratch.mkdir()
    os.chown(scratch, user.pw_uid, user.pw_gid)
    environment = {**cluster.environment, "HOME": user.pw_dir, "USER": account, "LOGNAME": account}
    environment |= {"SCRATCH": str(scratch), "PYTHON": PYTHON, "LIMIT": str(WORK_S)}
    if client == "batchspawner":
        environment |= request.getfixturevalue("addresses")
    done = subprocess.run(
        ["runuser", "-u", account, "--", CLIENTS / f"run-{client}"],
        env=environment,
        cwd=user.pw_dir,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WORK_S + INSTALL_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-4000:]}"
