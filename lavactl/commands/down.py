"""lavactl down: end a personal cluster and remove all it made outside its directory; its state stays unless purged."""

from lavactl.errors import UsageError
from lavactl.io import Io
from lavactl.options import FLAG, VALUE, answer_standard
from lavactl.personal import state_file, up_down
from lavactl.personal.options import parse, shell_directory
from lavactl.personal.trust import check_directory

USAGE = """\
Usage: lavactl down [--dir D] [--purge]
Ends the cluster in D with all its running jobs. Its state stays: lavactl up --dir D continues it. Jobs that can be
rerun (bsub -r) then run again; the others have ended (TERM_ADMIN).
  --dir D   where the cluster lives (the one that lavactl env has set for this shell,
            else $XDG_DATA_HOME/lava/personal)
  --purge   remove D as well
"""
KINDS = {"dir": VALUE, "purge": FLAG}


def main(argv: list[str], io: Io) -> int:
    """Take the cluster down."""
    answer = answer_standard(argv, USAGE)
    if answer is not None:
        io.print(answer)
        return 0
    options = parse(argv, USAGE, "down", KINDS)
    if options.words:
        raise UsageError(f"lavactl down: {options.words[0]!r} is not an option", USAGE)
    directory = shell_directory(options, io)
    check_directory(directory)
    cluster = state_file.existing(directory)
    with state_file.locked(directory):
        note = up_down.take_down(directory, cluster)
        if "-purge" in options:
            up_down.purge(directory)
    if note:
        io.error(note)
    io.print(f"The cluster in {directory} is {'gone' if '-purge' in options else 'down'}.")
    return 0
