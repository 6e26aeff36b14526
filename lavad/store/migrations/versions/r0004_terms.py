"""What keeps a waiting job from being started: dependency condition and begin time."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_TABLES = ("jobs", "arrays")


def upgrade() -> None:
    """To this revision."""
    for table in _TABLES:
        op.add_column(table, sa.Column("waits", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    """Back to the revision before."""
    for table in _TABLES:
        with op.batch_alter_table(table) as batch:
            batch.drop_column("waits")
