"""badmin diagnose: every pending reason of jobs, or a log of the queries that the master gets."""

from lavactl.errors import CommandError, UsageError
from lavactl.options import Options, printable
from lavactl.text.units import is_digits
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

MINUTES_MAX = 7 * 1440
OF_QUERIES = ("f", "d", "o")


def diagnose(options: Options, usage: str, io: "Io") -> int:
    """Carry out the command.

    Raises:
        UsageError: the options and names do not go together.
    """
    component = options.last("c")
    if component is None:
        if given := [letter for letter in OF_QUERIES if letter in options]:
            raise UsageError(f"badmin diagnose: -{given[0]} needs -c query", usage)
        if not options.words:
            raise UsageError("badmin diagnose: name the jobs, or -c query", usage)
        from lavactl.commands import bjobs

        return bjobs.main(["-p3", *options.words], io)
    if component == "jobreq":
        raise CommandError("badmin diagnose -c jobreq: bjobs -p3 and -l show the reasons of each job.")
    if component != "query":
        raise UsageError(f"badmin diagnose: -c {printable(component)}: expected query", usage)
    if options.words:
        raise UsageError("badmin diagnose: -c query takes no names", usage)
    if "o" in options and ("f" in options or "d" in options):
        raise UsageError("badmin diagnose: -o takes neither -f nor -d", usage)
    request = cluster_pb2.DiagnoseRequest(
        off="o" in options, file=options.last("f") or "", seconds=60.0 * _minutes(options, usage)
    )
    reply = io.client().diagnose(request)
    state = "stopped" if request.off else "started"
    io.print(f"Query diagnosis is {state}; log file <{printable(reply.path)}> on host <{printable(reply.host)}>")
    return 0


def _minutes(options: Options, usage: str) -> int:
    text = options.last("d")
    if text is None:
        return 0
    if not is_digits(text) or not 0 < int(text[:9]) <= MINUTES_MAX:
        raise UsageError(f"badmin diagnose: -d {printable(text)}: expected 1 to {MINUTES_MAX} minutes", usage)
    return int(text)
