"""bmig: move running and suspended jobs to other hosts: from a checkpoint, or anew if they are rerunnable only."""

from lavactl.control import carry_out
from lavactl.options import FLAG, VALUE, Grammar, Options, answered
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bmig [-f] [-m "host_name[+[level]] | host_group[+[level]] ..."] [-J name] [-q queue] [-u user | -u all]
            [-g /job/group] [-app profile] [job_id | "job_id[index]" | 0 ...]
       bmig -h | -V
"""
GRAMMAR = Grammar(
    "bmig",
    USAGE,
    {
        **dict.fromkeys(("m", "J", "q", "u", "g", "app"), VALUE),
        "f": FLAG,
    },
)
MOVABLE = (messages.STAGING, messages.RUN, messages.USUSP, messages.SSUSP)


def main(argv: list[str], io: "Io") -> int:
    """Run bmig."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    force, hosts = "f" in options, (options.last("m") or "").split()
    if "m" in options and not hosts:
        raise GRAMMAR.wrong("-m: the hosts to which the jobs go are expected")
    selection = Options()  # -m selects no jobs here
    selection.items = [(name, value) for name, value in options.items if name != "m"]
    selection.words = options.words
    doing = "being migrated"
    return carry_out(selection, GRAMMAR, io, messages.MIGRATE, doing, among=MOVABLE, force=force, hosts=hosts)
