"""Schema step 12: the history in the order in which it was written, for LSF's logs."""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade to this revision."""
    op.create_index("job_events_by_seq", "job_events", ["seq"])


def downgrade() -> None:
    """Downgrade to the revision before."""
    op.drop_index("job_events_by_seq", "job_events")
