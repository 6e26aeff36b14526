"""Suggestion of a known name in place of one that is unknown."""

import difflib
from collections.abc import Iterable

NEAR = 0.75  # similarity for a suggestion: three letters of four


def hint(name: str, known: Iterable[str], nearness: float = NEAR) -> str:
    """Suggest a near name, as the end of a sentence; empty if there is none.

    Names that differ only in digits are not near: another host is not what was meant.
    """
    letters = without_digits(name)
    others = [one for one in known if without_digits(one) != letters or letters == name]
    close = difflib.get_close_matches(name, others, 1, nearness)
    return f"; did you mean {close[0]}?" if close else ""


def without_digits(name: str) -> str:
    """Return a name without its digits."""
    return name.translate(_NO_DIGITS)


_NO_DIGITS = str.maketrans("", "", "0123456789")
