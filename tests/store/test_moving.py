"""Databases that are named by private files, so that a password is neither on a command line nor in lava.conf."""

from pathlib import Path

import pytest

from lavad.maintenance import transfer
from lavad.maintenance.main import main
from lavad.store.database import database, url
from lavad.store.database.migrate import take_term, upgrade


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A database with a cluster."""
    path = tmp_path / "lava.db"
    engine = database.writing_engine(url.parse(str(path)))
    with engine.begin() as connection:
        upgrade(connection)
        take_term(connection)
    engine.dispose()
    return path


def _named(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(f"{text}\n")
    path.chmod(mode)
    return f"@{path}"


def test_a_file_names_each_database(tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The setting that is asked for is the file's, and nothing of the URL's password is printed."""
    target = _named(tmp_path / "to", f"sqlite:///{tmp_path}/other.db")
    assert main(["migrate-database", _named(tmp_path / "from", f"sqlite:///{source}"), target]) == 0
    out = capsys.readouterr().out
    assert f"Set LAVA_DATABASE_FILE={tmp_path}/to in lava.conf, and start lavad." in out
    assert (tmp_path / "other.db").exists()


def test_a_file_that_others_may_read_is_refused(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the command that mends it, before anything is opened."""
    target = _named(tmp_path / "to", "postgresql://lava:secret@127.0.0.1:1/lava", 0o644)
    assert main(["migrate-database", f"sqlite:///{source}", target]) == 1
    err = capsys.readouterr().err
    assert f"run: chmod 600 {tmp_path}/to" in err
    assert "secret@" not in err


@pytest.mark.parametrize(
    ("text", "setting", "is_seen"),
    [
        ("postgresql://lava:secret@db/lava", "LAVA_DATABASE_FILE to a file of mode 0600 with that URL", True),
        ("postgresql://lava@db/lava", "LAVA_DATABASE=postgresql+psycopg://lava@db/lava", False),
        ("@/etc/lava/database", "LAVA_DATABASE_FILE=/etc/lava/database", False),
    ],
)
def test_a_password_leads_to_a_private_file(text: str, setting: str, is_seen: bool) -> None:
    """A URL with one is never to be written into lava.conf, and one that was typed is said to have been seen."""
    where = url.parse(text if text[0] != "@" else "postgresql://lava:secret@db/lava")
    assert transfer.setting_of(text, where) == setting
    assert transfer.is_seen(text, where) is is_seen
