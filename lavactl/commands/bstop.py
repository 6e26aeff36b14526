"""bstop: suspend running jobs, hold pending ones."""

from lavactl.control import carry_out
from lavactl.options import FLAG, VALUE, Grammar, answered
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bstop [-J name] [-m host] [-q queue] [-u user | -u all] [-g /job/group]
             [-app profile] [-sla class] [-C reason] [job_id | "job_id[index]" | 0 ...]
       bstop -h | -V
"""
GRAMMAR = Grammar(
    "bstop",
    USAGE,
    {
        **dict.fromkeys(("a",), FLAG),
        **dict.fromkeys(("J", "m", "q", "u", "g", "app", "sla", "C"), VALUE),
        "d": "no ended job can be suspended; older manuals of LSF alone name it.",
    },
)


def main(argv: list[str], io: "Io") -> int:
    """Run bstop."""
    if answered(argv, USAGE, io):
        return 0
    return carry_out(GRAMMAR.parse(argv), GRAMMAR, io, messages.STOP, "being stopped")
