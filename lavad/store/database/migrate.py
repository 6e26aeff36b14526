"""Schema upgrade and the next term: done by a master before it reads anything."""

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Column, Connection, MetaData, String, Table, inspect, select, text, update

from lavad.store import migrations, schema
from lavad.store.errors import StoreRefused

if TYPE_CHECKING:
    from alembic.config import Config


@dataclass(frozen=True, slots=True)
class Opened:
    """State of an opened database; ``batch`` is the last one ever committed."""

    cluster_id: str
    term: int
    batch: int
    next_job: int


def upgrade(connection: Connection) -> None:
    """Make the tables of a new database, or run the missing migrations, in the open transaction.

    Raises:
        StoreRefused: a newer program made the database.
    """
    present = revision(connection)
    if not present:
        make(connection)
    elif present != migrations.HEAD:
        run_migrations(connection, present)


def make(connection: Connection) -> None:
    """Make all tables of a new database as they are now: what the migrations, one after the other, lead to."""
    schema.metadata.create_all(connection, checkfirst=False)
    alembics = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True, nullable=False))
    alembics.create(connection)
    connection.execute(alembics.insert().values(version_num=migrations.HEAD))


def run_migrations(connection: Connection, present: str) -> None:
    """Run the migrations that follow the present revision in the open transaction.

    Raises:
        StoreRefused: a newer program made the database.
    """
    from alembic import command  # takes a quarter of a second, and is seldom needed
    from alembic.util import CommandError

    try:
        command.upgrade(alembic_config(connection), migrations.HEAD)
    except CommandError as error:
        raise StoreRefused(f"The database has the schema {present} of a newer lava.") from error


def alembic_config(connection: Connection) -> "Config":
    """Configure Alembic's commands to use the open transaction of a connection."""
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def revision(connection: Connection) -> str:
    """Return the revision of the database; empty for a new one."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or "")


def take_term(connection: Connection) -> Opened:
    """Raise the term by one in the open transaction; its commit shuts out every writer of an older term."""
    table = schema.cluster
    if connection.execute(select(table.c.id)).first() is None:
        connection.execute(table.insert().values(id=1, cluster_id=uuid.uuid4().hex, term=0, batch=0, next_job=1))
    connection.execute(update(table).values(term=table.c.term + 1))
    row = connection.execute(select(table)).one()
    return Opened(row.cluster_id, row.term, row.batch, row.next_job)
