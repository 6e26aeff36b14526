"""Schema step 16: GPU time and user group of ended attempts, for reports of usage.

Both are found for the attempts that there are: GPU time from the devices of the allocation, the group from the job.
"""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_AT_ONCE = 5000


def upgrade() -> None:
    """Upgrade to this revision."""
    op.add_column("accounting", sa.Column("gpu_s", sa.Float(53), nullable=False, server_default="0"))
    op.add_column("accounting", sa.Column("user_group", sa.Text(), nullable=False, server_default=""))
    connection = op.get_bind()
    _fill_gpu_s(connection)
    _fill_user_group(connection)


def _fill_gpu_s(connection: sa.Connection) -> None:
    names = ("job", "idx", "attempt", "dispatched_at", "ended_at", "hosts")
    table = sa.table("accounting", *map(sa.column, (*names, "gpu_s")))
    c = table.c
    change = sa.update(table).values(gpu_s=sa.bindparam("s"))
    change = change.where(c.job == sa.bindparam("j"), c.idx == sa.bindparam("i"), c.attempt == sa.bindparam("a"))
    query = sa.select(*(c[name] for name in names)).order_by(c.job, c.idx, c.attempt).limit(_AT_ONCE)
    rows = connection.execute(query).all()
    while rows:
        used = [one for one in map(_used, rows) if one["s"]]
        if used:
            connection.execute(change, used)
        after = sa.tuple_(c.job, c.idx, c.attempt) > sa.tuple_(*rows[-1][:3])
        rows = connection.execute(query.where(after)).all()


def _used(row: Any) -> dict[str, float]:
    job, index, attempt, since, until, hosts = row
    gpus = sum(len(share[3]) for share in json.loads(hosts or "[]"))
    return {"j": job, "i": index, "a": attempt, "s": gpus * max(0.0, until - since)}


def _fill_user_group(connection: sa.Connection) -> None:
    specs = sa.table("specs", sa.column("job"), sa.column("shared"))
    table = sa.table("accounting", sa.column("job"), sa.column("user_group"))
    named = sa.and_(specs.c.shared.like('%"user_group":"%'), specs.c.shared.not_like('%"user_group":""%'))
    found = connection.execute(sa.select(specs.c.job, specs.c.shared).where(named)).all()
    change = sa.update(table).values(user_group=sa.bindparam("g")).where(table.c.job == sa.bindparam("j"))
    groups = [{"j": job, "g": json.loads(shared).get("user_group") or ""} for job, shared in found]
    if groups:
        connection.execute(change, groups)


def downgrade() -> None:
    """Downgrade to the revision before."""
    with op.batch_alter_table("accounting") as batch:
        for name in ("gpu_s", "user_group"):
            batch.drop_column(name)
