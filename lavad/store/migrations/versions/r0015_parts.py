"""Schema step 15: elements of arrays that were changed by themselves."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Upgrade to this revision."""
    op.add_column("jobs", sa.Column("part", sa.BigInteger(), nullable=False, server_default="0"))
    op.create_table(
        "parts",
        *[sa.Column(name, _ID, primary_key=True, autoincrement=False) for name in ("job", "part")],
        *[sa.Column(name, sa.Text(), nullable=False) for name in ("queue", "project", "name", "shared")],
        *[sa.Column(name, sa.LargeBinary(), nullable=False) for name in ("words", "spec")],
    )


def downgrade() -> None:
    """Downgrade to the revision before: elements have the parameters of their arrays again."""
    op.drop_table("parts")
    with op.batch_alter_table("jobs") as batch:
        batch.drop_column("part")
