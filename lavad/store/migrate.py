"""Bring the database to this program's schema and take the next term: a master does this before it reads anything."""

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, select, text, update

from lavad.store import migrations, schema
from lavad.store.errors import StoreRefused

if TYPE_CHECKING:
    from alembic.config import Config


@dataclass(frozen=True, slots=True)
class Opened:
    """What a master learns when it opens the store. ``batch`` is the last one that was ever committed."""

    cluster_id: str
    term: int
    batch: int
    next_job: int


def upgrade(connection: Connection) -> None:
    """Run the migrations that are missing, in the open transaction.

    Raises:
        StoreRefused: the database was made by a newer program.
    """
    present = revision(connection)
    if present == migrations.HEAD:
        return
    from alembic import command  # costs a quarter of a second, and is seldom needed
    from alembic.util import CommandError

    try:
        command.upgrade(alembic_config(connection), migrations.HEAD)
    except CommandError as error:
        raise StoreRefused(f"The database has the schema {present} of a newer lava.") from error


def alembic_config(connection: Connection) -> "Config":
    """What Alembic's commands need to work in the open transaction of a connection."""
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    return config


def revision(connection: Connection) -> str:
    """The revision the database is at; empty for a new one."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    return str(connection.execute(text("SELECT version_num FROM alembic_version")).scalar() or "")


def take_term(connection: Connection) -> Opened:
    """Raise the term by one, in the open transaction. Every writer of an older term is shut out from the commit on."""
    table = schema.cluster
    if connection.execute(select(table.c.id)).first() is None:
        connection.execute(table.insert().values(id=1, cluster_id=uuid.uuid4().hex, term=0, batch=0, next_job=1))
    connection.execute(update(table).values(term=table.c.term + 1))
    row = connection.execute(select(table)).one()
    return Opened(row.cluster_id, row.term, row.batch, row.next_job)
