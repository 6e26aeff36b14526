"""bqueues: the queues, their limits and how full they are. Jobs are counted in slots, as LSF does."""

from lavactl.errors import FAILURE
from lavactl.options import FLAG, VALUE, Grammar, answered, printable
from lavactl.render import clean, limit
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bqueues [-w | -l] [-noheader] [-m host] [-u user] [queue ...]
       bqueues -h | -V
"""
GRAMMAR = Grammar(
    "bqueues",
    USAGE,
    {
        **dict.fromkeys(("w", "l", "noheader"), FLAG),
        **dict.fromkeys(("m", "u"), VALUE),
        **dict.fromkeys(("r", "o", "json", "alloc", "usage"), "not supported yet."),
    },
)
HEADER = "QUEUE_NAME      PRIO     STATUS      MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP"
LONG_HEADER = "PRIO NICE STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN SSUSP USUSP  RSV"
SEPARATOR = "-" * 78
LIMITS = ("CPULIMIT", "RUNLIMIT", "PROCLIMIT", "MEMLIMIT", "FILELIMIT", "DATALIMIT", "STACKLIMIT", "CORELIMIT",
          "SWAPLIMIT", "PROCESSLIMIT")  # fmt: skip
# Shown on lines of their own, in this order; the rest of a queue's parameters follow.
FIRST = ("USERS", "HOSTS", "ADMINISTRATORS", "PRE_EXEC", "POST_EXEC", "REQUEUE_EXIT_VALUES", "RES_REQ")
SHOWN_ABOVE = frozenset(("NICE", "PRIORITY", "DESCRIPTION", "QUEUE_NAME", "UJOB_LIMIT", "PJOB_LIMIT", "HJOB_LIMIT",
                         "QJOB_LIMIT", "POLICIES"))  # fmt: skip


def main(argv: list[str], io: "Io") -> int:
    """Run bqueues."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    request = cluster_pb2.QueuesRequest(names=options.words, user=options.last("u") or "", host=options.last("m") or "")
    reply = io.client().queues(request)
    if "l" in options:
        io.print(f"\n{SEPARATOR}\n".join(long_text(queue) for queue in reply.queues), end="")
    elif reply.queues:
        if "noheader" not in options:
            io.print(HEADER)
        io.print("\n".join(row(queue, "w" in options) for queue in reply.queues))
    io.flush()
    for name in reply.missing:
        io.error(f"{printable(name)}: No such queue")
    if not reply.queues and not reply.missing:
        io.error("No such queue")
    return 0 if reply.queues and not reply.missing else FAILURE


def row(queue: cluster_pb2.QueueRecord, uncut: bool) -> str:
    """One line of the table."""
    name = queue.name if uncut else queue.name[:15]
    status = f"{'Open' if queue.open else 'Closed'}:{'Active' if queue.active else 'Inact'}"
    pad = " " * ((14 - len(status)) // 2)
    return (
        f"{name:<15} {queue.priority:>3}  {pad + status:<14} {limits(queue)} "
        f"{queue.njobs:>5} {queue.pend:>5} {queue.run:>5} {queue.ssusp + queue.ususp:>5}"
    )


def limits(queue: cluster_pb2.QueueRecord) -> str:
    """MAX, JL/U, JL/P and JL/H."""
    per_processor = f"{queue.per_processor:g}" if queue.per_processor else "-"
    return f"{limit(queue.max):>4} {limit(queue.per_user):>4} {per_processor:>4} {limit(queue.per_host):>4}"


def long_text(queue: cluster_pb2.QueueRecord) -> str:
    """One queue in full."""
    known = dict(queue.parameters)
    lines = ["", f"QUEUE: {queue.name}"]
    description = clean(queue.description)
    if description and not description.endswith("."):
        description += "."
    default = "  This is the default queue." if queue.is_default else ""
    lines += [f"  -- {description}{default}", "", "PARAMETERS/STATISTICS", LONG_HEADER, long_row(queue, known)]
    lines += limit_lines(known)
    if known.get("POLICIES"):
        lines += ["", f"SCHEDULING POLICIES:  {clean(known['POLICIES'])}"]
    lines.append("")
    known.setdefault("USERS", "all")
    known.setdefault("HOSTS", "all")
    names = [name for name in FIRST if known.get(name)]
    names += sorted(name for name in known if name not in FIRST and name not in LIMITS and name not in SHOWN_ABOVE)
    lines += [f"{name}:  {clean(known[name])}" for name in names if known[name]]
    if queue.comment:
        lines += ["", f"ADMIN ACTION COMMENT:  {clean(queue.comment)}"]
    return "\n".join(lines) + "\n"


def long_row(queue: cluster_pb2.QueueRecord, known: dict[str, str]) -> str:
    """The line of numbers of -l."""
    status = f"{'Open' if queue.open else 'Closed'}:{'Active' if queue.active else 'Inact_Adm'}"
    nice = known.get("NICE", "0")
    return (
        f"{queue.priority:>3}  {nice:>3}  {status:<14} {limits(queue)} {queue.njobs:>5} {queue.pend:>5} "
        f"{queue.run:>5} {queue.ssusp:>5} {queue.ususp:>5} {queue.rsv:>4}"
    )


def limit_lines(known: dict[str, str]) -> list[str]:
    """The maximum limits that are set."""
    named = [name for name in LIMITS if known.get(name)]
    if not named:
        return []
    lines = ["", "MAXIMUM LIMITS:"]
    for name in named:
        lines += [f" {name}", f" {clean(known[name])}"]
    return lines
