"""Time intervals of bacct and bhist: ``time0,time1``, either of them left out, or one time for all of its unit.

A time is ``[[year/]month/]day[/[hour:[minute]]]``, ``hour:[minute]``, ``.`` for now, or relative to now: ``.-4/`` days,
``.-4:`` hours, ``.-4`` minutes. ``@`` is the whole present day. Parsers raise ``ValueError``.
"""

import time

from lavactl.text.units import is_digits

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
_YEARS = range(1970, 10000)


def read_interval(text: str, now: float) -> tuple[float, float]:
    """First and last moment of an interval, both included; 0 for an open end."""
    first, comma, last = text.strip().partition(",")
    if not comma:
        if not first:
            raise ValueError(text)
        begin, unit_s = read_time(first, now)
        return begin, now if first == "." else _end(begin, unit_s)
    if not first and not last:
        raise ValueError(text)
    begin = read_time(first, now)[0] if first else 0.0
    end = _end(*read_time(last, now)) if last else 0.0
    if last and end < begin:
        raise ValueError(text)
    return begin, end


def _end(begin: float, unit_s: int) -> float:
    """Last moment of the unit that a time names; of a day the local one, which may be longer than 24 hours."""
    if unit_s != DAY_S:
        return begin + max(unit_s, 1) - 1e-6
    day = time.localtime(begin)
    return time.mktime((day.tm_year, day.tm_mon, day.tm_mday + 1, 0, 0, 0, 0, 0, -1)) - 1e-6


def read_time(text: str, now: float) -> tuple[float, int]:
    """(moment, seconds of the unit that it names)."""
    text = text.strip()
    if text == "@":
        return _moment(time.localtime(now)[:3], 0, 0), DAY_S
    if text.startswith("."):
        return _relative(text[1:], now), 0
    return _absolute(text, now)


def _relative(text: str, now: float) -> float:
    if not text:
        return now
    sign, number = text[0], text[1:].rstrip("/:")
    unit = text[1 + len(number) :]
    if sign not in "+-" or not is_digits(number) or unit not in ("", "/", ":"):
        raise ValueError(text)
    seconds = int(number[:9]) * {"": MINUTE_S, ":": HOUR_S, "/": DAY_S}[unit]
    return max(0.0, now + seconds if sign == "+" else now - seconds)


def _absolute(text: str, now: float) -> tuple[float, int]:
    today = time.localtime(now)
    date, clock = [part for part in text.split("/") if part], ""
    if date and ":" in date[-1]:
        clock = date.pop()
    if not all(map(is_digits, date)) or len(date) > 3 or not (date or clock):
        raise ValueError(text)
    given = [int(part) for part in date]
    whole = (*today[: 3 - len(given)], *given)
    hour, _, minute = clock.partition(":")
    if not clock:
        return _moment(whole, 0, 0), DAY_S
    if not is_digits(hour) or (minute and not is_digits(minute)):
        raise ValueError(text)
    return _moment(whole, int(hour), int(minute or 0)), MINUTE_S if minute else HOUR_S


def _moment(date: tuple[int, ...], hour: int, minute: int) -> float:
    year, month, day = date
    if year not in _YEARS or not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60):
        raise ValueError(f"{year}/{month}/{day}/{hour}:{minute}")
    moment = time.mktime((year, month, day, hour, minute, 0, 0, 0, -1))
    if time.localtime(moment).tm_mday != day:
        raise ValueError(f"{year}/{month}/{day}")
    return moment
