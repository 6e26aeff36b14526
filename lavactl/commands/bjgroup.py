"""bjgroup: job groups with their jobs, or slots, by state."""

from lavactl.errors import FAILURE
from lavactl.options import FLAG, Grammar, answered, printable
from lavactl.text.render import MISSING, clean
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bjgroup [-s] [-N] [/job/group ...]
       bjgroup -h | -V
  -s  each group before those below it; otherwise the shortest paths first
  -N  slots in place of jobs
A group counts the jobs of those below it, too.
"""
GRAMMAR = Grammar("bjgroup", USAGE, dict.fromkeys(("s", "N"), FLAG))
NUMBERS = " {:>7}" * 6
ROW = "{:<15}" + NUMBERS + "  {:<8} {:>9}  {}"
TITLES = ("GROUP_NAME", "NJOBS", "PEND", "RUN", "SSUSP", "USUSP", "FINISH", "SLA", "JLIMIT", "OWNER")
SLOT_ROW = "{:<15}" + NUMBERS + "  {:<8}  {}"
SLOT_TITLES = ("GROUP_NAME", "NSLOTS", "PEND", "RUN", "SSUSP", "USUSP", "RSV", "SLA", "OWNER")
NO_SLA = "()"


def main(argv: list[str], io: "Io") -> int:
    """Run bjgroup."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    has_slots = "N" in options
    reply = io.client().job_groups(cluster_pb2.JobGroupsRequest(names=options.words, slots=has_slots))
    groups = sorted(reply.groups, key=by_tree if "s" in options else by_depth)
    if groups:
        form, titles, texts = (SLOT_ROW, SLOT_TITLES, slot_texts) if has_slots else (ROW, TITLES, texts_of)
        io.print("\n".join(form.format(*row) for row in (titles, *map(texts, groups))))
    io.flush()
    for name in reply.missing:
        io.error(f"{printable(name)}: No such job group")
    if not groups and not reply.missing:
        io.error("No job group found")
    return 0 if groups and not reply.missing else FAILURE


def by_tree(group: cluster_pb2.JobGroupRecord) -> list[str]:
    """Order of -s."""
    return group.path.split("/")


def by_depth(group: cluster_pb2.JobGroupRecord) -> tuple[int, str]:
    """Order without -s: by the number of groups above, then by path."""
    return group.path.count("/"), group.path


def texts_of(group: cluster_pb2.JobGroupRecord) -> tuple[object, ...]:
    """Columns of a group with its jobs."""
    limit = f"{group.started}/{group.limit if group.HasField('limit') else MISSING}"
    numbers = (group.pend, group.run, group.ssusp, group.ususp, group.finish)
    return clean(group.path), sum(numbers), *numbers, NO_SLA, limit, clean(group.owner)


def slot_texts(group: cluster_pb2.JobGroupRecord) -> tuple[object, ...]:
    """Columns of a group with the slots of its unfinished jobs."""
    numbers = (group.pend, group.run, group.ssusp, group.ususp, group.reserved)
    return clean(group.path), sum(numbers), *numbers, NO_SLA, clean(group.owner)
