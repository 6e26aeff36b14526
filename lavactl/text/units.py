"""Numbers as users type and read them: run limits, memory, dates, index lists.

Invariants: parsers raise ``ValueError`` and leave the wording to the caller; memory is in MiB inside lava, and parsed
values are rounded up, never below the request.
"""

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

INDEX_MAX = 2147483646
ELEMENTS_MAX = 1_000_000

_EXPONENT = {"K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6, "Z": 7}


def read_minutes(text: str) -> int:
    """Seconds of ``[hours:]minutes``; more than zero."""
    hours, colon, minutes = text.partition(":")
    if not colon:
        hours, minutes = "0", hours
    if not (is_digits(hours) and is_digits(minutes)):
        raise ValueError(text)
    seconds = (int(hours) * 60 + int(minutes)) * 60
    if not 0 < seconds < 1 << 31:
        raise ValueError(text)
    return seconds


def read_size(text: str, unit: str) -> int:
    """Bytes of ``number[K|M|G|T|P|E|Z][B]``, rounded up to MiB with a fraction; ``unit`` is the default letter."""
    number, letter = text.strip().upper().removesuffix("B"), unit[:1].upper()
    if number[-1:] in _EXPONENT:
        number, letter = number[:-1].rstrip(), number[-1]
    if not is_digits(number):
        return read_memory_mib(text, unit) << 20
    if (size := int(number) << (10 * _EXPONENT[letter])) >= 1 << 62:
        raise ValueError(text)
    return size


def read_memory_mib(text: str, unit: str) -> int:
    """MiB of ``number[K|M|G|T|P|E|Z][B]``, rounded up; ``unit`` is the default letter."""
    number = text.strip().upper().removesuffix("B")
    if number and number[-1] in _EXPONENT:
        number, unit = number[:-1].rstrip(), number[-1]
    exponent = _EXPONENT[unit[0].upper()] - 2 if unit[:1].upper() in _EXPONENT else 0
    whole, _, fraction = number.partition(".")
    if not is_digits(whole or "0") or not is_digits(fraction or "0") or not whole + fraction or len(number) > 30:
        raise ValueError(text)
    scaled = int(whole + fraction)
    divisor: int = 10 ** len(fraction)
    if exponent >= 0:
        scaled <<= 10 * exponent
    else:
        divisor <<= 10
    mib = -(-scaled // divisor)
    if not 0 < mib < 1 << 53:
        raise ValueError(text)
    return mib


def read_count(text: str, least: int = 1, most: int = 2**31 - 1) -> int:
    """A plain decimal number within bounds."""
    if not is_digits(text) or not least <= int(text) <= most:
        raise ValueError(text)
    return int(text)


def read_count_range(text: str) -> tuple[int, int]:
    """(least, most) of ``min[,max]``."""
    low, comma, high = text.partition(",")
    least = read_count(low.strip())
    most = read_count(high.strip()) if comma else least
    if most < least:
        raise ValueError(text)
    return least, most


def read_index_list(text: str) -> list[tuple[int, int, int]]:
    """(first, last, step) of each part of ``1-10:2,15``; overlapping parts are merged, no part is empty."""
    ranges = [_read_index_range(part.strip()) for part in text.split(",")]
    if overlap(ranges):
        return _merge(ranges)
    return ranges


def _read_index_range(part: str) -> tuple[int, int, int]:
    span, colon, step_text = part.partition(":")
    first_text, dash, last_text = span.partition("-")
    first = read_count(first_text.strip(), 1, INDEX_MAX)
    last = read_count(last_text.strip(), first, INDEX_MAX) if dash else first
    step = read_count(step_text.strip(), 1, INDEX_MAX) if colon else 1
    if colon and not dash:
        raise ValueError(part)
    last -= (last - first) % step
    return first, last, step if last > first else 1


def overlap(ranges: list[tuple[int, int, int]]) -> bool:
    """True if two ranges may share an index."""
    ordered = sorted(ranges)
    return any(ordered[place][1] >= ordered[place + 1][0] for place in range(len(ordered) - 1))


def _merge(ranges: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    if sum((last - first) // step + 1 for first, last, step in ranges) > ELEMENTS_MAX:
        raise ValueError("overlapping index ranges of more than a million elements")
    indices = sorted({index for first, last, step in ranges for index in range(first, last + 1, step)})
    merged = []
    start = 0
    while start < len(indices):
        step = indices[start + 1] - indices[start] if start + 1 < len(indices) else 1
        end = start
        while end + 1 < len(indices) and indices[end + 1] - indices[end] == step:
            end += 1
        if end - start == 1 and step > 1:
            end = start  # two distant elements read better apart
        merged.append((indices[start], indices[end], step if end > start else 1))
        start = end + 1
    return merged


def read_date(text: str, now: float) -> float:
    """Seconds since the epoch of ``[[[year:]month:]day:]hour:minute``: the next such moment after ``now``."""
    fields = [read_count(part, 0, 9999) for part in text.split(":")]
    if not 2 <= len(fields) <= 5:
        raise ValueError(text)
    given = [None] * (5 - len(fields)) + fields
    year, month, day, hour, minute = given
    if hour is None or minute is None or hour > 23 or minute > 59:
        raise ValueError(text)
    today = time.localtime(now)
    for step in range(13):
        moment = _candidate(today, (year, month, day, hour, minute), step)
        if moment is not None and (moment > now or year is not None):
            return moment
    raise ValueError(text)


def _candidate(
    today: time.struct_time, given: tuple[int | None, int | None, int | None, int, int], step: int
) -> float | None:
    """The given date, completed from today and moved ``step`` times by its smallest omitted unit."""
    year, month, day, hour, minute = given
    if day is None:
        moment = time.mktime((today.tm_year, today.tm_mon, today.tm_mday + step, hour, minute, 0, 0, 0, -1))
        return moment
    if month is None:
        months = today.tm_mon - 1 + step
        year, month = today.tm_year + months // 12, months % 12 + 1
    elif year is None:
        year = today.tm_year + step
    if not 1 <= month <= 12 or not 1 <= day <= 31 or not 1970 <= year <= 9999:
        raise ValueError
    moment = time.mktime((year, month, day, hour, minute, 0, 0, 0, -1))
    return moment if time.localtime(moment).tm_mday == day else None


def is_digits(text: str) -> bool:
    """True for ASCII digits, at least one and at most 20."""
    return text.isascii() and text.isdigit() and len(text) <= 20


def number_text(number: float) -> str:
    """Number with all its digits and without an exponent: ``300``, ``0.1``, ``12345678``.

    The digits that a float has beyond its fifteenth are those of its rounding, as in 0.1 + 0.2, and are left out.
    """
    text = f"{number:.15g}"
    if "e" not in text:
        return text
    return f"{number:.0f}" if abs(number) >= 1 else f"{number:.15f}".rstrip("0").rstrip(".")


def size(mib: float) -> str:
    """Memory as load tables show it: 512M, 40G, 3T; at most five characters."""
    if mib < 10_000:
        return f"{mib:.0f}M"
    gib = mib / 1024
    return f"{gib:.0f}G" if gib < 10_000 else f"{gib / 1024:.0f}T"


def mbytes(mib: float) -> str:
    """Memory as job displays show it: ``512 Mbytes``, ``2.5 Gbytes``."""
    if mib < 1024:
        return f"{mib:.0f} Mbytes"
    gib = mib / 1024
    return f"{gib:.1f} Gbytes".replace(".0 ", " ") if gib < 1024 else f"{gib / 1024:.1f} Tbytes".replace(".0 ", " ")


def index_text(ranges: "Iterable[tuple[int, int, int]]") -> str:
    """Index list as a user would type it."""
    parts = []
    for first, last, step in ranges:
        part = str(first) if last <= first else f"{first}-{last}"
        parts.append(part if step <= 1 or last <= first else f"{part}:{step}")
    return ",".join(parts)
