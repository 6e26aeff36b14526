"""bresume: resume suspended jobs, release held ones."""

from lavactl.control import carry_out
from lavactl.options import VALUE, Grammar, answered
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bresume [-J name] [-m host] [-q queue] [-u user | -u all] [-g /job/group]
               [-app profile] [-sla class] [-C reason] [job_id | "job_id[index]" | 0 ...]
       bresume -h | -V
"""
GRAMMAR = Grammar(
    "bresume",
    USAGE,
    dict.fromkeys(("J", "m", "q", "u", "g", "app", "sla", "C"), VALUE),
)

SUSPENDED = (messages.PSUSP, messages.USUSP, messages.SSUSP)


def main(argv: list[str], io: "Io") -> int:
    """Run bresume."""
    if answered(argv, USAGE, io):
        return 0
    return carry_out(GRAMMAR.parse(argv), GRAMMAR, io, messages.RESUME, "being resumed", among=SUSPENDED)
