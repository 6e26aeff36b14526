"""brsvmod: change an advance reservation: its times, users, hosts and slots, or days on which it is disabled."""

from lavactl import reserving
from lavactl.options import FLAG, VALUE, Grammar, Options, answered
from lavactl.text.render import clean
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: brsvmod [-b begin] [-e end] [-t "window ..."] [-u "user ..." | -g group] [-o | -on] [-d description]
               [-q "queue ..."] reservation
       brsvmod addhost | rmhost [-n number] [-m "host ..."] [-R requirement] reservation
       brsvmod disable -td year:month:day[-year:month:day] reservation
       brsvmod -h | -V
"""
GRAMMAR = Grammar(
    "brsvmod",
    USAGE,
    {
        **dict.fromkeys(("b", "e", "t", "u", "g", "n", "m", "R", "d", "q", "td"), VALUE),
        **dict.fromkeys(("o", "on"), FLAG),
        **dict.fromkeys(("f", "tn", "nosusp", "nosuspn", "E", "Ep"), "not supported yet."),
    },
)
ACTIONS = {
    "addhost": cluster_pb2.ADD_HOSTS,
    "rmhost": cluster_pb2.TAKE_HOSTS,
    "disable": cluster_pb2.SKIP_OCCURRENCES,
}
OPTIONS = {"addhost": {"n", "m", "R"}, "rmhost": {"n", "m", "R"}, "disable": {"td"}}
CHANGES = {"b", "e", "t", "u", "g", "o", "on", "d", "q"}


def main(argv: list[str], io: "Io") -> int:
    """Run brsvmod."""
    if answered(argv, USAGE, io):
        return 0
    action = argv[0].lstrip("-") if argv and argv[0].lstrip("-") in ACTIONS else ""
    options = GRAMMAR.parse(argv[1:] if action else argv)
    if len(options.words) != 1:
        raise GRAMMAR.wrong("one reservation is expected")
    strange = sorted({name for name, _ in options.items} - OPTIONS.get(action, CHANGES))
    if strange:
        where = f"with {action}" if action else "without addhost, rmhost or disable"
        raise GRAMMAR.wrong(f"-{strange[0]} makes no sense {where}")
    request = cluster_pb2.ReserveRequest(action=ACTIONS.get(action, cluster_pb2.CHANGE_RESERVATION))
    request.name = options.words[0]
    if action == "disable":
        days = options.last("td")
        if days is None:
            raise GRAMMAR.wrong("the days are missing: -td is expected")
        request.begins_at, request.ends_at = reserving.day_range(days)
    elif action:
        reserving.read_hosts(request, options)
    else:
        request.fields.extend(changed(request, options, io))
    if not (action or request.fields):
        raise GRAMMAR.wrong("no parameter to change is specified")
    reply = io.client().reserve(request)
    io.print(f'Reservation "{clean(reply.name)}" is modified')
    return 0


def changed(request: cluster_pb2.ReserveRequest, options: Options, io: "Io") -> list[str]:
    """Fill in the changed values; the names of the changed fields."""
    fields = []
    if reserving.read_times(request, options, io):
        fields.append("times")
    holders = options.last("u", "g")
    if holders is not None:
        request.holders.extend(reserving.read_holders(holders, io))
        fields.append("holders")
    if "o" in options or "on" in options:
        request.is_open = "o" in options
        fields.append("is_open")
    description, queues = options.last("d"), options.last("q")
    if description is not None:
        request.description = description
        fields.append("description")
    if queues is not None:
        request.queues.extend(queues.split())
        fields.append("queues")
    return fields
