"""lavactl stage: copy a directory, an archive or a repository into the working directory of a task.

Exit code: 0 copied, 255 not.
"""

import os

from lavactl.options import FLAG, VALUE, Grammar, answered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lavactl stage [--replace] [--limit-mib N] source [directory]
       lavactl stage -h | -V
  source         a path, file://, an archive or file of http(s)://, git+URL, a URL that ends in .git, hdfs://;
                 $NAME is a variable
  directory      where the copy is made, under the last component of the source's path; the current one without it
  --replace      an entry of that name gives way
  --limit-mib N  size above which it is refused (200); 0 for none
"""
GRAMMAR = Grammar("lavactl stage", USAGE, {"-replace": FLAG, "-limit-mib": VALUE})
LIMIT_MIB = 200


def main(argv: list[str], io: "Io") -> int:
    """Run lavactl stage."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if len(options.words) not in (1, 2):
        raise GRAMMAR.wrong("a source, and perhaps a directory, are expected")
    limit = options.last("-limit-mib") or str(LIMIT_MIB)
    if not (limit.isascii() and limit.isdigit()):
        raise GRAMMAR.wrong(f"--limit-mib takes a number, not {limit}")
    from lavactl.tasks import staging

    source = staging.expanded(options.words[0], io.environ)
    if not (staging.SCHEME.match(source) or staging.GIT.match(source)):
        source = os.path.join(io.environ.get("LS_SUBCWD") or io.cwd, source)
    directory = io.path(options.words[1]) if len(options.words) == 2 else io.cwd
    staging.stage(source, directory, int(limit) * staging.MIB, "-replace" in options)
    return 0
