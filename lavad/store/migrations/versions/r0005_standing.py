"""Schema step 5: claims on resources besides jobs and hosts."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_table(
        "standing",
        sa.Column("kind", sa.Text(), primary_key=True),
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("content", sa.Text(), nullable=False),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Downgrade to the revision before."""
    op.drop_table("standing")
