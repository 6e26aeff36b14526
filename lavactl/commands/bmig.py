"""bmig: move running and suspended jobs that are rerunnable to other hosts, where they begin anew."""

from lavactl.control import carry_out
from lavactl.options import VALUE, Grammar, answered
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bmig [-J name] [-q queue] [-u user | -u all] [-g /job/group] [-app profile] [job_id | "job_id[index]" | 0 ...]
       bmig -h | -V
"""
GRAMMAR = Grammar(
    "bmig",
    USAGE,
    {
        **dict.fromkeys(("J", "q", "u", "g", "app"), VALUE),
        "m": "the hosts of a job that has started are not changed; brequeue -H, bmod -m and bresume do that.",
        "f": "no checkpoints are taken that could be forced.",
    },
)
MOVABLE = (messages.STAGING, messages.RUN, messages.USUSP, messages.SSUSP)


def main(argv: list[str], io: "Io") -> int:
    """Run bmig."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    return carry_out(options, GRAMMAR, io, messages.MIGRATE, "being migrated", among=MOVABLE)
