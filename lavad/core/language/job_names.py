"""Job names as people give them to choose jobs: ``md_npt``, ``md_*``, ``sweep[3]``, ``*_sweep[1-4:3,9]``.

A star stands for any characters, and is the only character that does; an index list in brackets names elements of
arrays.
"""

import re
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple

from lavad.core.model.ranges import Ranges

_PART = r"[0-9]{1,10}(?:-[0-9]{1,10}(?::[0-9]{1,10})?)?"
_ELEMENTS = re.compile(rf"(.*)\[({_PART}(?:,{_PART})*)\]\Z", re.DOTALL)
_OVERLAPPING_MAX = 1_000_000  # indices that are written out to be joined


class NamePattern(NamedTuple):
    """Which names are meant, and which elements of arrays; None: plain jobs, and arrays with all elements."""

    name: re.Pattern[str]
    elements: Ranges | None = None

    def admits(self, name: str) -> bool:
        """Is a job or an array of this name meant?"""
        return self.name.match(name) is not None


@lru_cache(maxsize=64)
def name_pattern(text: str) -> NamePattern:
    """The pattern that somebody typed."""
    found = _ELEMENTS.match(text)
    elements = _elements(found[2]) if found else None
    name = found[1] if found and elements is not None else text
    literal = re.sub(r"[?\[]", r"[\g<0>]", name)  # translate also knows these; it makes patterns that never take long
    return NamePattern(re.compile(translate(literal)), elements)


def _elements(text: str) -> Ranges | None:
    """The indices of a list; None for one that cannot be meant so."""
    words = [[int(number) for number in re.split("[-:]", word)] for word in text.split(",")]
    parts = [
        range(word[0], (word[1] if word[1:] else word[0]) + 1, (word[2] or 1) if word[2:] else 1) for word in words
    ]
    return None if len(parts) > 1 and sum(map(len, parts)) > _OVERLAPPING_MAX else Ranges(parts)
