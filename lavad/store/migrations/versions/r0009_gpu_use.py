"""Schema step 9: use of GPUs by ended jobs and attempts."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_TABLES = ("jobs", "accounting")


def upgrade() -> None:
    """Upgrade to this revision."""
    for table in _TABLES:
        op.add_column(table, sa.Column("gpus", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Downgrade to the revision before."""
    for table in _TABLES:
        with op.batch_alter_table(table) as batch:
            batch.drop_column("gpus")
