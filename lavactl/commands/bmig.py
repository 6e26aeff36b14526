"""bmig: move running and suspended jobs to other hosts: from a checkpoint, or anew if they are rerunnable only."""

from lavactl.control import carry_out
from lavactl.options import FLAG, VALUE, Grammar, answered
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bmig [-f] [-J name] [-q queue] [-u user | -u all] [-g /job/group] [-app profile]
            [job_id | "job_id[index]" | 0 ...]
       bmig -h | -V
"""
GRAMMAR = Grammar(
    "bmig",
    USAGE,
    {
        **dict.fromkeys(("J", "q", "u", "g", "app"), VALUE),
        "m": "the hosts of a job that has started are not changed; brequeue -H, bmod -m and bresume do that.",
        "f": FLAG,
    },
)
MOVABLE = (messages.STAGING, messages.RUN, messages.USUSP, messages.SSUSP)


def main(argv: list[str], io: "Io") -> int:
    """Run bmig."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    force = "f" in options
    return carry_out(options, GRAMMAR, io, messages.MIGRATE, "being migrated", among=MOVABLE, force=force)
