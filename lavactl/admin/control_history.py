"""badmin hist, qhist, hhist and mbdhist: a line for each thing that became of a queue, a host or the master.

From the master, or from an lsb.events file with -f.
"""

from lavactl.admin.events_file import controls
from lavactl.errors import FAILURE, CommandError
from lavactl.options import Options, printable
from lavactl.text.intervals import read_interval
from lavactl.text.render import clean, long_time
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from lavactl.io import Io

    Record = cluster_pb2.ControlRecord
    Request = cluster_pb2.ControlHistoryRequest

KINDS = {"hist": (), "qhist": ("queue",), "hhist": ("host",), "mbdhist": ("master",)}
ACTIONS = {
    "open": "opened",
    "closed": "closed",
    "active": "activated",
    "inactive": "inactivated",
    "revoked": "revoked",
    "removed": "removed",
    "added": "added",
    "deleted": "deleted",
    "locked": "locked",
    "unlocked": "unlocked",
    "rebooted": "rebooted",
    "shutdown": "shutdown",
}


def show(name: str, options: Options, io: "Io") -> int:
    """Print what the options select; without anything one sentence and the exit code of a failure.

    Raises:
        CommandError: the time interval or the file can't be read.
    """
    first, last = _interval(name, options.last("t"), io)
    request = cluster_pb2.ControlHistoryRequest(kinds=KINDS[name], names=_names(options), first=first, last=last)
    file = options.last("f")
    records = io.client().control_history(request) if file is None else _selected(controls(file, io), request)
    found = False
    for record in records:
        io.print(line(record))
        found = True
    if not found:
        io.flush()
        io.error("No matching event found")
    return 0 if found else FAILURE


def _names(options: Options) -> list[str]:
    return [] if options.words == ["all"] else options.words


def _interval(name: str, text: str | None, io: "Io") -> tuple[float, float]:
    if text is None:
        return 0.0, 0.0
    try:
        return read_interval(text, io.now())
    except (ValueError, OverflowError):
        form = "[yyyy/][mm/]dd/hh:mm,[yyyy/][mm/]dd/hh:mm"
        raise CommandError(f"badmin {name} -t {printable(text)}: expected a time interval, as {form}.") from None


def _selected(records: "Iterable[Record]", request: "Request") -> "Iterator[Record]":
    """Records of a file that the master would select."""
    for record in records:
        is_wanted = not request.kinds or record.kind in request.kinds
        is_named = not request.names or record.name in request.names
        is_in_time = record.time >= request.first and (not request.last or record.time <= request.last)
        if is_wanted and is_named and is_in_time:
            yield record


def line(record: "Record") -> str:
    """One line: ``Fri Nov 20 20:00:11: Queue <night> closed by user or administrator <root>.``"""
    if record.kind == "master":
        return clean(f"{long_time(record.time)}: {_of_master(record)}")
    title, role = ("Queue", "user or administrator") if record.kind == "queue" else ("Host", "administrator")
    by = f" by {role} <{record.by}>" if record.by else ""
    lock_id = f" with lock ID <{record.lock_id}>" if record.lock_id else ""
    group = f" {'to' if record.action == 'added' else 'from'} host group <{record.group}>" if record.group else ""
    said = f"{title} <{record.name}> {ACTIONS.get(record.action, record.action)}{group}{lock_id}{by}"
    return clean(f"{long_time(record.time)}: {said} {record.comment}".rstrip() + "." * (not record.comment))


def _of_master(record: "Record") -> str:
    where = f"mbatchd on host <{record.name}>"
    if record.action == "started":
        counts = f"{record.hosts} server hosts, {record.queues} queues"
        return f"mbatchd started on host <{record.name}>; cluster name <{record.cluster}>, {counts}."
    if record.action == "reconfigured":
        said = f"{where} reconfigured by administrator <{record.by}>"
        return f"{said} {record.comment}" if record.comment else f"{said}."
    return f"{where} died: {record.comment.rstrip('.') or 'told to end'}."
