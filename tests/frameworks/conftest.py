"""The cluster of the frameworks: three hosts of two slots, and a queue that may take slots from elastic jobs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import _ended_in_order, shared_directory
from tests.acceptance.personal import a_cluster
from tests.frameworks import environments
from tests.personal.conftest import account, public_commands
from tests.seeds.site import Site

__all__ = ["_ended_in_order", "account", "public_commands", "shared_directory"]

QUEUES = """
    Begin Queue
    QUEUE_NAME = urgent
    PRIORITY = 50
    PREEMPTION = PREEMPTIVE[normal]
    End Queue

    Begin Queue
    QUEUE_NAME = normal
    PRIORITY = 30
    End Queue
"""
PARAMETERS = "Begin Parameters\nDEFAULT_QUEUE = normal\nEnd Parameters\n"


@pytest.fixture(scope="session")
def shared_site(shared_directory: Path, public_commands: Path) -> Iterator[Site]:
    """A cluster for all frameworks."""
    files = {"lsb.queues": QUEUES, "lsb.params": PARAMETERS}
    settings = {"LAVA_TERMINATE_INTERVAL": "1", "LAVA_HEARTBEAT": "1"}
    with a_cluster(shared_directory / "F", 3, 2, commands=public_commands, lsf_files=files, **settings) as made:
        yield Site(made, shared_directory)


@pytest.fixture
def site(shared_site: Site, tmp_path: Path) -> Iterator[Site]:
    """The cluster, empty; after the test its jobs are ended."""
    yield shared_site.in_folder(tmp_path)
    shared_site.cluster.clear()


@pytest.fixture
def programs(request: pytest.FixtureRequest) -> Path:
    """Programs of the framework that the test's marker names; the test is left out where it cannot be had."""
    name = request.node.get_closest_marker("framework").args[0]
    try:
        return environments.programs(name)
    except environments.Missing as missing:
        pytest.skip(str(missing))
