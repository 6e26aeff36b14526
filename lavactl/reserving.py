"""Options of brsvadd and brsvmod, converted to a request. Times are local, in whole minutes."""

import time

from lavactl.errors import CommandError
from lavactl.options import Options, printable
from lavactl.text import units
from lavactl.text.render import long_time
from lavactl.text.unknown import unknown_users
from protos import cluster_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

SYNTAX = "expected [[[year:]month:]day:]hour:minute"


def moment(option: str, text: str, after: float) -> float:
    """The next such date after that time.

    Raises:
        CommandError: malformed date.
    """
    try:
        return units.read_date(text, after)
    except (ValueError, OverflowError):
        raise CommandError(f"{option}: {printable(text)}: {SYNTAX}.") from None


def read_times(request: cluster_pb2.ReserveRequest, options: Options, io: "Io") -> bool:
    """Fill in -b, -e and -t; False if none was given. The current minute counts as future."""
    begin, end, windows = options.last("b"), options.last("e"), options.last("t")
    if windows is not None and (begin is not None or end is not None):
        raise CommandError("-t: a recurring reservation has neither -b nor -e.")
    request.windows = windows or ""
    now = io.now()
    if begin is not None:
        request.begins_at = moment("-b", begin, now - 60)
    if end is not None:
        # An hour alone belongs to the day that -b names; if neither names a day, both are the next such hour from now.
        is_of_that_day = begin is not None and begin.count(":") > end.count(":")
        request.ends_at = moment("-e", end, max(now, request.begins_at) if is_of_that_day else now)
    if begin is not None and end is not None and request.ends_at <= request.begins_at:
        begins, ends = long_time(request.begins_at), long_time(request.ends_at)
        raise CommandError(
            f"The reservation would end ({ends}) before it begins ({begins}); name the day, as in -e day:hour:minute."
        )
    return any(one is not None for one in (begin, end, windows))


def read_holders(words: str, io: "Io") -> list[str]:
    """Names of users, or of a group.

    Raises:
        CommandError: an unknown user or group.
    """
    names = words.split()
    for name in unknown_users(names, io):
        raise CommandError(f"{printable(name)}: Unknown user or user group.")
    return names


def read_hosts(request: cluster_pb2.ReserveRequest, options: Options) -> None:
    """Fill in -n, -m and -R."""
    number = options.last("n")
    if number is not None:
        try:
            request.units = units.read_count(number)
        except ValueError:
            raise CommandError(f"-n: {printable(number)}: expected a number, 1 or more.") from None
    request.hosts.extend((options.last("m") or "").split())
    request.requirement = options.last("R") or ""


def day_range(text: str) -> tuple[float, float]:
    """``year:month:day`` or two of them with a dash between: from the first midnight to the last."""
    begin, _, end = text.partition("-")
    return _midnight(text, begin, 0), _midnight(text, end or begin, 1)


def _midnight(text: str, day: str, later: int) -> float:
    try:
        year, month, number = (units.read_count(part) for part in day.split(":"))
        found = time.mktime((year, month, number + later, 0, 0, 0, 0, 0, -1))
        if time.strptime(day, "%Y:%m:%d"):
            return found
    except (ValueError, OverflowError):
        pass
    raise CommandError(f"-td: {printable(text)}: expected year:month:day[-year:month:day].")
