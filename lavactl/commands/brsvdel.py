"""brsvdel: delete advance reservations."""

from lavactl.errors import FAILURE, CommandError
from lavactl.options import FLAG, Grammar, answered
from lavactl.text.render import clean
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: brsvdel [-f] reservation ...
       brsvdel -h | -V
  -f: also while jobs run in it; they go on as any others
"""
GRAMMAR = Grammar("brsvdel", USAGE, {"f": FLAG})


def main(argv: list[str], io: "Io") -> int:
    """Run brsvdel."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if not options.words:
        raise GRAMMAR.wrong("the reservation is missing")
    code = 0
    for name in options.words:
        action = cluster_pb2.REMOVE_RESERVATION
        request = cluster_pb2.ReserveRequest(action=action, name=name, is_forced="f" in options)
        try:
            io.client().reserve(request)
        except CommandError as error:
            io.error(str(error))
            code = FAILURE
        else:
            io.print(f"Reservation {clean(name)} is being deleted")
    return code
