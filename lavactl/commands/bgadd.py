"""bgadd: create a job group, and those above it."""

from lavactl.options import VALUE, Grammar, answered
from lavactl.submit.job_options import bad
from lavactl.text.render import clean
from lavactl.text.units import read_count
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bgadd [-L limit] /job/group
       bgadd -h | -V
  -L limit  most jobs of the group, and of those below it, that run or are suspended at once
"""
GRAMMAR = Grammar("bgadd", USAGE, {"L": VALUE, "sla": "job groups have no service class."})
LIMIT_MAX = (1 << 31) - 1


def main(argv: list[str], io: "Io") -> int:
    """Run bgadd."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if len(options.words) != 1:
        raise GRAMMAR.wrong("one job group is expected, by its full path")
    request = cluster_pb2.JobGroupRequest(action=cluster_pb2.ADD_GROUP, name=options.words[0])
    if (text := options.last("L")) is not None:
        request.limit = job_limit(text)
    for path in io.client().change_job_group(request).paths:
        io.print(f"Job group <{clean(path)}> is added.")
    return 0


def job_limit(text: str) -> int:
    """Number of jobs of -L.

    Raises:
        CommandError: it is none.
    """
    try:
        return read_count(text, 0, LIMIT_MAX)
    except ValueError:
        raise bad("L", text, f"a number of jobs from 0 to {LIMIT_MAX}") from None
