"""Opening a database: its location, permissions and schema, and the sentence on failure."""

import asyncio
import os
import stat
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, inspect, text

from lavad.store import migrations, schema
from lavad.store.database import database, files, migrate, url
from lavad.store.errors import StoreRefused
from lavad.store.store import Store
from tests.store.saving import durable, events_batch, opened

MOUNTS = r"""22 1 254:1 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /srv rw - nfs4 server:/srv rw
31 30 0:41 / /srv/local\040disk rw - xfs /dev/vdb rw
32 22 0:42 / /mnt/ssh rw - fuse.sshfs host:/ rw
33 22 0:43 / /box rw - overlay overlay rw
34 33 0:44 / /box rw - fuse.fuse-overlayfs overlay rw
"""


@pytest.mark.parametrize(
    ("given", "driver", "name"),
    [
        ("/var/lib/lava/lava.db", "sqlite", "/var/lib/lava/lava.db"),
        ("sqlite:////var/lib/lava.db", "sqlite", "/var/lib/lava.db"),
        ("postgresql://lava@db/lava", "postgresql+psycopg", "lava"),
        ("postgres://lava@db/lava", "postgresql+psycopg", "lava"),
        ("postgresql+psycopg://lava@db/lava?passfile=/etc/lava/pgpass", "postgresql+psycopg", "lava"),
    ],
)
def test_the_databases_a_site_may_name(given: str, driver: str, name: str) -> None:
    """A path, SQLite and PostgreSQL are understood."""
    parsed = url.parse(given)
    assert (parsed.drivername, parsed.database) == (driver, name)


@pytest.mark.parametrize(
    "given", ["", "lava.db", "sqlite:///lava.db", "sqlite://", "mysql://db/lava", "://", "a://b:c"]
)
def test_other_databases_are_refused_in_one_sentence(given: str) -> None:
    """Any other URL is refused with a sentence about LAVA_DATABASE."""
    with pytest.raises(StoreRefused, match=r"^LAVA_DATABASE [^\n]*\.$"):
        url.parse(given)


def test_a_password_is_never_shown() -> None:
    """Logs and messages show the URL without its password."""
    assert "secret" not in url.shown(url.parse("postgresql://lava:secret@db/lava"))


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/lava.db", "ext4"),
        ("/srv/lava.db", "nfs4"),
        ("/srvx/lava.db", "ext4"),
        ("/srv/local disk/lava.db", "xfs"),
        ("/mnt/ssh/lava.db", "fuse.sshfs"),
        ("/box/lava.db", "fuse.fuse-overlayfs"),
    ],
)
def test_the_file_system_of_a_path(path: str, kind: str) -> None:
    """The longest mount point counts, and of several at one place the last."""
    assert files.file_system_of(Path(path), MOUNTS) == kind


@pytest.mark.parametrize("path", ["/srv/lava.db", "/mnt/ssh/lava.db"])
def test_network_file_systems_are_refused(path: str) -> None:
    """SQLite's log needs shared memory and reliable locks, which these do not guarantee."""
    with pytest.raises(StoreRefused, match="network file system"):
        files.refuse_network(Path(path), MOUNTS)
    files.refuse_network(Path("/box/lava.db"), MOUNTS)


def _modes(directory: Path) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in directory.iterdir()}


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    """The file, its log and its shared memory are private from the start, also when the file was there before."""
    path = tmp_path / "lava.db"
    path.touch(0o644)

    async def run() -> None:
        async with opened(str(path)) as store:
            await durable(store, events_batch(1))
            modes = _modes(tmp_path)
            assert set(modes) == {"lava.db", "lava.db-wal", "lava.db-shm", "lava.db.lock"}
            assert set(modes.values()) == {0o600}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("no/such/lava.db", r"^.*/no/such/lava\.db can't be opened: No such file or directory\.$"),
        ("", r"^.* can't be opened: Is a directory\.$"),
    ],
)
def test_a_path_that_can_not_be_opened(tmp_path: Path, name: str, sentence: str) -> None:
    """One sentence, no traceback."""
    with pytest.raises(StoreRefused, match=sentence):
        asyncio.run(Store.open(f"{tmp_path}/{name}", pytest.fail))


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """A file with other content is refused and left as it is, with its permissions; no file is put beside it. It may
    have been named by mistake, and be another's.
    """
    path = tmp_path / "lava.db"
    path.write_text("Dear diary, " * 1000)
    path.chmod(0o644)
    with pytest.raises(StoreRefused, match="it is not a database of lava"):
        asyncio.run(Store.open(str(path), pytest.fail))
    assert path.read_text() == "Dear diary, " * 1000
    assert _modes(tmp_path) == {"lava.db": 0o644}


