"""Schema step 7: detailed resource usage of a job on all its hosts, and its execution directories."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_FIGURES = ("user_s", "system_s", "memory_mib_mean")


def upgrade() -> None:
    """Upgrade to this revision."""
    for name in _FIGURES:
        for table in ("jobs", "accounting"):
            op.add_column(table, sa.Column(name, sa.Float(53), nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("places", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Downgrade to the revision before."""
    with op.batch_alter_table("jobs") as batch:
        for name in (*_FIGURES, "places"):
            batch.drop_column(name)
    with op.batch_alter_table("accounting") as batch:
        for name in _FIGURES:
            batch.drop_column(name)
