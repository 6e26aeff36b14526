"""Fixtures of the MPI tests: one personal cluster for all of them, and each available MPI."""

import shutil
from collections.abc import Iterator

import pytest

from tests.mpi import environments
from tests.mpi.cluster import PersonalCluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[PersonalCluster]:
    """Two hosts, two slots each."""
    if shutil.which("ip") is None:
        pytest.skip("no program ip (package iproute2), so no hosts of their own")
    with PersonalCluster() as running:
        yield running


@pytest.fixture(params=environments.NAMES)
def mpi(request: pytest.FixtureRequest) -> environments.Mpi:
    """Each MPI that can be had here."""
    try:
        return environments.mpi(request.param)
    except environments.Missing as missing:
        pytest.skip(f"{request.param}: {missing}")


@pytest.fixture(params=["mpich4", "mpich5"])
def mpich(request: pytest.FixtureRequest) -> environments.Mpi:
    """Each MPICH that can be had here."""
    try:
        return environments.mpi(request.param)
    except environments.Missing as missing:
        pytest.skip(f"{request.param}: {missing}")
