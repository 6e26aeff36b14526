"""Schema step 14: messages that were posted to jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_table(
        "job_messages",
        *[sa.Column(name, _ID, primary_key=True, autoincrement=False) for name in ("job", "idx", "number")],
        sa.Column("at", sa.Float(53), nullable=False),
        *[sa.Column(name, sa.Text(), nullable=False) for name in ("user_name", "text", "level")],
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
    )


def downgrade() -> None:
    """Downgrade to the revision before."""
    op.drop_table("job_messages")
