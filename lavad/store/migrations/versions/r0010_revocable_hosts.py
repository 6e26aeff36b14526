"""Schema step 10: notices of hosts that are taken away, and usage by class of host."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade to this revision."""
    op.add_column("hosts", sa.Column("revoked_at", sa.Float(53), nullable=False, server_default="0"))
    for name in ("slot_s", "revocable_slot_s"):
        op.add_column("accounting", sa.Column(name, sa.Float(53), nullable=False, server_default="0"))


def downgrade() -> None:
    """Downgrade to the revision before."""
    with op.batch_alter_table("accounting") as batch:
        for name in ("slot_s", "revocable_slot_s"):
            batch.drop_column(name)
    with op.batch_alter_table("hosts") as batch:
        batch.drop_column("revoked_at")
