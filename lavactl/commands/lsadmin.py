"""lsadmin: configuration as with badmin, since lava has one set of daemons; locks of hosts."""

from lavactl.errors import FAILURE, CommandError, UsageError
from lavactl.options import FLAG, VALUE, Grammar, Options, answered, printable
from lavactl.text.units import is_digits
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lsadmin ckconfig [-v]
       lsadmin reconfig [-v] [-f]
       lsadmin limlock [-l seconds] [host ... | host_group ... | all]
       lsadmin limunlock [host ... | host_group ... | all]
       lsadmin showconf lim
       lsadmin help [subcommand ...] | quit
       lsadmin -h | -V
  without a subcommand it takes one a line, at the prompt lsadmin>, to quit or the end of the input
  without a name: the host that it is typed on
"""
LOCKS = {
    "limlock": ("Lock", cluster_pb2.LOCK_HOST),
    "limunlock": ("Unlock", cluster_pb2.UNLOCK_HOST),
}
GRAMMARS = {
    "ckconfig": Grammar("lsadmin ckconfig", USAGE, {"v": FLAG}),
    "reconfig": Grammar("lsadmin reconfig", USAGE, {"v": FLAG, "f": FLAG}),
    "limlock": Grammar("lsadmin limlock", USAGE, {"l": VALUE}),
    "limunlock": Grammar("lsadmin limunlock", USAGE, {}),
    "showconf": Grammar("lsadmin showconf", USAGE, {}),
    "help": Grammar("lsadmin help", USAGE, {}),
    "quit": Grammar("lsadmin quit", USAGE, {}),
}
SERVICE_VERBS = {"startup": "start", "shutdown": "stop", "restart": "restart"}
_SERVICE = (
    "lava-agent is LIM and RES in one, a service of each host; as root there: systemctl {} lava-agent. Jobs run on."
)
# Subcommands of LSF that are refused, with the reason.
REFUSED = {
    "expire": "a host is removed by badmin hremove, and none by itself.",
    **{
        f"{part}{what}": _SERVICE.format(verb)
        for part in ("lim", "res", "lsf")
        for what, verb in SERVICE_VERBS.items()
    },
    **dict.fromkeys(
        ("limdebug", "limtime", "resdebug", "restime"), "lava-agent has no debug classes and no timing levels."
    ),
    **dict.fromkeys(("reslogon", "reslogoff"), "tasks outside of jobs are not accounted: lsrun submits a job."),
}  # fmt: skip
LOCK_MAX_S = 366 * 86_400


def main(argv: list[str], io: "Io") -> int:
    """Run lsadmin."""
    if answered(argv, USAGE, io):
        return 0
    if not argv:
        from lavactl.admin import prompt

        return prompt.converse("lsadmin", io)
    name, rest = argv[0], argv[1:]
    if name.startswith("-"):
        raise UsageError(f"lsadmin: illegal option -- {printable(name[1:])}", USAGE)
    if name in REFUSED:
        raise CommandError(f"lsadmin {name}: {REFUSED[name]}")
    if name not in GRAMMARS:
        raise UsageError(f"lsadmin: {printable(name)}: no such subcommand", USAGE)
    options = GRAMMARS[name].parse(rest)
    if name in ("help", "quit"):
        from lavactl.admin import prompt

        return prompt.give_help("lsadmin", USAGE, options.words, io) if name == "help" else 0
    if name == "showconf":
        return _show(options, io)
    return _lock(name, options, io) if name in LOCKS else _configuration(name, options, io)


def _configuration(name: str, options: Options, io: "Io") -> int:
    from lavactl.views import configuration

    if options.words:
        raise UsageError(f"lsadmin {name}: takes no names", USAGE)
    act = configuration.check if name == "ckconfig" else configuration.reconfigure
    return act(io, "v" in options)


def _show(options: Options, io: "Io") -> int:
    from lavactl.views import master_status

    if options.words != ["lim"]:
        raise UsageError(
            "lsadmin showconf: expected lim, without hosts: all hosts have the settings of the master", USAGE
        )
    return master_status.show_configuration(io, "LIM")


def _lock(name: str, options: Options, io: "Io") -> int:
    """Lock or unlock hosts; a line for each on standard error, as badmin hclose has it."""
    word, action = LOCKS[name]
    request = cluster_pb2.ControlRequest(
        action=action, names=options.words, all=options.words == ["all"], lock_s=_seconds(options)
    )
    reply = io.client().control(request)
    for result in reply.results:
        io.error(f"{word} <{printable(result.name)}> ...... {printable(result.error) or 'done'}")
    return FAILURE if not reply.results or any(result.error for result in reply.results) else 0


def _seconds(options: Options) -> float:
    text = options.last("l")
    if text is None:
        return 0.0
    if not is_digits(text) or not 0 < int(text[:9]) <= LOCK_MAX_S:
        raise UsageError(f"lsadmin limlock: -l {printable(text)}: expected 1 to {LOCK_MAX_S} seconds", USAGE)
    return float(text)