def test_what_is_no_file_is_left_as_it_is(tmp_path: Path) -> None:
    """A device or a pipe belongs to others."""
    path = tmp_path / "lava.db"
    os.mkfifo(path)
    path.chmod(0o666)
    with pytest.raises(StoreRefused, match="it is no regular file"):
        asyncio.run(Store.open(str(path), pytest.fail))
    assert _modes(tmp_path) == {"lava.db": 0o666}


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    """PostgreSQL that does not answer: one sentence."""
    with pytest.raises(StoreRefused, match=r"^The database can't be opened: [^\n]*\.$"):
        asyncio.run(Store.open(f"postgresql://lava@/lava?host={tmp_path}", pytest.fail))


def test_migrations_lead_to_the_schema(database_url: str) -> None:
    """The migrations result in schema.py's tables, in both databases, and the downgrade leaves nothing."""
    where = url.parse(database_url)
    if database.is_sqlite(where):
        files.make_private(database.path_of(where))
    engine = database.writing_engine(where)
    with engine.begin() as connection:
        migrate.run_migrations(connection, "")
        migrate.upgrade(connection)
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, schema.metadata) == []
        assert migrate.revision(connection) == migrations.HEAD
    with engine.begin() as connection:
        from alembic import command

        config = migrate.alembic_config(connection)
        command.downgrade(config, "base")
        assert inspect(connection).get_table_names() == ["alembic_version"]
    engine.dispose()


def test_a_new_database_is_like_a_migrated_one(database_url: str) -> None:
    """Its tables are made at once, with the columns, keys, indexes and revision that all migrations lead to."""
    where = url.parse(database_url)
    if database.is_sqlite(where):
        files.make_private(database.path_of(where))
    engine = database.writing_engine(where)
    with engine.begin() as connection:
        migrate.run_migrations(connection, "")
        migrated = _look(connection)
        schema.metadata.drop_all(connection)
        connection.execute(text("DROP TABLE alembic_version"))
        assert inspect(connection).get_table_names() == []
    with engine.begin() as connection:
        migrate.upgrade(connection)
        made = _look(connection)
        assert migrate.revision(connection) == migrations.HEAD
    engine.dispose()
    assert made == migrated


def _look(connection: Connection) -> dict[str, object]:
    """All that is known of a database's tables but the order of columns and defaults for rows that were there."""
    tables = inspect(connection)
    found: dict[str, object] = {}
    for name in tables.get_table_names():
        columns = {one["name"]: (repr(one["type"]), one["nullable"]) for one in tables.get_columns(name)}
        indexes = {str(one["name"]): (one["column_names"], one["unique"]) for one in tables.get_indexes(name)}
        keys = tables.get_pk_constraint(name)["constrained_columns"]
        others = [
            tables.get_unique_constraints(name),
            tables.get_foreign_keys(name),
            tables.get_check_constraints(name),
        ]
        options = tables.get_table_options(name)
        found[name] = (columns, indexes, keys, others, options)
    return found


def test_the_newest_revision_is_named() -> None:
    """HEAD, which spares most starts the import of Alembic, is really the newest."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [migrations.HEAD]


def test_a_newer_programs_database_is_refused(database_url: str) -> None:
    """An older program does not touch a newer one's database."""

    async def run() -> None:
        async with opened(database_url):
            pass
        engine = create_engine(url.parse(database_url))
        with engine.begin() as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        engine.dispose()
        with pytest.raises(StoreRefused, match="schema 9999 of a newer lava"):
            await Store.open(database_url, pytest.fail)

    asyncio.run(run())
