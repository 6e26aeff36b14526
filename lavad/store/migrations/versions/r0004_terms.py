"""Schema step 4: start conditions of a pending job, namely dependency and begin time."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_TABLES = ("jobs", "arrays")


def upgrade() -> None:
    """Upgrade to this revision."""
    for table in _TABLES:
        op.add_column(table, sa.Column("waits", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Downgrade to the revision before."""
    for table in _TABLES:
        with op.batch_alter_table(table) as batch:
            batch.drop_column("waits")
