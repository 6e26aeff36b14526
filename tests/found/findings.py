"""The findings of reports from outside, by a key each; and the rows of the table that says which tests hold them.

A finding is a row of a table, a bullet, a numbered item or a paragraph of a report. Its key is its section, a slash and
its own number; where it has none, its place among its kind: ``2.1/*3`` is the third bullet of section 2.1, ``A/#2`` the
second row, ``V1/p1`` the first paragraph. A row with a letter and a number of its own, ``| B12 |``, is known by them.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("table")
HEADING = re.compile(r"(#+) ([^\s.]+(?:\.\d+)*)")
NUMBERED = re.compile(r"(\d+)\. ")
BULLET = re.compile(r" *[*-] ")
LEADING_NUMBER = re.compile(r"\| (\d+(?::\d+)?)")
OWN_NAME = re.compile(r"\| ([A-Z]\d+) \|")


@dataclass(frozen=True)
class Row:
    """A finding in a few words, the tests that hold it, and else the reason why there is none."""

    says: str
    tests: tuple[str, ...] = ()
    reason: str = ""
    benchmark: str = ""


def rows_of(report: str) -> dict[str, Row]:
    """The table's rows about a report, by key; `report` is its path below the folder of reports, without an ending."""
    with (TABLE / f"{report}.toml").open("rb") as file:
        written = tomllib.load(file)
    return {key: Row(**{**row, "tests": tuple(row.get("tests", ()))}) for key, row in written.items()}


def findings_in(text: str) -> list[str]:
    """Keys of all findings of a report, in their order."""
    return [key for key, _ in _Reader(text.splitlines()).read()]


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._section = ""
        self._level = 0
        self._counts: dict[str, int] = {}
        self._seen: set[str] = set()
        self._within = False  # an item or a paragraph, whose lines go on
        self._in_list = False  # an item, whose lines go on indented
        self._has_numbers = False  # the rows of the table begin with numbers
        self._last = 0  # number of the last numbered item

    def read(self) -> Iterator[tuple[str, str]]:
        """Keys with the lines at which their findings begin."""
        for at, line in enumerate(self._lines):
            following = self._lines[at + 1] if at + 1 < len(self._lines) else ""
            if heading := HEADING.match(line):
                if self._is_alone(len(heading[1])):
                    yield self._section[:-1], line
                self._begin("" if line.startswith("# ") else heading[2] + "/", len(heading[1]))
            elif not line.strip():
                self._within = False
            elif _is_rule(line):
                self._has_numbers = bool(LEADING_NUMBER.match(following))
            elif not line.startswith("|"):
                yield from self._text(line)
            elif not _is_rule(following):  # else the head of a table
                yield self._row(line), line

    def _begin(self, section: str, level: int) -> None:
        self._section, self._level, self._counts = section, level, {}
        self._within, self._last = False, 0

    def _is_alone(self, next_level: int) -> bool:
        """True if the section that ends here has said all in its heading."""
        said = self._last or self._counts or any(key.startswith(self._section) for key in self._seen)
        return bool(self._section) and self._level >= next_level and not said

    def _row(self, line: str) -> str:
        if own := OWN_NAME.match(line):
            self._seen.add(own[1])
            return own[1]
        number = LEADING_NUMBER.match(line) if self._has_numbers else None
        return self._key(number[1] if number else self._count("#"))

    def _text(self, line: str) -> Iterator[tuple[str, str]]:
        if BULLET.match(line):
            self._within = self._in_list = True
            yield self._key(self._count("*")), line
            return
        found = [match[1] for match in NUMBERED.finditer(line) if self._is_next(match)]
        for number in found:
            yield self._key(number), line
        if found:
            self._within = self._in_list = True
        elif not self._within or (self._in_list and not line.startswith(" ")):
            self._within, self._in_list = True, False
            yield self._key(self._count("p")), line

    def _key(self, own: str) -> str:
        key = self._section + own
        while key in self._seen:
            key += "+"
        self._seen.add(key)
        return key

    def _is_next(self, match: re.Match[str]) -> bool:
        """True if a number goes on the list: the first begins a line, others may follow within one."""
        before = match.string[: match.start()]
        if int(match[1]) != self._last + 1 or (before and not (self._last and before.endswith(". "))):
            return False
        self._last += 1
        return True

    def _count(self, kind: str) -> str:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"{kind}{self._counts[kind]}"


def _is_rule(line: str) -> bool:
    return line.startswith("|") and set(line) <= set("|-: ")
