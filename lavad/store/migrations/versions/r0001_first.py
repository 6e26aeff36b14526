"""Schema step 1: the first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _key(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, _ID, primary_key=True, autoincrement=False) for name in names]


def _numbers(*names: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.BigInteger(), nullable=False) for name in names]


def _small(name: str) -> list[sa.Column[int]]:
    return [sa.Column(name, sa.SmallInteger(), nullable=False)]


def _seconds(*names: str) -> list[sa.Column[float]]:
    return [sa.Column(name, sa.Float(53), nullable=False) for name in names]


def _words(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text(), nullable=False) for name in names]


def _bytes(*names: str) -> list[sa.Column[bytes]]:
    return [sa.Column(name, sa.LargeBinary(), nullable=False) for name in names]


def upgrade() -> None:
    """Upgrade to this revision."""
    _jobs()
    _past()
    _rest()


def _jobs() -> None:
    op.create_table(
        "specs",
        *_key("job"),
        *_words("user_name", "queue", "project", "name"),
        *_seconds("submitted_at"),
        *_words("shared"),
        *_bytes("words", "spec"),
    )
    op.create_index("specs_of_user", "specs", ["user_name", "job"])
    op.create_table(
        "jobs",
        *_key("job", "idx"),
        *_small("state"),
        *_numbers("attempts", "priority"),
        *_seconds("position"),
        *_small("resume_state"),
        *_words("postponed"),
        *_seconds("submitted_at", "ended_at"),
        *_numbers("status"),
        *_words("reason"),
        *_seconds("cpu_s"),
        *_numbers("memory_mib_max"),
        *_seconds("started_at"),
        *_numbers("pid"),
        *_words("hosts"),
        sqlite_with_rowid=False,
    )
    op.create_index("jobs_by_end", "jobs", ["ended_at"])
    op.create_table(
        "arrays",
        *_key("job"),
        *_words("indices"),
        *_numbers("run_limit"),
        *_words("pending", "held", "killed"),
        *_numbers("done", "exited", "priority"),
        *_seconds("position", "submitted_at", "ended_at"),
        sqlite_with_rowid=False,
    )
    op.create_index("arrays_by_end", "arrays", ["ended_at"])
    op.create_table(
        "allocations",
        *_key("job", "idx", "attempt"),
        *_numbers("version"),
        *_seconds("dispatched_at"),
        *_small("launched"),
        *_seconds("launch_due", "started_at"),
        *_numbers("pid"),
        *_words("hosts", "staged", "unreleased", "detail"),
        sqlite_with_rowid=False,
    )


def _past() -> None:
    op.create_table(
        "job_events",
        *_key("job", "seq"),
        *_numbers("idx", "attempt"),
        *_seconds("at"),
        *_words("kind", "detail"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "accounting",
        *_key("job", "idx", "attempt"),
        *_words("user_name", "queue", "project"),
        *_seconds("submitted_at", "dispatched_at", "started_at", "ended_at"),
        *_small("state"),
        *_numbers("status"),
        *_words("reason"),
        *_seconds("cpu_s"),
        *_numbers("memory_mib_max", "slots"),
        *_words("hosts"),
        sqlite_with_rowid=False,
    )
    op.create_index("accounting_by_end", "accounting", ["ended_at"])


def _rest() -> None:
    request_id = sa.Column("request_id", sa.LargeBinary(), primary_key=True)
    user = sa.Column("user_name", sa.Text(), primary_key=True)
    op.create_table("requests", request_id, user, *_numbers("job"), sqlite_with_rowid=False)
    name = sa.Column("name", sa.Text(), primary_key=True)
    op.create_table("hosts", name, *_words("facts", "closed_by", "comment"), sqlite_with_rowid=False)
    account = sa.Column("account", sa.Text(), primary_key=True)
    op.create_table("shares", account, *_seconds("usage_slot_s", "as_of"), sqlite_with_rowid=False)
    op.create_table(
        "reservations",
        sa.Column("name", sa.Text(), primary_key=True),
        *_words("holder"),
        *_seconds("begins_at", "ends_at"),
        *_words("hosts"),
        sqlite_with_rowid=False,
    )
    op.create_table("environments", sa.Column("hash", sa.LargeBinary(), primary_key=True), *_bytes("content"))
    op.create_table("cluster", *_key("id"), *_words("cluster_id"), *_numbers("term", "batch", "next_job"))


def downgrade() -> None:
    """Downgrade to an empty database."""
    for table in (
        "cluster",
        "environments",
        "reservations",
        "shares",
        "hosts",
        "requests",
        "accounting",
        "job_events",
        "allocations",
        "arrays",
        "jobs",
        "specs",
    ):
        op.drop_table(table)
