"""Databases for the store's tests: a fresh one each, SQLite always and PostgreSQL where it is installed."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.fakes.postgres import PostgresServer

_numbers = count(1)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for all tests that need no server of their own."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """A new, empty PostgreSQL database."""
    return postgres_server.make_database(f"lava{next(_numbers)}")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new, empty database, once of each kind."""
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_url")
        return url
    return f"sqlite:///{tmp_path}/lava.db"
