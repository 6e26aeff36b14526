"""Schema step 8: tasks of jobs of several roles."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_KEY = ("job", "idx", "role", "number")


def _of_key(name: str) -> "sa.Column[int]":
    return sa.Column(name, _ID, primary_key=True, autoincrement=False)


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_table(
        "tasks",
        *[_of_key(name) for name in _KEY],
        *[sa.Column(name, sa.BigInteger(), nullable=False) for name in ("attempt", "run")],
        sa.Column("phase", sa.SmallInteger(), nullable=False),
        *[sa.Column(name, sa.Text(), nullable=False) for name in ("host", "ports")],
        sa.Column("pid", sa.BigInteger(), nullable=False),
        *[sa.Column(name, sa.Float(53), nullable=False) for name in ("started_at", "ended_at")],
        sa.Column("status", sa.BigInteger(), nullable=False),
        *[sa.Column(name, sa.Text(), nullable=False) for name in ("reason", "detail")],
        sqlite_with_rowid=False,
    )
    op.create_table(
        "task_jobs",
        _of_key("job"),
        _of_key("idx"),
        sa.Column("content", sa.Text(), nullable=False),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Downgrade to the revision before."""
    op.drop_table("task_jobs")
    op.drop_table("tasks")
