"""Error messages about a PostgreSQL that does not answer: they ended in "connections?."."""

import socket
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from lavad.maintenance.main import main
from lavad.store.database import database
from lavad.store.database.migrate import take_term, upgrade


@pytest.fixture
def port() -> Iterator[int]:
    """A port of this host at which nothing listens, kept from all others meanwhile."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        yield int(door.getsockname()[1])


def test_moving_to_an_unreachable_database_is_one_clean_sentence(
    tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the database, without its password, and what the network said of it."""
    source = tmp_path / "lava.db"
    engine = database.writing_engine(database.URL.create("sqlite", database=str(source)))
    with engine.begin() as connection:
        upgrade(connection)
        take_term(connection)
    engine.dispose()
    target = f"127.0.0.1:{port}/lava"
    assert main(["migrate-database", f"sqlite:///{source}", f"postgresql://ann:secret@{target}"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        f"postgresql+psycopg://ann:***@{target} can't be opened: "
        f'connection to server at "127.0.0.1", port {port} failed: Connection refused.\n'
    )


def test_a_backup_of_an_unreachable_database_is_one_clean_sentence(
    tmp_path: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same for the other commands that work on the database."""
    lines = [f"LAVA_DATABASE=postgresql://ann@127.0.0.1:{port}/lava", f"LAVA_STATE_DIR={tmp_path}"]
    lines += ["LAVA_LISTEN=127.0.0.1:1", "LAVA_ENROL_LISTEN=127.0.0.1:2", ""]
    (tmp_path / "lava.conf").write_text("\n".join(lines))
    assert main(["backup", "--conf", str(tmp_path), str(tmp_path / "copy.db")]) == 1
    assert capsys.readouterr().err == (
        f'The database can\'t be used: connection to server at "127.0.0.1", port {port} failed: Connection refused.\n'
    )


REFUSED = 'connection to server at "::1", port 1 failed: Connection refused'
HINTED = f"connection failed: {REFUSED}\n\tIs the server running on that host and accepting TCP/IP connections?"


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (HINTED, REFUSED),
        (f"{HINTED}\nMultiple connection attempts failed. All failures were:\n- host: 'a': {HINTED}", REFUSED),
        ("failed to resolve host 'db': [Errno -2] Name not known", "failed to resolve host 'db': Name not known"),
        ("database is locked", "database is locked"),
        ("ERROR:  no such thing\nDETAIL:  none at all.", "ERROR: no such thing DETAIL: none at all"),
        ("", "OperationalError"),
    ],
)
def test_messages_of_databases_are_one_line(said: str, sentence: str) -> None:
    """The rest of a message stays."""
    assert database.sentence_of(OperationalError("SELECT 1", {}, psycopg.OperationalError(said))) == sentence
