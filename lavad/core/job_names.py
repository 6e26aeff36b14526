"""Job names as people give them to choose jobs: ``md_npt``, ``md_*``, ``sweep[3]``, ``*_sweep[3]``.

A star stands for any characters, and is the only character that does; a number in brackets is an element of an array.
"""

import re
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple

_ELEMENT = re.compile(r"(.*)\[([0-9]{1,10})\]\Z", re.DOTALL)


class NamePattern(NamedTuple):
    """Which names are meant, and which element of arrays; None: plain jobs, and arrays with all elements."""

    name: re.Pattern[str]
    element: int | None = None

    def admits(self, name: str) -> bool:
        """Is a job or an array of this name meant?"""
        return self.name.match(name) is not None


@lru_cache(maxsize=64)
def name_pattern(text: str) -> NamePattern:
    """The pattern that somebody typed."""
    found = _ELEMENT.match(text)
    name, element = (found[1], int(found[2])) if found else (text, None)
    literal = re.sub(r"[?\[]", r"[\g<0>]", name)  # translate also knows these; it makes patterns that never take long
    return NamePattern(re.compile(translate(literal)), element)
