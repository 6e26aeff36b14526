"""Entry point of all commands: finds a command by name, runs it, and prints its exception as one sentence.

Invariants: a command's module is imported only when it is called; no traceback reaches a user (LAVA_DEBUG=1 shows it);
Ctrl-C ends the process by SIGINT, so that a shell loop around it stops; a closed reader ends it by SIGPIPE.
"""

import os
import sys

from lavactl.errors import FAILURE, CommandError, OutputClosedError, UsageError
from lavactl.io import Io
from lavactl.options import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

INTERRUPTED = 130
OUTPUT_CLOSED = 141

USAGE_MAX = 8  # lines of a usage that is shown behind the reason of an error
COMMANDS = (
    "bsub", "bjobs", "bkill", "bstop", "bresume", "bpeek", "bhist", "bqueues", "bhosts", "bapp",
    "lsload", "lsmon", "lshosts", "lsinfo", "lsplace", "lsid", "lsrun", "lsgrun", "lsmake",
    "blaunch", "lavarun", "badmin",
    "busers", "bugroup", "bmgroup", "bhpart", "bparams", "blimits", "bresources", "bsla", "lsclusters", "lsadmin",
    "bresize", "bmod", "bswitch", "btop", "bbot", "brequeue", "brun", "bjdepinfo",
    "brsvadd", "brsvmod", "brsvdel", "brsvs", "bacct", "busage", "bbudgets",
    "bgadd", "bgdel", "bgmod", "bjgroup", "bpost", "bread", "bstatus", "bwait", "bmig", "bslots",
    "bchkpnt", "brestart",
)  # fmt: skip
SUBCOMMANDS = (
    "up", "down", "env", "init", "tickets", "certificates", "link", "run", "show", "sshrun", "simulate",
    "adopt", "backup", "compact", "restore", "migrate-database", "tasks", "logs", "scale", "stage",
    "job", "checks", "attach", "copies",
)  # fmt: skip
# Slurm's names, for scripts and tools that speak only Slurm. They stay out of the way of a real Slurm: as commands of
# their own they are only where they were asked for.
SLURM = ("sbatch", "srun", "salloc", "squeue", "scancel", "sinfo", "sacct", "scontrol")
SLURM_FAILURE = 1


def run(name: str, argv: list[str], io: Io) -> int:
    """Run a command by name (``lavactl`` takes its first word as the name) and return its exit code.

    Args:
        argv: the words after the program's name.
    """
    try:
        return _call(name, argv, io)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OutputClosedError:
        return OUTPUT_CLOSED
    except MemoryError as error:
        io.give_up()
        return _report(name, error, io)
    except Exception as error:
        return _report(name, error, io)


def _call(name: str, argv: list[str], io: Io) -> int:
    if name == "lavactl":
        name, argv = _subcommand(argv, io)
        if not name:
            return 0
    code = load(name)(argv, io)
    io.flush_last()
    return code


def load(name: str) -> "Callable[[list[str], Io], int]":
    """``main`` of a command's module.

    Raises:
        CommandError: the command does not exist.
    """
    if name not in COMMANDS and name not in SUBCOMMANDS and name not in SLURM:
        raise CommandError(f"{printable(name)}: no such command.")
    folder = "slurm" if name in SLURM else "commands"
    module = __import__(f"lavactl.{folder}.{name.replace('-', '_')}", fromlist=["main"])
    main: Callable[[list[str], Io], int] = module.main
    return main


def _subcommand(argv: list[str], io: Io) -> tuple[str, list[str]]:
    """(command named by lavactl's first word, words left for it); the name is empty if -h or -V was answered."""
    if not argv:
        raise UsageError("lavactl: no command is specified.", usage())
    name, rest = argv[0], argv[1:]
    if name in ("-h", "--help", "help"):
        io.print(usage().rstrip())
        io.flush()
        return "", []
    if name in ("-V", "--version"):
        from protos import __version__

        io.print(f"lava {__version__}")
        io.flush()
        return "", []
    if name not in COMMANDS and name not in SUBCOMMANDS and name not in SLURM:
        from lavactl.absent import ABSENT

        if name in ABSENT:
            raise CommandError(f"{name}: {ABSENT[name]}")
        raise UsageError(f"lavactl: {printable(name)}: no such command.", usage())
    return name, rest


def usage() -> str:
    """Usage text of lavactl."""
    names = " | ".join(SUBCOMMANDS + COMMANDS + SLURM)
    return f"Usage: lavactl [-h] [-V] COMMAND [arguments]\nCOMMAND: {names}\n"


def _report(name: str, error: Exception, io: Io) -> int:
    try:
        io.flush()
    except (CommandError, OutputClosedError) as second:
        io.error(str(second))
    if io.environ.get("LAVA_DEBUG") == "1":
        import traceback

        io.error("".join(traceback.format_exception(error)).rstrip())
    if name in SLURM:
        return _report_as_slurm(name, error, io)
    if isinstance(error, CommandError):
        io.error(str(error))
        if isinstance(error, UsageError) and error.usage:
            io.error(_usage_after(name, error.usage.rstrip()))
        return error.code
    if isinstance(error, UnicodeEncodeError):
        io.error(f"{name}: a name or argument is not UTF-8 text.")
        return FAILURE
    io.error(printable(f"{name}: unexpected {type(error).__name__}: {error}"))
    return FAILURE


def _usage_after(name: str, text: str) -> str:
    """Usage behind a reason; of a long one, which would scroll the reason away, how it is shown."""
    return text if text.count("\n") < USAGE_MAX else f"Usage: {name} -h shows it"


def _report_as_slurm(name: str, error: Exception, io: Io) -> int:
    """Print an error as Slurm's commands do: behind the command's name, with exit code 1."""
    text = str(error) if isinstance(error, CommandError) else f"unexpected {type(error).__name__}: {error}"
    if isinstance(error, UnicodeEncodeError):
        text = "a name or argument is not UTF-8 text."
    lines = text if text.startswith(f"{name}: ") else f"{name}: error: {text}"
    io.error("\n".join(map(printable, lines.split("\n"))))
    code = error.code if isinstance(error, CommandError) else FAILURE
    from lavactl.slurm.words.variables import exit_code

    return exit_code(name, SLURM_FAILURE if code == FAILURE else code, io)


def enter(name: str) -> None:
    """Run one command as the whole life of the process. Does not return."""
    called = os.path.basename(sys.argv[0])
    name = called if name == "lavactl" and called in SLURM else name
    io = Io()
    code = run(name, sys.argv[1:], io)
    if code in (INTERRUPTED, OUTPUT_CLOSED):
        _die_of(code - 128)
    os._exit(code & 0xFF)  # skips the interpreter's tear-down, which costs several milliseconds


def _die_of(number: int) -> None:
    import signal

    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)


def __getattr__(name: str) -> "Callable[[], None]":
    """Entry point of a command, under the command's name: setup.cfg lists them as ``lavactl.main:NAME``."""
    if name not in COMMANDS and name != "lavactl":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return lambda: enter(name)
