"""lsb.events files: the records of queues, hosts and the master.

Other records are passed over, and so is one that is cut short at the end of the file, which is still being written; any
other that can't be read ends the command with its line number.
"""

from lavactl.accounting.acct_file import Fields, read_lines, split
from lavactl.errors import CommandError
from lavactl.options import printable
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lavactl.io import Io

    Record = cluster_pb2.ControlRecord

QUEUE_ACTIONS = {1: "open", 2: "closed", 3: "active", 4: "inactive"}
HOST_ACTIONS = {1: "open", 2: "closed", 3: "rebooted", 4: "shutdown"}
ENDS = {
    201: "master resigned",
    202: "reconfiguration initiated",
    203: "fatal errors",
    204: "fatal memory errors",
    205: "bad configuration file",
}


def controls(file: str, io: "Io") -> "Iterator[Record]":
    """Yield the records of a file.

    Raises:
        CommandError: the file can't be read, or a line of it is no record.
    """
    io.stay()  # a file of any size is read by the caller's own process
    path = io.path(file)
    try:
        lines = open(path, encoding="utf-8", errors="replace")  # noqa: SIM115 - closed below
    except OSError as error:
        raise CommandError(f"{printable(path)}: {error.strerror}.") from None
    with lines:
        yield from read_lines(path, lines, _record, "lsb.events")


def _record(line: str) -> "Record | None":
    """The record of a line; None for a record of something else."""
    if not line.startswith(tuple(f'"{name}"' for name in _MAKERS)):
        if not line.startswith('"'):
            raise ValueError(line)
        return None
    fields = Fields(split(line.rstrip("\n")))
    make = _MAKERS[fields.text()]
    fields.skip(1)  # version
    record = cluster_pb2.ControlRecord(time=fields.number())
    make(record, fields)
    return record


def _of_queue(record: "Record", fields: Fields) -> None:
    _of_named(record, fields, "queue", QUEUE_ACTIONS)


def _of_host(record: "Record", fields: Fields) -> None:
    _of_named(record, fields, "host", HOST_ACTIONS)


def _of_named(record: "Record", fields: Fields, kind: str, actions: dict[int, str]) -> None:
    code = fields.whole()
    record.kind, record.action = kind, actions.get(code, f"unknown operation code <{code}>")
    record.name = fields.text()
    fields.skip(1)  # user id
    record.by = fields.text()
    if not fields.is_over:
        record.comment = fields.text()


def _of_start(record: "Record", fields: Fields) -> None:
    record.kind, record.action = "master", "started"
    record.name, record.cluster = fields.text(), fields.text()
    record.hosts, record.queues = fields.whole(), fields.whole()


def _of_end(record: "Record", fields: Fields) -> None:
    record.kind, record.action, record.name = "master", "ended", fields.text()
    fields.skip(1)  # number of removed jobs
    code = fields.whole()
    record.comment = ENDS.get(code, f"killed by signal <{code}>" if code else "")


_MAKERS: "dict[str, Callable[[Record, Fields], None]]" = {
    "QUEUE_CTRL": _of_queue,
    "HOST_CTRL": _of_host,
    "MBD_START": _of_start,
    "MBD_DIE": _of_end,
}
