"""bpeek: output of a running job so far; with -f also further output."""

from lavactl.errors import FAILURE, CommandError
from lavactl.jobrefs import read_ref
from lavactl.options import FLAG, VALUE, Grammar, answered
from lavactl.text.render import clean
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bpeek [-f] [-J name] [-m host] [-q queue] [job_id | "job_id[index]"]
       bpeek -h | -V
"""
GRAMMAR = Grammar("bpeek", USAGE, {"f": FLAG, "l": "not supported yet.", **dict.fromkeys(("J", "m", "q"), VALUE)})
OUTPUT = b"<< output from stdout >>\n"
ERRORS = b"<< output from stderr >>\n"


def main(argv: list[str], io: "Io") -> int:
    """Run bpeek."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if len(options.words) > 1:
        raise GRAMMAR.wrong("only one job at a time")
    request = messages.PeekRequest(follow="f" in options)
    if options.words:
        request.job.ref.CopyFrom(read_ref(options.words[0]))
    request.job.filter.name = options.last("J") or ""
    request.job.filter.queue = options.last("q") or ""
    request.job.filter.host = options.last("m") or ""
    return show(request, io)


def show(request: messages.PeekRequest, io: "Io") -> int:
    """Print output as it arrives. Standard error kept in a file of its own follows under its own title."""
    shown = None
    for chunk in io.client().peek(request):
        if chunk.error:
            io.flush()
            raise CommandError(clean(chunk.error), FAILURE)
        if shown is not chunk.is_error_file:
            io.write(ERRORS if chunk.is_error_file else OUTPUT)
            shown = chunk.is_error_file
        io.write(chunk.data)
        io.flush()
    if shown is None:
        io.write(OUTPUT)
    return 0
