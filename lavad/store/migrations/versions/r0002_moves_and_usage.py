"""Schema step 2: aging time of pending jobs; usage of share accounts by kind."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_SECONDS = sa.Float(53)


def upgrade() -> None:
    """Upgrade to this revision."""
    for name in ("jobs", "arrays"):
        op.add_column(name, sa.Column("aged_from", _SECONDS, nullable=False, server_default="0"))
        table = sa.table(name, sa.column("aged_from"), sa.column("submitted_at"))
        op.execute(sa.update(table).values(aged_from=table.c.submitted_at))
    op.drop_table("shares")  # it was never used
    account = sa.Column("account", sa.Text(), primary_key=True)
    kinds = [sa.Column(name, _SECONDS, nullable=False) for name in ("cpu_s", "run_s", "gpu_s", "as_of")]
    op.create_table("shares", account, *kinds, sqlite_with_rowid=False)


def downgrade() -> None:
    """Downgrade to the revision before."""
    op.drop_table("shares")
    account = sa.Column("account", sa.Text(), primary_key=True)
    kinds = [sa.Column(name, _SECONDS, nullable=False) for name in ("usage_slot_s", "as_of")]
    op.create_table("shares", account, *kinds, sqlite_with_rowid=False)
    for name in ("jobs", "arrays"):
        with op.batch_alter_table(name) as batch:
            batch.drop_column("aged_from")
