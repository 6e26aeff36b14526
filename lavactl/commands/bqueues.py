"""bqueues: queues with their limits and slot usage. Jobs are counted in slots, as in LSF."""

from lavactl.errors import FAILURE, CommandError
from lavactl.options import FLAG, VALUE, Grammar, answered, printable
from lavactl.text.fields import show_fields
from lavactl.text.render import MISSING, clean
from lavactl.text.units import number_text
from lavactl.text.unknown import unknown_users
from lavactl.views.priorities import absolute
from lavactl.views.priorities.shares import tree_lines
from lavactl.views.thresholds import LIMITS, bounds_of, limit_lines, threshold_lines
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from lavactl.io import Io

USAGE = """\
Usage: bqueues [-w | -l | -r | -o "field ..." [-json]] [-noheader] [-alloc] [-m host | host_group | all]
               [-u user | user_group | all] [queue ...]
       bqueues -h | -V
  -alloc  count all slots of its hosts for an exclusive job
"""
GRAMMAR = Grammar(
    "bqueues",
    USAGE,
    {
        **dict.fromkeys(("w", "l", "r", "noheader", "json", "alloc"), FLAG),
        **dict.fromkeys(("m", "u", "o"), VALUE),
        "usage": "the manual of LSF's bqueues describes no such option; blimits shows what counts against limits.",
    },
)
HEADER = "QUEUE_NAME      PRIO     STATUS      MAX JL/U JL/P JL/H NJOBS  PEND   RUN  SUSP"
LONG_HEADER = "PRIO NICE STATUS          MAX JL/U JL/P JL/H NJOBS  PEND   RUN SSUSP USUSP  RSV"
SEPARATOR = "-" * 78
EXCEPTION_HEADER = "            OVERRUN(min) UNDERRUN(min) IDLE(cputime/runtime)"
# Printed on lines of their own, in this order; the rest of a queue's parameters follow.
FIRST = ("USERS", "HOSTS", "ADMINISTRATORS", "PRE_EXEC", "POST_EXEC", "REQUEUE_EXIT_VALUES", "RES_REQ")
SHOWN_ABOVE = frozenset(("NICE", "PRIORITY", "DESCRIPTION", "QUEUE_NAME", "UJOB_LIMIT", "PJOB_LIMIT", "HJOB_LIMIT",
                         "QJOB_LIMIT", "POLICIES", "RUN_WINDOW", "DISPATCH_WINDOW", "SLOT_RESERVE",
                         "RERUNNABLE"))  # fmt: skip

# Field of -o: recommended width and reader.
FIELDS: "dict[str, tuple[int, Callable[[cluster_pb2.QueueRecord], str]]]" = {
    "queue_name": (15, lambda queue: queue.name),
    "description": (50, lambda queue: clean(queue.description) or MISSING),
    "priority": (10, lambda queue: str(queue.priority)),
    "status": (12, lambda queue: status_of(queue)),
    "max": (10, lambda queue: bound(queue, "max")),
    "jl_u": (10, lambda queue: bound(queue, "per_user")),
    "jl_p": (10, lambda queue: bound(queue, "per_processor")),
    "jl_h": (10, lambda queue: bound(queue, "per_host")),
    "njobs": (10, lambda queue: str(queue.njobs)),
    "pend": (10, lambda queue: str(queue.pend)),
    "run": (10, lambda queue: str(queue.run)),
    "susp": (10, lambda queue: str(queue.ssusp + queue.ususp)),
    "rsv": (10, lambda queue: str(queue.rsv)),
    "ususp": (10, lambda queue: str(queue.ususp)),
    "ssusp": (10, lambda queue: str(queue.ssusp)),
    "nice": (6, lambda queue: queue.parameters.get("NICE", "0")),
    "users": (50, lambda queue: queue.parameters.get("USERS", "all")),
    "hosts": (50, lambda queue: queue.parameters.get("HOSTS", "all")),
    "res_req": (20, lambda queue: clean(queue.parameters.get("RES_REQ", "")) or MISSING),
    "max_tasklimit": (6, lambda queue: tasks(queue)[2]),
    "min_tasklimit": (6, lambda queue: tasks(queue)[0]),
    "default_tasklimit": (6, lambda queue: tasks(queue)[1]),
}
# Limits of each job with their widths there; of the second tuple a queue may have a default, too.
_ONLY_LARGEST = (("core", 8), ("file", 8), ("stack", 8), ("swap", 8))
_WITH_DEFAULT = (("cpu", 30), ("data", 8), ("mem", 8), ("process", 8), ("run", 12), ("thread", 6))
ALIASES = {"qname": "queue_name", "desc": "description", "prio": "priority", "stat": "status", "jlu": "jl_u",
           "jlp": "jl_p", "jlh": "jl_h"}  # fmt: skip


