"""lsadmin: configuration check and reconfiguration, as with badmin: lava has one set of daemons."""

from lavactl.errors import UsageError
from lavactl.options import FLAG, Grammar, answered, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lsadmin ckconfig [-v]
       lsadmin reconfig [-v] [-f]
       lsadmin -h | -V
"""
NOT_YET = ("limstartup", "limshutdown", "limrestart", "limlock", "limunlock", "limdebug", "limtime", "resstartup",
           "resshutdown", "resrestart", "reslogon", "reslogoff", "resdebug", "restime")  # fmt: skip


def main(argv: list[str], io: "Io") -> int:
    """Run lsadmin."""
    if answered(argv, USAGE, io):
        return 0
    if not argv:
        raise UsageError("lsadmin: a subcommand is missing", USAGE)
    name, rest = argv[0], argv[1:]
    if name.startswith("-"):
        raise UsageError(f"lsadmin: illegal option -- {printable(name[1:])}", USAGE)
    if name == "expire":
        raise UsageError("lsadmin expire: a host is removed by badmin hremove, and none by itself.", USAGE)
    if name in NOT_YET:
        raise UsageError(f"lsadmin {name}: lava has no LIM and no RES; lava-agent is a service of the host.", USAGE)
    if name not in ("ckconfig", "reconfig"):
        raise UsageError(f"lsadmin: {printable(name)}: no such subcommand", USAGE)
    from lavactl.views import configuration

    options = Grammar(f"lsadmin {name}", USAGE, {"v": FLAG, "f": FLAG}).parse(rest)
    if options.words:
        raise UsageError(f"lsadmin {name}: takes no names", USAGE)
    act = configuration.check if name == "ckconfig" else configuration.reconfigure
    return act(io, "v" in options)
