"""lsinfo: resources, host types and host models that requirements may name."""

from lavactl.errors import FAILURE
from lavactl.options import FLAG, Grammar, Options, answered, printable
from lavactl.text.render import clean
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

    Definition = cluster_pb2.ResourceDefinition

USAGE = """\
Usage: lsinfo [-l | -w] [-m] [-r] [-t] [resource ...]
       lsinfo -h | -V
  -r  resources    -t  host types    -m  host models
"""
GRAMMAR = Grammar(
    "lsinfo",
    USAGE,
    {
        **dict.fromkeys(("l", "w", "m", "r", "t"), FLAG),
        "M": "lava keeps no models of hosts that it has not detected or read from lsf.shared; -m shows those.",
    },
)
HEADER = "RESOURCE_NAME    TYPE  ORDER  DESCRIPTION"
MODEL_HEADER = "MODEL_NAME      CPU_FACTOR      ARCHITECTURE"
LOAD_INTERVAL_S, LOGIN_INTERVAL_S, SPACE_INTERVAL_S = 15, 30, 120

# LSF's own resources: name, kind, order, description, seconds between two values (0: static).
BUILT_IN = (
    ("r15s", "Numeric", True, "15-second CPU run queue length", LOAD_INTERVAL_S),
    ("r1m", "Numeric", True, "1-minute CPU run queue length (alias: cpu)", LOAD_INTERVAL_S),
    ("r15m", "Numeric", True, "15-minute CPU run queue length", LOAD_INTERVAL_S),
    ("ut", "Numeric", True, "1-minute CPU utilization (0.0 to 1.0)", LOAD_INTERVAL_S),
    ("pg", "Numeric", True, "Paging rate (pages/second)", LOAD_INTERVAL_S),
    ("io", "Numeric", True, "Disk IO rate (Kbytes/second)", LOAD_INTERVAL_S),
    ("ls", "Numeric", True, "Number of login sessions (alias: login)", LOGIN_INTERVAL_S),
    ("it", "Numeric", False, "Idle time (minutes) (alias: idle)", LOGIN_INTERVAL_S),
    ("tmp", "Numeric", False, "Disk space for temporary files (Mbytes)", SPACE_INTERVAL_S),
    ("swp", "Numeric", False, "Available swap space (Mbytes) (alias: swap)", LOAD_INTERVAL_S),
    ("mem", "Numeric", False, "Available memory (Mbytes)", LOAD_INTERVAL_S),
    ("ncpus", "Numeric", False, "Number of CPUs", 0),
    ("nprocs", "Numeric", False, "Number of physical processors", 0),
    ("ncores", "Numeric", False, "Number of cores of all processors", 0),
    ("nthreads", "Numeric", False, "Number of threads of all cores", 0),
    ("ndisks", "Numeric", False, "Number of local disks", 0),
    ("maxmem", "Numeric", False, "Maximum memory (Mbytes)", 0),
    ("maxswp", "Numeric", False, "Maximum swap space (Mbytes)", 0),
    ("maxtmp", "Numeric", False, "Maximum space for temporary files (Mbytes)", 0),
    ("cpuf", "Numeric", False, "CPU factor", 0),
    ("ngpus", "Numeric", False, "Number of GPUs", 0),
    ("slots", "Numeric", False, "Number of free job slots", LOAD_INTERVAL_S),
    ("maxslots", "Numeric", False, "Number of configured job slots", 0),
    ("type", "String", None, "Host type", 0),
    ("model", "String", None, "Host model", 0),
    ("hname", "String", None, "Host name", 0),
    ("status", "String", None, "Host status", LOAD_INTERVAL_S),
    ("server", "Boolean", None, "Host that runs jobs", 0),
)  # fmt: skip


def main(argv: list[str], io: "Io") -> int:
    """Run lsinfo."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    told = io.client().resources(definitions=True)
    resources = {one.name: one for one in [*built_in(), *told.definitions]}
    missing = [name for name in options.words if name not in resources]
    chosen = [one for one in resources.values() if not options.words or one.name in options.words]
    sections = []
    if shows(options, "r") and chosen:
        sections.append(resource_text(chosen, "l" in options))
    if shows(options, "t") and not options.words:
        sections.append("\n".join(["TYPE_NAME", *map(clean, told.types)]) + "\n")
    if shows(options, "m") and not options.words:
        sections.append("\n".join([MODEL_HEADER, *map(model_row, told.models)]) + "\n")
    io.print("\n".join(sections), end="")
    io.flush()
    for name in missing:
        io.error(f"{printable(name)}: Bad resource name")
    return FAILURE if missing else 0


def shows(options: Options, section: str) -> bool:
    """True if this section was chosen, or none was."""
    return section in options or not any(name in options for name in ("r", "t", "m"))


def built_in() -> "list[Definition]":
    """LSF's own resources."""
    return [
        cluster_pb2.ResourceDefinition(
            name=name, kind=kind, increasing=bool(order), description=text, interval_s=seconds, consumable=name == "mem"
        )
        for name, kind, order, text, seconds in BUILT_IN
    ]


def order_of(one: "Definition") -> str:
    """``Inc``, ``Dec``, or ``N/A`` for what has no order."""
    if one.kind != "Numeric":
        return "N/A"
    return "Inc" if one.increasing else "Dec"


def resource_text(chosen: "list[Definition]", is_long: bool) -> str:
    """Resources, a line each; with -l a paragraph each."""
    if is_long:
        return "\n".join(long_text(one) for one in chosen)
    rows = [f"{one.name:<13} {one.kind:>7} {order_of(one):>5}   {clean(one.description)}".rstrip() for one in chosen]
    return "\n".join([HEADER, *rows]) + "\n"


def long_text(one: "Definition") -> str:
    """-l: one resource."""
    numbers = f"{one.kind:>7} {order_of(one):>6} {one.interval_s:>9.0f} {'No' if one.interval_s else 'Yes':>7}"
    return (
        f"RESOURCE_NAME:  {one.name}\nDESCRIPTION:  {clean(one.description)}\n"
        f"   TYPE  ORDER  INTERVAL  STATIC  CONSUMABLE\n{numbers} {'Yes' if one.consumable else 'No':>11}\n"
    )


def model_row(one: cluster_pb2.ModelRecord) -> str:
    """One host model."""
    return f"{clean(one.name).replace(' ', '_'):<15} {one.cpu_factor:>10.2f}      {clean(one.type)}".rstrip()