def largest(name: str) -> "Callable[[cluster_pb2.QueueRecord], str]":
    """Reader of the limit that a job of the queue cannot exceed."""
    return lambda queue: queue.parameters.get(f"{name.upper()}LIMIT", MISSING)


def default(name: str) -> "Callable[[cluster_pb2.QueueRecord], str]":
    """Reader of the limit that a job of the queue has without one of its own."""
    return lambda queue: queue.default_limits.get(f"{name.upper()}LIMIT", MISSING)


FIELDS |= {f"max_{name}limit": (width, largest(name)) for name, width in (*_ONLY_LARGEST, *_WITH_DEFAULT)}
FIELDS |= {f"default_{name}limit": (width, default(name)) for name, width in _WITH_DEFAULT}
ALIASES |= {f"{name}limit": f"max_{name}limit" for name, _ in (*_ONLY_LARGEST, *_WITH_DEFAULT, ("task", 0))}
ALIASES |= {f"def_{name}limit": f"default_{name}limit" for name, _ in (*_WITH_DEFAULT, ("task", 0))}


def main(argv: list[str], io: "Io") -> int:
    """Run bqueues."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    form = options.last("o")
    if form is None and not any(name in options for name in ("w", "l", "r")):
        form = io.setting("LSB_BQUEUES_FORMAT") or None
    if "json" in options and form is None:
        raise GRAMMAR.wrong("-json needs -o")
    request = cluster_pb2.QueuesRequest(
        names=options.words,
        user=options.last("u") or "",
        host=options.last("m") or "",
        allocated="alloc" in options,
    )
    if request.user and unknown_users([request.user], io):
        raise CommandError(f"{printable(request.user)}: Unknown user", FAILURE)
    reply = io.client().queues(request)
    if reply.host_is_unknown:
        raise CommandError(f"{printable(request.host)}: Bad host name, host group name or cluster name", FAILURE)
    queues = list(reply.queues)
    if form is not None and queues:
        show_fields(queues, form, FIELDS, ALIASES, options, io, ("bqueues", "QUEUES"))
    elif "l" in options or "r" in options:
        io.print(f"\n{SEPARATOR}\n".join(long_text(queue, "r" in options) for queue in queues), end="")
    elif queues:
        if "noheader" not in options:
            io.print(HEADER)
        io.print("\n".join(row(queue, "w" in options) for queue in queues))
    io.flush()
    for name in reply.missing:
        io.error(f"{printable(name)}: No such queue")
    if not queues and not reply.missing:
        io.error("No such queue")
    return 0 if queues and not reply.missing else FAILURE


def status_of(queue: cluster_pb2.QueueRecord, why: bool = False) -> str:
    """Open:Active and so on; ``why`` appends the cause of an inactive queue."""
    state = "Active" if queue.active and not queue.status else "Inact"
    if why and state == "Inact":
        state = queue.status or "Inact_Adm"
    return f"{'Open' if queue.open else 'Closed'}:{state}"


def row(queue: cluster_pb2.QueueRecord, uncut: bool) -> str:
    """One line of the table."""
    name = queue.name if uncut else queue.name[:15]
    status = status_of(queue)
    pad = " " * ((14 - len(status)) // 2)
    return (
        f"{name:<15} {queue.priority:>3}  {pad + status:<14} {limits(queue)} "
        f"{queue.njobs:>5} {queue.pend:>5} {queue.run:>5} {queue.ssusp + queue.ususp:>5}"
    )


def tasks(queue: cluster_pb2.QueueRecord) -> tuple[str, str, str]:
    """Least, default and most tasks of a job."""
    numbers = queue.parameters.get("PROCLIMIT", "").split()
    return (numbers[0], numbers[-2], numbers[-1]) if len(numbers) > 1 else (MISSING, MISSING, MISSING)


def bound(queue: cluster_pb2.QueueRecord, name: str) -> str:
    """A limit, or a dash without one."""
    return number_text(getattr(queue, name)) if queue.HasField(name) else MISSING


def limits(queue: cluster_pb2.QueueRecord) -> str:
    """MAX, JL/U, JL/P and JL/H."""
    names = ("max", "per_user", "per_processor", "per_host")
    return " ".join(f"{bound(queue, name):>4}" for name in names)


def long_text(queue: cluster_pb2.QueueRecord, whole_tree: bool = False) -> str:
    """Full description of one queue; ``whole_tree``: with every account of its fairshare tree, not only the top."""
    known = dict(queue.parameters)
    lines = ["", f"QUEUE: {queue.name}"]
    description = clean(queue.description)
    if description and not description.endswith("."):
        description += "."
    default = "  This is the default queue." if queue.is_default else ""
    lines += [f"  -- {description}{default}", "", "PARAMETERS/STATISTICS", LONG_HEADER, long_row(queue, known)]
    if queue.HasField("migration_s"):
        lines.append(f"Migration threshold is {queue.migration_s / 60:.0f} minutes")
    lines.append(f"Interval for a host to accept two jobs is {queue.accept_interval_s:.0f} seconds")
    lines += limit_lines("DEFAULT LIMITS:", dict(queue.default_limits)) + limit_lines("MAXIMUM LIMITS:", known)
    lines += ["", "SCHEDULING PARAMETERS", *threshold_lines(bounds_of(queue.thresholds))]
    if known.get("POLICIES"):
        lines += ["", f"SCHEDULING POLICIES:  {clean(known['POLICIES'])}"]
    lines += absolute.queue_lines(queue)
    lines += share_lines(queue, whole_tree)
    lines += exception_lines(known)
    for name in ("RUN_WINDOW", "DISPATCH_WINDOW"):
        if known.get(name):
            lines += ["", f"{name}:  {clean(known[name])}"]
    lines.append("")
    return "\n".join(lines + last_lines(queue, known)) + "\n"


def exception_lines(known: dict[str, str]) -> list[str]:
    """Thresholds of job exceptions, as far as there are any; they are shown nowhere else then."""
    thresholds = [clean(known.pop(name, "")) for name in ("JOB_OVERRUN", "JOB_UNDERRUN", "JOB_IDLE")]
    if not any(thresholds):
        return []
    header, row = EXCEPTION_HEADER, "".join(f"{value or MISSING:>14}" for value in thresholds)
    return ["", "JOB EXCEPTION PARAMETERS", header, f" Threshold{row}"]


def last_lines(queue: cluster_pb2.QueueRecord, known: dict[str, str]) -> list[str]:
    """Users, hosts, and all parameters not shown above."""
    known.setdefault("USERS", "all")
    known.setdefault("HOSTS", "all")
    names = [name for name in FIRST if known.get(name)]
    names += sorted(name for name in known if name not in FIRST and name not in LIMITS and name not in SHOWN_ABOVE)
    lines = [f"{name}:  {clean(known[name])}" for name in names if known[name]]
    if known.get("SLOT_RESERVE"):
        lines.append(f"Maximum slot reservation time: {known['SLOT_RESERVE']} seconds")
    if known.get("RERUNNABLE"):
        lines.append(f"RERUNNABLE :  {known['RERUNNABLE']}")
    if queue.comment:
        lines += ["", f"ADMIN ACTION COMMENT:  {clean(queue.comment)}"]
    return lines


def share_lines(queue: cluster_pb2.QueueRecord, whole_tree: bool) -> list[str]:
    """Configured shares, and the present priority and usage of each account."""
    lines = []
    if queue.shares:
        lines.append("USER_SHARES:  " + " ".join(f"[{clean(one.name)}, {one.shares}]" for one in queue.shares))
    return lines + tree_lines(queue.name, queue.share_tree, whole_tree, gpu=True)


def long_row(queue: cluster_pb2.QueueRecord, known: dict[str, str]) -> str:
    """Line of numbers of -l."""
    nice = known.get("NICE", "0")
    return (
        f"{queue.priority:>3}  {nice:>3}  {status_of(queue, why=True):<14} {limits(queue)} {queue.njobs:>5} "
        f"{queue.pend:>5} {queue.run:>5} {queue.ssusp:>5} {queue.ususp:>5} {queue.rsv:>4}"
    )
