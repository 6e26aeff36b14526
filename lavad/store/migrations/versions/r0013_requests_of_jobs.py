"""Schema step 13: the request of a job, found when its records are removed."""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_index("requests_of_job", "requests", ["job"])


def downgrade() -> None:
    """Downgrade to the revision before."""
    op.drop_index("requests_of_job", "requests")
