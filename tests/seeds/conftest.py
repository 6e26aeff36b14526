"""The cluster of the seed rows: three hosts with two slots and two simulated GPUs each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import _ended_in_order, shared_directory
from tests.acceptance.personal import a_cluster
from tests.personal.conftest import account, public_commands
from tests.seeds.site import Site

__all__ = ["_ended_in_order", "account", "public_commands", "shared_directory"]

SETTINGS = {
    "LAVA_TERMINATE_INTERVAL": "1",
    "LAVA_HEARTBEAT": "1",
    "LAVA_SILENT_AFTER": "6",
    "LAVA_AVOID_HOST": "2",
    "LAVA_PREEMPTION": "requeue",
}
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

    Begin Queue
    QUEUE_NAME = short
    PRIORITY = 35
    End Queue
"""
PARAMETERS = "Begin Parameters\nDEFAULT_QUEUE = normal\nEnd Parameters\n"


@pytest.fixture(scope="session")
def shared_site(shared_directory: Path, public_commands: Path) -> Iterator[Site]:
    """A cluster that the tests which do not break it share."""
    directory = shared_directory / "S"
    files = {"lsb.queues": QUEUES, "lsb.params": PARAMETERS}
    with a_cluster(
        directory, 3, 2, "--simulate-gpus", "2", commands=public_commands, lsf_files=files, **SETTINGS
    ) as made:
        yield Site(made, shared_directory)


@pytest.fixture
def site(shared_site: Site, tmp_path: Path) -> Iterator[Site]:
    """The shared cluster, empty; after the test its jobs are ended."""
    shared_site.cluster.complete()
    yield shared_site.in_folder(tmp_path)
    shared_site.cluster.clear()
