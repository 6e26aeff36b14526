"""bwait: wait until a dependency condition of jobs is met.

Exit code: 0 when it is met; 255 when it never can be, or was not within the time of -t.
"""

from lavactl.errors import FAILURE, CommandError
from lavactl.options import VALUE, Grammar, answered, printable
from lavactl.text import units
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

USAGE = """\
Usage: bwait -w "condition" [-t minutes] [-r minutes]
       bwait -h | -V
  -w  a condition as of bsub -w
  -t  gives up after that time; by default never
  -r  asks the master anew after that time without an answer; by default LSB_BWAIT_REREG_INTERVAL, else 10
"""
GRAMMAR = Grammar("bwait", USAGE, dict.fromkeys(("w", "t", "r"), VALUE))
MINUTES_MAX = 525600  # a year
INTERVAL = "LSB_BWAIT_REREG_INTERVAL"
PAUSE_S = 0.2  # before the master is asked again


def main(argv: list[str], io: "Io") -> int:
    """Run bwait."""
    if answered(argv, USAGE, io):
        return 0
    options = GRAMMAR.parse(argv)
    condition = options.last("w")
    if not condition or options.words:
        raise GRAMMAR.wrong("one condition is expected, behind -w")
    if "LSB_JOBID" in io.environ and (io.setting("LSB_BWAIT_IN_JOBS") or "Y").upper() == "N":
        raise CommandError("bwait: not within jobs, whose slots would be kept meanwhile (LSB_BWAIT_IN_JOBS).")
    limit = options.last("t")
    limit_s = None if limit is None else 60.0 * minutes("bwait -t", limit)
    given = options.last("r")
    every = minutes(INTERVAL, io.setting(INTERVAL) or "10") if given is None else minutes("bwait -r", given)
    verdict = wait(condition, limit_s, 60.0 * every, io)
    if verdict == messages.NEVER_HOLDS:
        io.error("The wait condition can never be met any more.")
    elif verdict == messages.WAITING:
        io.error(f"The wait condition was not met within {limit} minutes.")
    return 0 if verdict == messages.HOLDS else FAILURE


def wait(condition: str, limit_s: float | None, every_s: float, io: "Io") -> int:
    """Verdict on a condition; WAITING if there was none in that time."""
    io.stay()
    request, ends_at = messages.WaitRequest(condition=condition), None
    if limit_s is not None:
        ends_at = io.monotonic() + limit_s
    while True:
        left_s = every_s if ends_at is None else min(every_s, ends_at - io.monotonic())
        if left_s <= 0:
            return messages.WAITING
        verdict = io.client().wait(request, left_s)
        if verdict != messages.WAITING:
            return verdict
        io.sleep(PAUSE_S)


def minutes(name: str, text: str) -> int:
    """Number of minutes.

    Raises:
        CommandError: the text is none.
    """
    try:
        return units.read_count(text, 1, MINUTES_MAX)
    except ValueError:
        raise CommandError(f"{name} {printable(text)}: expected a number of minutes from 1 to {MINUTES_MAX}.") from None
