"""bresources: configured limits of lsb.resources; with -g the guaranteed resource pools and their usage."""

from lavactl.commands.blimits import show_configured
from lavactl.errors import FAILURE
from lavactl.options import FLAG, VALUE, Grammar, Options, answered, printable
from lavactl.text.render import MISSING, clean
from lavactl.text.units import number_text, size
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bresources
       bresources -g [-l [-m] [-q queue]] [pool ...]
       bresources -h | -V
  -m  names of the hosts of each pool
  -q  only pools that are for jobs of the queue, or lend to them
"""
GRAMMAR = Grammar(
    "bresources",
    USAGE,
    {
        **dict.fromkeys(("g", "l", "m"), FLAG),
        "q": VALUE,
        "s": "not supported: RESOURCE_RESERVE_PER_TASK of lsb.params, and rusage with /job, /task or /host, take the "
             "place of ReservationUsage.",
        "p": "lava has no policies for saving energy.",
    },
)  # fmt: skip
ROW = "{:<16} {:<6} {:<14} {:>8} {:>8} {:>8} {:>8} {:>8}"
TITLES = ("POOL_NAME", "TYPE", "STATUS", "TOTAL", "FREE", "GUAR", "USED", "BORROWED")
LONG_ROW = " {:<6} {:>10} {:>10} {:>10} {:>8} {:>8} {:>8} {:>8}"
LONG_TITLES = ("TYPE", "GUARANTEED", "DESERVED", "MAX", "TOTAL", "FREE", "USED", "BORROWED")


def main(argv: list[str], io: "Io") -> int:
    """Run bresources."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if "g" in options:
        if "l" not in options and ("m" in options or "q" in options):
            raise GRAMMAR.wrong("-m and -q need -g and -l")
        return show_pools(options, io)
    if options.words or any(name in options for name in "lmq"):
        raise GRAMMAR.wrong("pools, -l, -m and -q need -g; blimits -c shows single limits")
    show_configured(io.client().limits().limits, io)
    return 0


def show_pools(options: Options, io: "Io") -> int:
    """-g: the named pools, or all; with -q those of them that matter to jobs of the queue."""
    queue = options.last("q")
    if queue == "":
        raise GRAMMAR.wrong("-q: expected the name of a queue")
    reply = io.client().pools(cluster_pb2.PoolsRequest(hosts="m" in options, queue=queue or ""))
    pools, host_lists = reply.pools, {one.hosts: list(one.names) for one in reply.host_lists}
    missing = [name for name in options.words if not any(is_named(pool, name) for pool in pools)]
    chosen = [pool for pool in pools if not options.words or any(is_named(pool, name) for name in options.words)]
    there = bool(chosen)
    if queue:
        chosen = [pool for pool in chosen if pool.takes_queue or pool.lends_to_queue]
    if chosen and "l" in options:
        io.print("\n\n".join(long_text(pool, host_lists.get(pool.hosts), queue or "") for pool in chosen))
    elif chosen:
        io.print("\n".join([ROW.format(*TITLES), *(line for pool in chosen for line in rows(pool))]))
    io.flush()
    for name in missing:
        io.error(f"{printable(name)}: No such guaranteed resource pool")
    if not pools and not missing:
        io.error("No guaranteed resource pool is configured")
    elif there and not chosen:
        io.error(f"{printable(queue or '')}: No guaranteed resource pool is for jobs of the queue or lends to them")
    return 0 if chosen and not missing else FAILURE


def is_named(pool: cluster_pb2.PoolRecord, name: str) -> bool:
    """True for the pool's name, or that of the pool that it is a service class's part of."""
    whole = pool.name.removesuffix(f"/{pool.service_class}") if pool.service_class else ""
    return name in (pool.name, whole or pool.name)


def rows(pool: cluster_pb2.PoolRecord) -> list[str]:
    """A line for each resource of the pool."""
    return [
        ROW.format(
            clean(pool.name),
            one.resource,
            "overcommitted" if one.overcommitted else "ok",
            *(amount(one.resource, number) for number in (one.total, one.free, one.own, one.used, one.borrowed)),
        )
        for one in pool.amounts
    ]


def loan_text(pool: cluster_pb2.PoolRecord) -> str:
    """N, Y, or Y with the queues whose jobs borrow."""
    if not pool.lends:
        return "N"
    return f"Y ({clean(pool.borrowers)})" if pool.borrowers else "Y"


def queue_text(pool: cluster_pb2.PoolRecord, queue: str) -> str:
    """-q: what jobs of the queue may have of the pool."""
    if pool.takes_queue:
        return f"{clean(queue)} (its jobs may be the pool's)"
    return f"{clean(queue)} (its jobs borrow)"


def long_text(pool: cluster_pb2.PoolRecord, hosts: list[str] | None, queue: str) -> str:
    """-l: users, hosts, guarantees and usage of one pool; hosts None: as they are written in the file."""
    lines = [
        f"GUARANTEED RESOURCE POOL: {clean(pool.name)}",
        "",
        f"USERS:   {clean(pool.users)}",
        f"QUEUES:  {clean(pool.queues)}",
        *([f"APPS:    {clean(pool.applications)}"] if pool.applications else []),
        f"HOSTS:   {clean(pool.hosts if hosts is None else ' '.join(hosts)) or MISSING}",
        f"LOAN:    {loan_text(pool)}",
        *([f"QUEUE:   {queue_text(pool, queue)}"] if queue else []),
        f"STATUS:  {'overcommitted' if any(one.overcommitted for one in pool.amounts) else 'ok'}",
        "",
        LONG_ROW.format(*LONG_TITLES),
    ]
    for one in pool.amounts:
        promised = [
            amount(one.resource, getattr(one, name)) if one.HasField(name) else MISSING
            for name in ("guaranteed", "deserved", "largest")
        ]
        there = [amount(one.resource, number) for number in (one.total, one.free, one.used, one.borrowed)]
        lines.append(LONG_ROW.format(one.resource, *promised, *there))
    return "\n".join(lines)


def amount(resource: str, number: float) -> str:
    """Amount of a resource; memory in the format of load tables."""
    return size(number) if resource == "mem" else number_text(number)
