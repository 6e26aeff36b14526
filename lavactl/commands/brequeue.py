"""brequeue: requeue jobs under their ids and in their queue positions; running ones are ended first."""

from lavactl.control import carry_out
from lavactl.options import FLAG, VALUE, Grammar, answered
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: brequeue [-a | -d | -e | -p | -r] [-H] [-J name] [-u user | -u all] [job_id | "job_id[index]" | 0 ...]
       brequeue -h | -V
"""
GRAMMAR = Grammar(
    "brequeue", USAGE, {**dict.fromkeys(("a", "d", "e", "p", "r", "H"), FLAG), **dict.fromkeys(("J", "u"), VALUE)}
)
RUNNING = (messages.STAGING, messages.RUN, messages.UNKWN)
SUSPENDED = (messages.USUSP, messages.SSUSP)
STATES = {
    "d": (messages.DONE,),
    "e": (messages.EXIT,),
    "p": (messages.PEND,),
    "r": RUNNING,
    "a": (*RUNNING, *SUSPENDED, messages.DONE, messages.EXIT),
}


def main(argv: list[str], io: "Io") -> int:
    """Run brequeue."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    chosen = {state for letter, some in STATES.items() if letter in options for state in some}
    states = sorted(chosen or {*RUNNING, *SUSPENDED})
    doing = "being requeued"
    return carry_out(options, GRAMMAR, io, messages.REQUEUE, doing, states=states, hold="H" in options)
