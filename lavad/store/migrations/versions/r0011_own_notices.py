"""Schema step 11: notices that hosts give of themselves, beside those of administrators."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade to this revision."""
    op.add_column("hosts", sa.Column("noticed_at", sa.Float(53), nullable=False, server_default="0"))


def downgrade() -> None:
    """Downgrade to the revision before."""
    with op.batch_alter_table("hosts") as batch:
        batch.drop_column("noticed_at")
