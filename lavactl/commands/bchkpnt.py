"""bchkpnt: make checkpoints of running and suspended jobs."""

from lavactl.control import carry_out
from lavactl.options import FLAG, VALUE, Grammar, answered
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bchkpnt [-f] [-k] [-J name] [-m host] [-q queue] [-u user | -u all] [-g /job/group] [-app profile]
               [job_id | "job_id[index]" | 0 ...]
       bchkpnt -h | -V
"""
GRAMMAR = Grammar(
    "bchkpnt",
    USAGE,
    {
        **dict.fromkeys(("f", "k"), FLAG),
        **dict.fromkeys(("J", "m", "q", "u", "g", "app"), VALUE),
        "p": "the period of a job that has started is not changed yet.",
    },
)
RUNNING = (messages.STAGING, messages.RUN, messages.USUSP, messages.SSUSP)


def main(argv: list[str], io: "Io") -> int:
    """Run bchkpnt."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    force, ends = "f" in options, "k" in options
    doing = "being checkpointed"
    return carry_out(options, GRAMMAR, io, messages.CHECKPOINT, doing, among=RUNNING, force=force, ends=ends)
