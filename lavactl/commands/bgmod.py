"""bgmod: give a job group another limit, or none."""

from lavactl.commands.bgadd import job_limit
from lavactl.options import FLAG, VALUE, Grammar, answered
from lavactl.text.render import clean
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bgmod -L limit | -Ln /job/group
       bgmod -h | -V
  -L limit  most jobs of the group, and of those below it, that run or are suspended at once
  -Ln       no limit
"""
GRAMMAR = Grammar("bgmod", USAGE, {"L": VALUE, "Ln": FLAG})


def main(argv: list[str], io: "Io") -> int:
    """Run bgmod."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    text = options.last("L")
    if (text is None) is ("Ln" not in options):
        raise GRAMMAR.wrong("either -L or -Ln is expected")
    if len(options.words) != 1:
        raise GRAMMAR.wrong("one job group is expected, by its full path")
    request = cluster_pb2.JobGroupRequest(action=cluster_pb2.CHANGE_GROUP, name=options.words[0])
    if text is not None:
        request.limit = job_limit(text)
    for path in io.client().change_job_group(request).paths:
        io.print(f"Job group <{clean(path)}> is modified.")
    return 0
