"""bkill: terminate or signal jobs."""

from lavactl.control import carry_out
from lavactl.errors import CommandError
from lavactl.options import FLAG, VALUE, Grammar, answered, printable
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bkill [-r | -d] [-s signal] [-J name] [-m host] [-q queue] [-u user | -u all] [job_id | "job_id[index]" | 0 ...]
       bkill -l | -h | -V
"""
GRAMMAR = Grammar(
    "bkill",
    USAGE,
    {
        **dict.fromkeys(("l", "r", "b", "d"), FLAG),
        **dict.fromkeys(("s", "J", "m", "q", "u"), VALUE),
        **dict.fromkeys(("app", "g", "sla", "stat", "C"), "not supported yet."),
    },
)


def main(argv: list[str], io: "Io") -> int:
    """Run bkill."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if "l" in options:
        io.print(" ".join(names()))
        return 0
    name = options.last("s")
    if "r" in options:
        return carry_out(options, GRAMMAR, io, messages.REMOVE, "being terminated")
    if name is None:
        action = messages.TERMINATE_DONE if "d" in options else messages.TERMINATE
        return carry_out(options, GRAMMAR, io, action, "being terminated")
    number = signal_number(name)
    return carry_out(options, GRAMMAR, io, action_for(number), "being signaled", number)


def action_for(number: int) -> int:
    """Action for a signal number: stop and continue change the job's state, so they are more than a signal."""
    from signal import SIGCONT, SIGSTOP, SIGTSTP

    if number in (SIGSTOP, SIGTSTP):
        return messages.STOP
    return messages.RESUME if number == SIGCONT else messages.SEND


def signal_number(name: str) -> int:
    """Number of ``9``, ``KILL`` or ``SIGKILL``.

    Raises:
        CommandError: unknown signal.
    """
    from signal import NSIG, Signals

    if name.isascii() and name.isdigit() and 0 < int(name) < NSIG:
        return int(name)
    full = name.upper() if name.upper().startswith("SIG") else f"SIG{name.upper()}"
    known = Signals.__members__.get(full)
    if known is None:
        raise CommandError(f"{printable(name)}: Illegal signal value.")
    return int(known)


def names() -> list[str]:
    """Names of all signals, by number."""
    from signal import Signals

    return [one.name.removeprefix("SIG") for one in sorted(Signals)]
