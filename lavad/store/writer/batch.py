"""Batch of rows from one or more steps of the master: whole rows by key, later ones replace earlier ones.

A batch holds tuples of plain values in the column order of ``schema``, ready for marshal. A merged batch has the same
effect as its parts written one after the other.
"""

import marshal

Value = int | float | str | bytes
Row = tuple[Value, ...]

# Tables in the order of writing, and so the order of their rows in a packed batch.
UPSERTS = (
    "specs", "jobs", "arrays", "allocations", "hosts", "queues", "standing", "shares", "accounting",
    "tasks", "task_jobs", "job_messages", "parts",
)  # fmt: skip
INSERTS = ("requests", "environments", "job_events")  # the first row of a key stays

FORGOTTEN = ("allocations", "standing", "hosts", "environments")  # tables from which rows are deleted

# Tables from which the rows of purged jobs are deleted, in this order: those of a line when the lines before are empty.
PURGED = (
    ("job_events", "accounting", "tasks", "task_jobs", "job_messages"),
    ("jobs",),
    ("arrays", "requests", "parts", "specs"),
)
PURGED_AT_ONCE = 100  # rows of one job in one table


class Batch:
    """Rows to write, and keys to delete.

    ``allocations`` maps an attempt, ``standing`` a kind and a name, ``hosts`` a name, ``environments`` a hash to a row,
    or to None if the row is to be deleted; ``events`` lack their ``seq``. Of the jobs in ``purged`` the next rows are
    deleted, at most PURGED_AT_ONCE in each table.
    """

    __slots__ = (
        "accounting",
        "allocations",
        "arrays",
        "environments",
        "events",
        "hosts",
        "job_messages",
        "jobs",
        "next_job",
        "parts",
        "purged",
        "queues",
        "requests",
        "shares",
        "specs",
        "standing",
        "task_jobs",
        "tasks",
    )

    def __init__(self) -> None:
        self.specs: dict[int, Row] = {}
        self.requests: dict[tuple[bytes, str], Row] = {}
        self.jobs: dict[tuple[int, int], Row] = {}
        self.arrays: dict[int, Row] = {}
        self.events: list[Row] = []
        self.allocations: dict[tuple[int, int, int], Row | None] = {}
        self.accounting: dict[tuple[int, int, int], Row] = {}
        self.hosts: dict[str, Row | None] = {}
        self.queues: dict[str, Row] = {}
        self.shares: dict[str, Row] = {}
        self.environments: dict[bytes, Row | None] = {}
        self.standing: dict[tuple[str, str], Row | None] = {}
        self.tasks: dict[tuple[int, int, int, int], Row] = {}
        self.task_jobs: dict[tuple[int, int], Row] = {}
        self.job_messages: dict[tuple[int, int, int], Row] = {}
        self.parts: dict[tuple[int, int], Row] = {}
        self.purged: list[int] = []
        self.next_job = 0  # 0: no job was submitted

    def __bool__(self) -> bool:
        return bool(
            self.events
            or self.jobs
            or self.allocations
            or self.hosts
            or self.queues
            or self.environments
            or self.arrays
            or self.specs
            or self.requests
            or self.accounting
            or self.standing
            or self.shares
            or self.task_jobs
            or self.job_messages
            or self.parts
            or self.purged
        )

    def merge(self, later: "Batch") -> None:
        """Merge a later batch into this one."""
        self.specs.update(later.specs)
        self.jobs.update(later.jobs)
        self.arrays.update(later.arrays)
        self.allocations.update(later.allocations)
        self.accounting.update(later.accounting)
        self.hosts.update(later.hosts)
        self.queues.update(later.queues)
        self.shares.update(later.shares)
        self.environments.update(later.environments)
        self.standing.update(later.standing)
        self.tasks.update(later.tasks)
        self.task_jobs.update(later.task_jobs)
        self.job_messages.update(later.job_messages)
        self.parts.update(later.parts)
        for key, row in later.requests.items():
            self.requests.setdefault(key, row)
        self.events += later.events
        self.purged += later.purged
        self.next_job = max(self.next_job, later.next_job)

    def pack(self, number: int) -> bytes:
        """Pack the batch under this number as bytes for ``unpack``."""
        tables = (
            list(self.specs.values()),
            list(self.jobs.values()),
            list(self.arrays.values()),
            [row for row in self.allocations.values() if row is not None],
            [row for row in self.hosts.values() if row is not None],
            list(self.queues.values()),
            [row for row in self.standing.values() if row is not None],
            list(self.shares.values()),
            list(self.accounting.values()),
            list(self.tasks.values()),
            list(self.task_jobs.values()),
            list(self.job_messages.values()),
            list(self.parts.values()),
            list(self.requests.values()),
            [row for row in self.environments.values() if row is not None],
            [(row[0], number << SEQ_BITS | place, *row[1:]) for place, row in enumerate(self.events)],
        )
        gone: tuple[list[Row], ...] = (
            [tuple(key) for key, row in self.allocations.items() if row is None],
            [key for key, row in self.standing.items() if row is None],
            [(name,) for name, row in self.hosts.items() if row is None],
            [(key,) for key, row in self.environments.items() if row is None],
            [(job,) for job in self.purged],
        )
        return marshal.dumps((number, self.next_job, tables, gone))


SEQ_BITS = 24  # events of one batch; 39 bits are left for batch numbers

Packed = tuple[int, int, tuple[list[Row], ...], tuple[list[Row], ...]]


def unpack(data: bytes) -> Packed:
    """Return number, next job, rows of UPSERTS then of INSERTS, the keys to delete from the tables of
    FORGOTTEN, and the jobs to purge.
    """
    packed: Packed = marshal.loads(data)
    return packed
