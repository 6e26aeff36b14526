"""Tables, declared once for both databases. A change here needs a migration beside it; a test compares the two.

Ids are 64 bits wide, times are seconds since the epoch as floats, an index of 0 means "not an array", and 0 in a time
column means "not yet". Values in queries are columns; values that are only read back are JSON or bytes. The rows of a
job that change often (``jobs``) are apart from those of its submission (``specs``), so that a state change writes few
bytes.
"""

from sqlalchemy import BigInteger, Column, Float, Index, Integer, LargeBinary, MetaData, SmallInteger, Table, Text

metadata = MetaData()
ID = BigInteger().with_variant(Integer(), "sqlite")  # only INTEGER makes SQLite's row number the key


def _number(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _seconds(name: str) -> Column[float]:
    return Column(name, Float(53), nullable=False)


def _mean(name: str) -> Column[float]:
    return Column(name, Float(53), nullable=False)


def _words(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _part_of_key(name: str) -> Column[int]:
    return Column(name, ID, primary_key=True, autoincrement=False)


def _table(name: str, *columns: Column[int] | Column[float] | Column[str] | Column[bytes] | Index) -> Table:
    """Create a table that SQLite keeps in the order of its key: one tree instead of two."""
    return Table(name, metadata, *columns, sqlite_with_rowid=False)


# One row, id 1: the term that may write, and the number of the last committed batch.
cluster = Table(
    "cluster",
    metadata,
    _part_of_key("id"),
    _words("cluster_id"),
    _number("term"),
    _number("batch"),
    _number("next_job"),
)

# Submissions: one row for a job or an array. ``spec`` stays last: readers of other columns never touch its pages.
specs = Table(
    "specs",
    metadata,
    _part_of_key("job"),
    _words("user_name"),
    _words("queue"),
    _words("project"),
    _words("name"),
    _seconds("submitted_at"),
    _words("shared"),
    Column("words", LargeBinary, nullable=False),
    Column("spec", LargeBinary, nullable=False),
    Index("specs_of_user", "user_name", "job"),
)

# What elements of an array have instead that were changed by themselves; each has the number of its part in ``jobs``.
# Rows of parts that no element has any more stay until the array is removed.
parts = Table(
    "parts",
    metadata,
    _part_of_key("job"),
    _part_of_key("part"),
    _words("queue"),
    _words("project"),
    _words("name"),
    _words("shared"),
    Column("words", LargeBinary, nullable=False),
    Column("spec", LargeBinary, nullable=False),
)

# The job made by each request id, so that a retried submission gets the same answer.
requests = _table(
    "requests",
    Column("request_id", LargeBinary, primary_key=True),
    Column("user_name", Text, primary_key=True),
    _number("job"),
    Index("requests_of_job", "job"),
)

# Present state: one row for a plain job, and for each element that was ever dispatched or changed by itself.
jobs = _table(
    "jobs",
    _part_of_key("job"),
    _part_of_key("idx"),
    Column("state", SmallInteger, nullable=False),
    _number("attempts"),
    _number("priority"),
    _seconds("position"),
    _seconds("aged_from"),
    Column("resume_state", SmallInteger, nullable=False),
    _words("postponed"),
    _seconds("submitted_at"),
    _seconds("ended_at"),
    _number("status"),
    _words("reason"),
    _seconds("cpu_s"),
    _number("memory_mib_max"),
    _seconds("started_at"),
    _number("pid"),
    _words("hosts"),
    _seconds("user_s"),
    _seconds("system_s"),
    _mean("memory_mib_mean"),
    _words("places"),
    _words("gpus"),
    _words("waits"),
    _number("part"),
    Index("jobs_by_end", "ended_at"),
)

# Arrays as sets of indices. Elements in none of pending, held and killed have a row in ``jobs``.
arrays = _table(
    "arrays",
    _part_of_key("job"),
    _words("indices"),
    _number("run_limit"),
    _words("pending"),
    _words("held"),
    _words("killed"),
    _number("done"),
    _number("exited"),
    _number("priority"),
    _seconds("position"),
    _seconds("aged_from"),
    _seconds("submitted_at"),
    _seconds("ended_at"),
    _words("waits"),
    Index("arrays_by_end", "ended_at"),
)

# History for bhist; job 0 has that of hosts and queues. ``seq`` grows with the batch number, so a repeated batch finds
# its own rows.
job_events = _table(
    "job_events",
    _part_of_key("job"),
    _part_of_key("seq"),
    _number("idx"),
    _number("attempt"),
    _seconds("at"),
    _words("kind"),
    _words("detail"),
    Index("job_events_by_seq", "seq"),
)

# Attempts that some host has not released yet.
allocations = _table(
    "allocations",
    _part_of_key("job"),
    _part_of_key("idx"),
    _part_of_key("attempt"),
    _number("version"),
    _seconds("dispatched_at"),
    Column("launched", SmallInteger, nullable=False),
    _seconds("launch_due"),
    _seconds("started_at"),
    _number("pid"),
    _words("hosts"),
    _words("staged"),
    _words("unreleased"),
    _words("detail"),
)

# Tasks of jobs of tasks, and what such a job has been through; of an ended job as they were at its end.
tasks = _table(
    "tasks",
    _part_of_key("job"),
    _part_of_key("idx"),
    _part_of_key("role"),
    _part_of_key("number"),
    _number("attempt"),
    _number("run"),
    Column("phase", SmallInteger, nullable=False),
    _words("host"),
    _words("ports"),
    _number("pid"),
    _seconds("started_at"),
    _seconds("ended_at"),
    _number("status"),
    _words("reason"),
    _words("detail"),
)
task_jobs = _table("task_jobs", _part_of_key("job"), _part_of_key("idx"), _words("content"))

# Messages that were posted to jobs, by number. ``data`` stays last, as ``spec`` does.
job_messages = Table(
    "job_messages",
    metadata,
    _part_of_key("job"),
    _part_of_key("idx"),
    _part_of_key("number"),
    _seconds("at"),
    _words("user_name"),
    _words("text"),
    _words("level"),
    _number("size"),
    Column("data", LargeBinary, nullable=False),
)

# One row for each ended attempt; ``state`` is the job's state after it: DONE, EXIT, or pending again.
accounting = _table(
    "accounting",
    _part_of_key("job"),
    _part_of_key("idx"),
    _part_of_key("attempt"),
    _words("user_name"),
    _words("queue"),
    _words("project"),
    _seconds("submitted_at"),
    _seconds("dispatched_at"),
    _seconds("started_at"),
    _seconds("ended_at"),
    Column("state", SmallInteger, nullable=False),
    _number("status"),
    _words("reason"),
    _seconds("cpu_s"),
    _number("memory_mib_max"),
    _number("slots"),
    _words("hosts"),
    _seconds("user_s"),
    _seconds("system_s"),
    _mean("memory_mib_mean"),
    _words("gpus"),
    _seconds("slot_s"),
    _seconds("revocable_slot_s"),
    _seconds("gpu_s"),
    _words("user_group"),
    Index("accounting_by_end", "ended_at"),
)

# Hosts that ever joined, with their administrative state.
hosts = _table(
    "hosts",
    Column("name", Text, primary_key=True),
    _words("facts"),
    _words("closed_by"),
    _words("comment"),
    _seconds("revoked_at"),
    _seconds("noticed_at"),
)

# Administrative states of queues. A queue may be removed from the files and come back.
queues = _table(
    "queues",
    Column("name", Text, primary_key=True),
    Column("is_open", SmallInteger, nullable=False),
    Column("is_active", SmallInteger, nullable=False),
    _words("ruled_by"),
    _seconds("ruled_at"),
    _words("comment"),
)

# Decayed usage of each share account as of a time; times of slots and devices.
shares = _table(
    "shares",
    Column("account", Text, primary_key=True),
    _seconds("cpu_s"),
    _seconds("run_s"),
    _seconds("gpu_s"),
    _seconds("as_of"),
)

# Claims on resources besides jobs and hosts, by kind and name. The content is JSON.
standing = _table(
    "standing",
    Column("kind", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    _words("content"),
)

# Environments shared by many jobs, by their hash.
environments = Table(
    "environments",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
