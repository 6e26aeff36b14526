"""Patterns of job names with which commands select jobs: ``md_npt``, ``md_*``, ``sweep[3]``, ``*_sweep[1-4:3,9]``.

An asterisk matches any characters, and no other character is special; an index list in brackets selects elements of
arrays.
"""

import re
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple

from lavad.core.model.ranges import Ranges
from protos import names

_PART = r"[0-9]{1,10}(?:-[0-9]{1,10}(?::[0-9]{1,10})?)?"
_ELEMENTS = re.compile(rf"(.*)\[({_PART}(?:,{_PART})*)\]\Z", re.DOTALL)
_OVERLAPPING_MAX = 1_000_000  # indices in overlapping lists that are joined one by one


class NamePattern(NamedTuple):
    """Pattern of names, and the elements of arrays; None: plain jobs, and arrays with all elements."""

    name: re.Pattern[str]
    elements: Ranges | None = None

    def admits(self, name: str) -> bool:
        """True if the name of a job or array matches."""
        return self.name.match(name) is not None


@lru_cache(maxsize=64)
def name_pattern(text: str) -> NamePattern:
    """Parse a pattern."""
    found = _ELEMENTS.match(text)
    elements = _elements(found[2]) if found else None
    name = found[1] if found and elements is not None else text
    literal = re.sub(r"[?\[]", r"[\g<0>]", name)  # fnmatch treats these as special; its patterns match in linear time
    return NamePattern(re.compile(translate(literal)), elements)


def name_shown(text: bytes) -> str:
    """Name of a job in lists, by its packed texts: its own, or that of its command if it has none."""
    name, command, _ = text.split(b"\0", 2)
    return name.decode(errors="surrogateescape") or names.of_command(command.decode(errors="surrogateescape"))


def _elements(text: str) -> Ranges | None:
    """Indices of a list; None if the text is no valid list."""
    words = [[int(number) for number in re.split("[-:]", word)] for word in text.split(",")]
    parts = [
        range(word[0], (word[1] if word[1:] else word[0]) + 1, (word[2] or 1) if word[2:] else 1) for word in words
    ]
    return None if len(parts) > 1 and sum(map(len, parts)) > _OVERLAPPING_MAX else Ranges(parts)
