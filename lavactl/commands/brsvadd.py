"""brsvadd: create an advance reservation for users, or a system reservation."""

from lavactl import reserving
from lavactl.options import FLAG, VALUE, Grammar, answered
from lavactl.text.render import clean
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: brsvadd {-u "user ..." | -g group} [-unit slot] -n slots [-m "host ..."] [-R requirement] TIMES [OPTIONS]
       brsvadd {-u "user ..." | -g group} -unit host -n hosts [-m "host ..."] [-R requirement] TIMES [OPTIONS]
       brsvadd -s [-m "host ..."] [-R requirement] TIMES [OPTIONS]
       brsvadd -h | -V
  TIMES: -b begin -e end, each [[[year:]month:]day:]hour:minute, or -t "window ..."
  OPTIONS: -N name  -d description  -o  -nosusp  -q "queue ..."
"""
NOT_YET = "not supported yet."
GRAMMAR = Grammar(
    "brsvadd",
    USAGE,
    {
        **dict.fromkeys(("u", "g", "n", "m", "R", "b", "e", "t", "N", "d", "q", "unit"), VALUE),
        **dict.fromkeys(("s", "o", "nosusp"), FLAG),
        **dict.fromkeys(("p", "f", "E", "Et", "Ep", "Ept"), NOT_YET),
    },
)


def main(argv: list[str], io: "Io") -> int:
    """Run brsvadd."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if options.words:
        raise GRAMMAR.wrong(f"{options.words[0]}: only options are expected")
    words = options.last("u") or options.last("g") or ""
    if ("s" in options) is bool(words.split()) or ("u" in options and "g" in options):
        raise GRAMMAR.wrong("one of -u, -g and -s is expected")
    unit = options.last("unit") or "slot"
    if unit not in ("slot", "host"):
        raise GRAMMAR.wrong("-unit takes slot or host")
    request = cluster_pb2.ReserveRequest(
        action=cluster_pb2.ADD_RESERVATION,
        name=options.last("N") or "",
        for_group="g" in options,
        for_system="s" in options,
        whole_hosts=unit == "host",
        is_open="o" in options,
        description=options.last("d") or "",
        queues=(options.last("q") or "").split(),
        leaves_others="nosusp" in options,
    )
    reserving.read_hosts(request, options)
    reserving.read_times(request, options, io)
    if not request.windows and not (request.begins_at and request.ends_at):
        raise GRAMMAR.wrong("both -b and -e, or -t, are expected")
    if not (request.hosts or request.requirement):
        raise GRAMMAR.wrong("the hosts are missing: -m or -R is expected")
    request.holders.extend(reserving.read_holders(words, io))
    reply = io.client().reserve(request)
    io.print(f'Reservation "{clean(reply.name)}" is created')
    return 0
