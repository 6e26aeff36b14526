"""lsadmin: configuration check and reconfiguration, as with badmin: lava has one set of daemons."""

from lavactl.errors import CommandError, UsageError
from lavactl.options import FLAG, Grammar, answered, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: lsadmin ckconfig [-v]
       lsadmin reconfig [-v] [-f]
       lsadmin -h | -V
"""
GRAMMARS = {
    "ckconfig": Grammar("lsadmin ckconfig", USAGE, {"v": FLAG}),
    "reconfig": Grammar("lsadmin reconfig", USAGE, {"v": FLAG, "f": FLAG}),
}
# Subcommands of LSF that are refused, with the reason.
REFUSED = {
    "expire": "a host is removed by badmin hremove, and none by itself.",
    **dict.fromkeys(
        ("limstartup", "limshutdown", "limrestart", "limlock", "limunlock", "limdebug", "limtime", "resstartup",
         "resshutdown", "resrestart", "reslogon", "reslogoff", "resdebug", "restime"),
        "lava has no LIM and no RES; lava-agent is a service of the host.",
    ),
}  # fmt: skip


def main(argv: list[str], io: "Io") -> int:
    """Run lsadmin."""
    if answered(argv, USAGE, io):
        return 0
    if not argv:
        raise UsageError("lsadmin: a subcommand is missing", USAGE)
    name, rest = argv[0], argv[1:]
    if name.startswith("-"):
        raise UsageError(f"lsadmin: illegal option -- {printable(name[1:])}", USAGE)
    if name in REFUSED:
        raise CommandError(f"lsadmin {name}: {REFUSED[name]}")
    if name not in GRAMMARS:
        raise UsageError(f"lsadmin: {printable(name)}: no such subcommand", USAGE)
    from lavactl.views import configuration

    options = GRAMMARS[name].parse(rest)
    if options.words:
        raise UsageError(f"lsadmin {name}: takes no names", USAGE)
    act = configuration.check if name == "ckconfig" else configuration.reconfigure
    return act(io, "v" in options)
