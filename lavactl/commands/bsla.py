"""bsla: service classes with their guarantees and the jobs, or slots, of each by state."""

from lavactl.errors import FAILURE
from lavactl.options import FLAG, Grammar, answered, printable
from lavactl.text.render import clean
from lavactl.text.units import number_text
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bsla [-N] [service_class ...]
       bsla -h | -V
  -N  slots in place of jobs
"""
GRAMMAR = Grammar("bsla", USAGE, {"N": FLAG})
POOL_ROW = "{:<20} {:<10} {:>10} {:>10} {:>10}"
POOL_TITLES = (("", "", "GUAR", "GUAR", "TOTAL"), ("POOL NAME", "TYPE", "CONFIG", "USED", "USED"))
NUMBERS = " ".join(["{:>7}"] * 6)
TITLES = ("NJOBS", "PEND", "RUN", "SSUSP", "USUSP", "FINISH")
SLOT_TITLES = ("NSLOTS", "PEND", "RUN", "SSUSP", "USUSP", "RSV")
SEPARATOR = "-" * 79


def main(argv: list[str], io: "Io") -> int:
    """Run bsla."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    reply = io.client().pools(cluster_pb2.PoolsRequest(service_classes=True))
    classes = {one.name: one for one in reply.service_classes}
    wanted = dict.fromkeys(options.words)
    chosen = [one for name, one in classes.items() if not wanted or name in wanted]
    if chosen:
        texts = (text(one, [pool for pool in reply.pools if pool.service_class == one.name], "N" in options)
                 for one in chosen)  # fmt: skip
        io.print(f"\n{SEPARATOR}\n".join(texts), end="")
    io.flush()
    missing = [name for name in wanted if name not in classes]
    for name in missing:
        io.error(f"{printable(name)}: No such service class")
    if not chosen and not missing:
        io.error("No service class found")
    return 0 if chosen and not missing else FAILURE


def text(one: cluster_pb2.ServiceClassRecord, pools: list[cluster_pb2.PoolRecord], has_slots: bool) -> str:
    """Text of one class: who may use it, its part of pools, and its jobs or slots."""
    lines = [
        f"SERVICE CLASS NAME:  {clean(one.name)}",
        f" -- {clean(one.description) or 'No description provided.'}",
        *([f"ACCESS CONTROL:  {clean(one.access)}"] if one.access else []),
        f"AUTO ATTACH:  {'Y' if one.attaches else 'N'}",
        "",
        "GOAL:  GUARANTEE",
        "",
    ]
    if pools:
        lines += [*(POOL_ROW.format(*titles) for titles in POOL_TITLES), *map(pool_row, pools), ""]
    counts = one.slots if has_slots else one.jobs
    last = counts.reserved if has_slots else counts.finish
    numbers = (counts.pend, counts.run, counts.ssusp, counts.ususp, last)
    lines += [NUMBERS.format(*(SLOT_TITLES if has_slots else TITLES)), NUMBERS.format(sum(numbers), *numbers)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def pool_row(pool: cluster_pb2.PoolRecord) -> str:
    """A line for the class's part of a pool: slots guaranteed, those of them that its jobs use, and all they use."""
    slots = next((one for one in pool.amounts if one.resource == "slots"), cluster_pb2.PoolAmount())
    own, used = slots.own, slots.used
    name = clean(pool.name.removesuffix(f"/{pool.service_class}"))
    return POOL_ROW.format(name, "slots", number_text(own), number_text(min(own, used)), number_text(used))
