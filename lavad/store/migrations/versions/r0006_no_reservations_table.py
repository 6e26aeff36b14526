"""Schema step 6: drop the reservations table, never used, since reservations are rows of ``standing``."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade to this revision."""
    op.drop_table("reservations")


def downgrade() -> None:
    """Downgrade to the revision before."""
    op.create_table(
        "reservations",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("begins_at", sa.Float(53), nullable=False),
        sa.Column("ends_at", sa.Float(53), nullable=False),
        sa.Column("hosts", sa.Text(), nullable=False),
        sqlite_with_rowid=False,
    )
