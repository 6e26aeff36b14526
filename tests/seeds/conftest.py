"""The cluster of the seed rows: three hosts with two slots and two simulated GPUs each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import _ended_in_order, open_directory
from tests.acceptance.personal import a_cluster
from tests.personal.conftest import account, public_commands
from tests.seeds.site import Site

__all__ = ["_ended_in_order", "account", "open_directory", "public_commands"]

SETTINGS = {"LAVA_TERMINATE_INTERVAL": "1", "LAVA_HEARTBEAT": "1", "LAVA_SILENT_AFTER": "6"}


@pytest.fixture(scope="session")
def shared_site(open_directory: Path, public_commands: Path) -> Iterator[Site]:
    """A cluster that the tests which do not break it share."""
    directory = open_directory / "S"
    with a_cluster(directory, 3, 2, "--simulate-gpus", "2", commands=public_commands, **SETTINGS) as made:
        yield Site(made, open_directory)


@pytest.fixture
def site(shared_site: Site, tmp_path: Path) -> Iterator[Site]:
    """The shared cluster, empty; after the test its jobs are ended."""
    shared_site.cluster.up()
    yield shared_site.in_folder(tmp_path)
    shared_site.cluster.clear()
