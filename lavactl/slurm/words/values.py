"""Values of Slurm's options: times, sizes, counts, arrays, dates, generic resources. Pure.

Invariant: a malformed value raises ``ValueError``, and the caller words the sentence.
"""

import re
import time
from typing import NamedTuple

from lavactl.text import units

DAY_S, HOUR_S, MINUTE_S = 86400, 3600, 60
UNLIMITED = ("unlimited", "infinite", "-1")
_UNITS = {"second": 1, "minute": MINUTE_S, "hour": HOUR_S, "day": DAY_S, "week": 7 * DAY_S}
_CLOCKS = {"midnight": (0, 0), "noon": (12, 0), "fika": (15, 0), "teatime": (16, 0), "elevenses": (11, 0)}


def read_time_s(text: str) -> int:
    """Seconds of minutes, m:s, h:m:s, d-h, d-h:m or d-h:m:s; 0 for no limit."""
    if text.strip().lower() in (*UNLIMITED, "0"):
        return 0
    days, dash, clock = text.strip().rpartition("-")
    fields = [units.read_count(part, 0, 1 << 30) for part in clock.split(":")]
    if len(fields) > 3:
        raise ValueError(text)
    if dash:
        weights: tuple[int, ...] = (HOUR_S, MINUTE_S, 1)
        seconds = units.read_count(days, 0, 1 << 20) * DAY_S
    else:
        weights = {1: (MINUTE_S,), 2: (MINUTE_S, 1), 3: (HOUR_S, MINUTE_S, 1)}[len(fields)]
        seconds = 0
    seconds += sum(field * weight for field, weight in zip(fields, weights, strict=False))
    if not 0 < seconds < 1 << 31:
        raise ValueError(text)
    return seconds


def time_text(seconds: float) -> str:
    """Duration as squeue and sacct write it: 0:05, 12:30, 1:02:03, 2-01:00:00."""
    days, rest = divmod(int(max(seconds, 0)), DAY_S)
    hours, rest = divmod(rest, HOUR_S)
    minutes, left = divmod(rest, MINUTE_S)
    if days:
        return f"{days}-{hours:02d}:{minutes:02d}:{left:02d}"
    return f"{hours}:{minutes:02d}:{left:02d}" if hours else f"{minutes}:{left:02d}"


def long_time_text(seconds: float) -> str:
    """Duration with all its fields: 00:00:05, 2-01:00:00."""
    text = time_text(seconds)
    days, dash, clock = text.rpartition("-")
    return days + dash + ":".join(part.zfill(2) for part in ("00:" * (2 - clock.count(":")) + clock).split(":"))


def read_mib(text: str, unit: str = "M") -> int:
    """MiB of a size such as 4G; 0 for all of the node's memory."""
    return 0 if text.strip() in ("0", *(f"0{letter}" for letter in "KMGT")) else units.read_memory_mib(text, unit)


def read_count(text: str) -> int:
    """A number of at least 1; k and m multiply."""
    found = re.fullmatch(r"([0-9]{1,9})([kKmM]?)", text.strip())
    if not found or not int(found[1]):
        raise ValueError(text)
    return int(found[1]) * {"": 1, "k": 1024, "m": 1048576}[found[2].lower()]


def read_nodes(text: str) -> tuple[int, int]:
    """(least, most) of --nodes: 2, 2-4."""
    low, dash, high = text.strip().partition("-")
    least = read_count(low)
    most = read_count(high) if dash else least
    if most < least:
        raise ValueError(text)
    return least, most


class Array(NamedTuple):
    """Index list of --array: ranges from 1, what they exceed Slurm's numbers by, and the limit (0: none)."""

    ranges: list[tuple[int, int, int]]
    base: int
    limit: int


def read_array(text: str) -> Array:
    """Index list such as 0-15:4,20%3. Slurm counts from 0 and lava from 1: a list with a 0 is moved by one."""
    body, percent, tail = text.strip().partition("%")
    limit = units.read_count(tail, 1) if percent else 0
    parts = [_read_range(part.strip()) for part in body.split(",")]
    base = 1 if any(first == 0 for first, _, _ in parts) else 0
    moved = ",".join(
        f"{first + base}-{last + base}:{step}" if last > first else str(first + base) for first, last, step in parts
    )
    return Array(units.read_index_list(moved), base, limit)


def _read_range(part: str) -> tuple[int, int, int]:
    span, colon, step = part.partition(":")
    first, dash, last = span.partition("-")
    low = units.read_count(first, 0, units.INDEX_MAX - 1)
    high = units.read_count(last, low, units.INDEX_MAX - 1) if dash else low
    return low, high, units.read_count(step, 1, units.INDEX_MAX) if colon else 1


class Gpus(NamedTuple):
    """GPUs: how many, and the beginning of their model's name (empty: any)."""

    number: int
    model: str


