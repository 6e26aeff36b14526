"""bslots: free slots, and how long a job may use them without delaying a waiting job that holds a reservation."""

from lavactl.errors import CommandError
from lavactl.options import FLAG, VALUE, Grammar, answered, printable
from lavactl.text import units
from lavactl.text.render import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io
    from protos import jobs_pb2

USAGE = """\
Usage: bslots [-l] [-n slots] [-R "resource requirement"] [-W [hours:]minutes]
       bslots -h | -V
  -l  also the hosts
  -n  only windows of at least so many slots
  -R  slots of hosts that satisfy it
  -W  only windows of at least that length
"""
GRAMMAR = Grammar("bslots", USAGE, {"l": FLAG, **dict.fromkeys(("n", "R", "W"), VALUE)})
NONE = "No backfill window exists at this time"
NONE_LIKE_THAT = "No backfill window meets these requirements at this time"
MINUTE_S = 60


def main(argv: list[str], io: "Io") -> int:
    """Run bslots."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    if options.words:
        raise GRAMMAR.wrong(f"{printable(options.words[0])}: only options are expected")
    least, length_s = least_slots(options.last("n")), least_length_s(options.last("W"))
    now = io.now()
    windows = [
        one
        for one in io.client().slots(options.last("R") or "", with_hosts="l" in options)
        if one.slots >= least and (not one.until or one.until - now >= max(length_s, MINUTE_S))
    ]
    if not windows:
        io.print(NONE_LIKE_THAT if any(letter in options for letter in "nRW") else NONE)
    elif "l" in options:
        io.print("\n\n".join(long_text(one, now) for one in windows))
    else:
        rows = [f"{one.slots:<14} {length(one, now)}" for one in windows]
        io.print("\n".join([f"{'SLOTS':<14} RUNTIME", *rows]))
    return 0


def least_slots(text: str | None) -> int:
    """Number of -n.

    Raises:
        CommandError: it is none.
    """
    if text is None:
        return 1
    try:
        return units.read_count(text)
    except ValueError:
        raise CommandError(f"bslots -n {printable(text)}: expected a number of slots.") from None


def least_length_s(text: str | None) -> int:
    """Seconds of -W.

    Raises:
        CommandError: it is no time.
    """
    if text is None:
        return 0
    try:
        return MINUTE_S * units.read_minutes(text)
    except ValueError:
        raise CommandError(f"bslots -W {printable(text)}: expected [hours:]minutes.") from None


def length(window: "jobs_pb2.SlotWindow", now: float) -> str:
    """``2 hours 30 minutes``, or ``UNLIMITED``."""
    if not window.until:
        return "UNLIMITED"
    hours, minutes = divmod(int(window.until - now) // MINUTE_S, 60)
    parts = [
        f"{number} {name}{'s' if number > 1 else ''}"
        for number, name in ((hours, "hour"), (minutes, "minute"))
        if number
    ]
    return " ".join(parts)


def long_text(window: "jobs_pb2.SlotWindow", now: float) -> str:
    """A window with its hosts."""
    hosts = " ".join(f"{share.slots}*{clean(share.host)}" for share in window.hosts)
    return f"SLOTS: {window.slots}\nRUNTIME: {length(window, now)}\nHOSTS: {hosts}"
