"""Schema step 3: queue states set by administrators (open, closed, active, inactive)."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_table(
        "queues",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("is_open", sa.SmallInteger(), nullable=False),
        sa.Column("is_active", sa.SmallInteger(), nullable=False),
        sa.Column("ruled_by", sa.Text(), nullable=False),
        sa.Column("ruled_at", sa.Float(53), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Downgrade to the revision before."""
    op.drop_table("queues")
