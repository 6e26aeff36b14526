"""bstop: suspend running jobs, hold pending ones."""

from lavactl.control import carry_out
from lavactl.options import FLAG, VALUE, Grammar, answered
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bstop [-J name] [-m host] [-q queue] [-u user | -u all] [-g /job/group]
             [-app profile] [job_id | "job_id[index]" | 0 ...]
       bstop -h | -V
"""
GRAMMAR = Grammar(
    "bstop",
    USAGE,
    {
        **dict.fromkeys(("a",), FLAG),
        **dict.fromkeys(("J", "m", "q", "u", "g", "app"), VALUE),
        **dict.fromkeys(("sla", "C", "d"), "not supported yet."),
    },
)


def main(argv: list[str], io: "Io") -> int:
    """Run bstop."""
    if answered(argv, USAGE, io):
        return 0
    return carry_out(GRAMMAR.parse(argv), GRAMMAR, io, messages.STOP, "being stopped")
