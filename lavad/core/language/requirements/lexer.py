"""Tokens of a requirement, each with its place, so that errors can name the character."""

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from lavad.core.model.reasons import Refused

UNIT_MIB = {"K": 1 / 1024, "M": 1.0, **{letter: 1024.0**power for power, letter in enumerate("GTPEZ", 1)}}
# Far above the sizes of hosts, and far below those whose sums over hosts and tasks exceed 64 bits.
MEMORY_MAX_MIB = 1 << 40
COUNT_MAX = 1_000_000
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[KMGTPEZ]B?)?(?![\w]))|(?P<name>[A-Za-z_][\w.\-]*)|(?P<string>'[^']*'|\"[^\"]*\")"
    r"|(?P<op>\|\||&&|==|!=|>=|<=|[-+*/<>()!=,:\[\]])|(?P<bad>\S))"
)
_AFTER_COMPARISON = ("==", "!=", "=")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "": 60.0}


class Token(NamedTuple):
    """One token. ``kind`` is number, name, string, op, or end; ``at`` counts from 0 in the whole requirement."""

    kind: str
    word: str
    at: int


def bad(at: int, what: str) -> Refused:
    """Refusal for a mistake at a place."""
    return Refused(f"Bad resource requirement syntax at character {at + 1}: {what}")


def tokens(text: str, at: int) -> Iterator[Token]:
    """Split a text that begins at character ``at`` into tokens; the last one is of kind end.

    Raises:
        Refused: an invalid character.
    """
    text, place, before = text.rstrip(), 0, ""
    while found := _TOKEN.match(text, place):
        kind = found.lastgroup or "bad"
        word, start = found.group(kind), found.start(kind)
        if kind == "bad":
            raise bad(at + start, f"did not expect {word!r}")
        if kind == "name" and before not in _AFTER_COMPARISON:
            word = word.partition("-")[0]  # a minus, except in strings to compare with, such as host names
        yield Token(kind, word, at + start)
        place, before = start + len(word), word
    yield Token("end", "", at + len(text))


class Reader:
    """Cursor over the tokens of a text."""

    def __init__(self, text: str, at: int) -> None:
        self._tokens = list(tokens(text, at))
        self._place = 0

    @property
    def next(self) -> Token:
        """The next token, without taking it."""
        return self._tokens[self._place]

    @property
    def compared(self) -> str:
        """Name before the comparison sign that precedes the last word taken; empty if no comparison does."""
        if self._place < 3 or self._tokens[self._place - 2].word not in _AFTER_COMPARISON:
            return ""
        return self._tokens[self._place - 3].word

    def take(self) -> Token:
        """Take the next token; refused at the end."""
        token = self._tokens[self._place]
        if token.kind == "end":
            raise bad(token.at, "it ends too early")
        self._place += 1
        return token

    def skip(self, word: str) -> bool:
        """Take this sign if it is next."""
        if self.next.word != word or self.next.kind == "end":
            return False
        self._place += 1
        return True

    def expect(self, word: str) -> None:
        """Take this sign; refused if another is next."""
        if not self.skip(word):
            found = repr(self.next.word) if self.next.word else "the end"
            raise bad(self.next.at, f"expected {word!r}, found {found}")

    def expect_end(self) -> None:
        """Refuse anything but the end."""
        if self.next.kind != "end":
            raise bad(self.next.at, f"did not expect {self.next.word!r} here")


def number(text: str, at: int) -> float:
    """Parse a finite number."""
    try:
        return _finite(float(text), at)
    except ValueError:
        raise bad(at, f"expected a number, found {text!r}") from None


def _finite(value: float, at: int) -> float:
    if not math.isfinite(value):
        raise bad(at, "this number is too large")
    return value


def whole(value: float, most: int, at: int) -> int:
    """Round up; refused beyond ``most``, since scheduling counts in 64 bits."""
    if not 0 <= value <= most:
        raise bad(at, f"expected a number from 0 to {most}")
    return math.ceil(value)


def count(text: str, at: int, least: int = 1) -> int:
    """Parse a whole number within bounds."""
    if not (text.isascii() and text.isdigit()) or not least <= float(text) <= COUNT_MAX:
        raise bad(at, f"expected a whole number from {least} to {COUNT_MAX}, found {text!r}")
    return int(text)


def size_mib(text: str, at: int, unit_mib: float = 1.0) -> float:
    """Parse a size such as 2000 or 4GB, into MiB; ``unit_mib`` is the unit of one that has none."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGTPEZ]?)B?", text, re.IGNORECASE)
    if not found:
        raise bad(at, f"expected a size such as 2000 or 4GB, found {text!r}")
    unit = UNIT_MIB[found.group(2).upper()] if found.group(2) else unit_mib
    return _finite(float(found.group(1)) * unit, at)


def seconds(text: str, at: int) -> float:
    """Parse a duration such as 10, 10m, 2h or 90s, into seconds; without a unit it is in minutes."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text.strip(), re.IGNORECASE | re.ASCII)
    if not found:
        raise bad(at, f"expected a duration such as 10, 90s or 2h, found {text!r}")
    value = float(found.group(1)) * _SECONDS[found.group(2).lower()]
    if value > 1e9:
        raise bad(at, "this duration is longer than 30 years")
    return value


def shown(value: float) -> str:
    """Decimal text of a number, of whole ones without a point."""
    return str(int(value)) if value == int(value) else repr(value)