def read_gpus(text: str) -> Gpus:
    """Number of --gpus and its kin: 2, a100:2."""
    model, colon, count = text.strip().rpartition(":")
    if "," in text:
        raise ValueError(text)
    return Gpus(units.read_count(count, 0, 1024), model if colon else "")


def read_gres(text: str) -> tuple[Gpus | None, list[tuple[str, int]]]:
    """(GPUs, other generic resources with their counts) of --gres: gpu, gpu:2, gpu:a100:2, license:3."""
    gpus, others = None, []
    for part in text.split(","):
        words = part.strip().removeprefix("gres:").removeprefix("gres/").replace("=", ":").split(":")
        name, rest = words[0], [re.sub(r"\(.*\)$", "", word) for word in words[1:]]
        if not name:
            raise ValueError(text)
        if name == "none":
            continue
        count = rest.pop() if rest and units.is_digits(rest[-1]) else "1"
        if name == "gpu" and gpus is not None:
            raise ValueError(text)  # of two models: a job has GPUs of one
        if name == "gpu":
            gpus = Gpus(units.read_count(count, 0, 1024), rest[0] if rest else "")
        elif rest:
            raise ValueError(text)
        else:
            others.append((name, units.read_count(count, 1)))
    return gpus, others


def read_moment(text: str, now: float, *, is_past: bool = False) -> float:
    """Seconds since the epoch of --begin, --starttime: now+1hour, 16:00, tomorrow, 2026-11-21T09:30, 11/21/26.

    Args:
        is_past: a time of day without a date is the last one, not the next.
    """
    plain = text.strip().lower()
    if plain.startswith("now"):
        return now + _read_offset(plain[3:])
    today = time.localtime(now)
    day = (today.tm_year, today.tm_mon, today.tm_mday)
    if plain in ("today", "tomorrow"):
        return _moment((day[0], day[1], day[2] + (plain == "tomorrow")), (0, 0, 0))
    if plain in _CLOCKS:
        return _of_day(day, (*_CLOCKS[plain], 0), now, is_past)
    date, separator, clock = text.strip().partition("T")
    if not separator and ("-" in date or "/" in date):
        date, _, clock = date.partition("-") if "/" in date else (date, "", "")
    elif not separator:
        return _of_day(day, _read_clock(date), now, is_past)
    return _moment(_read_day(date, day[0]), _read_clock(clock) if clock else (0, 0, 0))


def _read_offset(text: str) -> int:
    if not text:
        return 0
    found = re.fullmatch(r"([+-])([0-9]{1,9})([a-z]*)", text)
    if not found:
        raise ValueError(text)
    unit = next((seconds for name, seconds in _UNITS.items() if name.startswith(found[3].removesuffix("s"))), 0)
    if not unit:
        raise ValueError(text)
    seconds = int(found[2]) * (unit if found[3] else 1)
    return seconds if found[1] == "+" else -seconds


def _read_clock(text: str) -> tuple[int, int, int]:
    found = re.fullmatch(r"(\d{1,2}):(\d{2})(?::(\d{2}))?\s*(am|pm)?", text.strip().lower())
    if not found:
        raise ValueError(text)
    hour, minute, second = int(found[1]), int(found[2]), int(found[3] or 0)
    if found[4]:
        hour = hour % 12 + (12 if found[4] == "pm" else 0)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(text)
    return hour, minute, second


def _read_day(text: str, year: int) -> tuple[int, int, int]:
    if found := re.fullmatch(r"(?:(\d{4})-)?(\d{1,2})-(\d{1,2})", text):
        day = int(found[1] or year), int(found[2]), int(found[3])
    elif found := re.fullmatch(r"(\d{1,2})/(\d{1,2})(?:/(\d{2,4}))?", text):
        given = int(found[3]) if found[3] else year
        day = given + 2000 if given < 100 else given, int(found[1]), int(found[2])
    else:
        raise ValueError(text)
    if time.localtime(_moment(day, (12, 0, 0)))[:3] != day:
        raise ValueError(text)  # the calendar has no such day
    return day


def _moment(day: tuple[int, int, int], clock: tuple[int, int, int]) -> float:
    """Time of a day, which may be one before or behind its month."""
    return time.mktime((*day, *clock, 0, 0, -1))


def _of_day(day: tuple[int, int, int], clock: tuple[int, int, int], now: float, is_past: bool) -> float:
    """Next such time of day from now on, or the last one."""
    moment, step = _moment(day, clock), -1 if is_past else 1
    return moment if (moment > now) != is_past else _moment((day[0], day[1], day[2] + step), clock)


def moment_text(moment: float, absent: str = "N/A") -> str:
    """Time as Slurm writes it: 2026-11-21T09:30:00."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(moment)) if moment else absent
