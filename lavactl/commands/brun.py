"""brun: force a pending job to start now, on hosts that an administrator names, regardless of limits and order."""

from lavactl.control import tell
from lavactl.errors import CommandError
from lavactl.jobrefs import read_ref
from lavactl.options import FLAG, VALUE, Grammar, answered, printable
from lavactl.text import units
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: brun [-f] -m "host[#slots] ..." job_id | "job_id[index]"
       brun -h | -V
"""
GRAMMAR = Grammar(
    "brun",
    USAGE,
    {
        "f": FLAG,
        "m": VALUE,
        "b": "a job that has a checkpoint goes on from it; leave -b out.",
        "c": 'slots by free processors are not supported; name the slots of each host: -m "host#slots".',
    },
)


def main(argv: list[str], io: "Io") -> int:
    """Run brun."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if len(options.words) != 1:
        raise GRAMMAR.wrong("one job id is expected")
    hosts = [read_host(word) for word in (options.last("m") or "").split()]
    if not hosts:
        raise GRAMMAR.wrong("-m: at least one host must be specified")
    ref = read_ref(options.words[0])
    if not ref.job:
        raise CommandError(f"{printable(options.words[0])}: Illegal job ID.")
    request = messages.ForceRequest(ref=ref, hosts=hosts, is_unconstrained="f" in options)
    result = io.client().force(request)
    return tell([result], "Job <{}> is being forced to run.", io)


def read_host(word: str) -> messages.HostShare:
    """``host``, or ``host#slots``."""
    name, mark, slots = word.partition("#")
    try:
        return messages.HostShare(host=name, slots=units.read_count(slots) if mark else 0)
    except ValueError:
        raise CommandError(f"-m {printable(word)}: expected host or host#slots.") from None
