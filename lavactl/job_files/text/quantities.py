"""Quantities of Kubernetes: ``500m``, ``2``, ``1.5Gi``, ``1e3``."""

import re
from fractions import Fraction

_QUANTITY = re.compile(r"\+?(\d{1,18}(?:\.\d{0,9})?|\.\d{1,9})([eE][+-]?\d{1,2}|[KMGTPE]i|[numkMGTPE]|)")
_SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(1000),
    **{letter: Fraction(1000 ** (at + 2)) for at, letter in enumerate("MGTPE")},
    **{f"{letter}i": Fraction(1024 ** (at + 1)) for at, letter in enumerate("KMGTPE")},
}


def read_quantity(text: str) -> Fraction:
    """Value of a quantity.

    Raises:
        ValueError: it is none, or negative.
    """
    found = _QUANTITY.fullmatch(text)
    if not found:
        raise ValueError(text)
    number, suffix = Fraction(found[1]), found[2]
    if suffix[:1] in ("e", "E") and len(suffix) > 1:
        return number * Fraction(10) ** int(suffix[1:])
    return number * _SUFFIXES[suffix]


def whole(value: Fraction) -> int:
    """Value rounded up."""
    return -(-value.numerator // value.denominator)


def mib(value: Fraction) -> int:
    """MiB of a number of bytes, rounded up."""
    return whole(value / (1 << 20))
