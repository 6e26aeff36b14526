"""Exit codes that requeue a job (REQUEUE_EXIT_VALUES, bsub -Q), and those that also exclude its host.

``30 40-45 EXCLUDE(20 21)``, or ``all ~0 ~128-255``: all codes but some. A killed job is never requeued.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from lavad.core.model.reasons import Refused

_TOKEN = re.compile(
    r"\s*(?:(?P<open>EXCLUDE\s*\()|(?P<close>\))|(?P<all>~?all\b)|(?P<range>~?\d{1,3}(?:-\d{1,3})?)\b)", re.IGNORECASE
)
_CODES = re.compile(r"\d{1,3}(-\d{1,3})?", re.ASCII)
_CODE_MAX = 255
ABORT = 99  # of a pre-execution command: the job is ended at once
_TEXT_MAX = 4094


@dataclass(frozen=True, slots=True)
class Requeue:
    """Exit codes that requeue: ``codes`` all of them, ``excluding`` those that also exclude the job's last host."""

    codes: frozenset[int] = frozenset()
    excluding: frozenset[int] = frozenset()


@lru_cache(maxsize=1024)
def parse(text: str) -> Requeue:
    """Parse the exit values.

    Raises:
        Refused: bad syntax, with the character.
    """
    at, end = 0, len(text.rstrip())
    if end > _TEXT_MAX:
        raise Refused(f"Bad requeue exit values: longer than {_TEXT_MAX} characters")
    sets: dict[bool, set[int]] = {False: set(), True: set()}
    negated: set[int] = set()
    inside = False
    while at < end:
        token = _TOKEN.match(text, at)
        if token is None or (token["open"] and inside) or (token["close"] and not inside):
            raise _bad(text, at)
        if token["open"] or token["close"]:
            inside = bool(token["open"])
        elif token["all"]:
            if token["all"].startswith("~"):
                raise _bad(text, at)
            sets[inside] |= set(range(_CODE_MAX + 1))
        else:
            codes = _codes(token["range"], text, at)
            if token["range"].startswith("~"):
                negated |= codes
            else:
                sets[inside] |= codes
        at = token.end()
    if inside:
        raise _bad(text, end)
    return Requeue(frozenset((sets[False] | sets[True]) - negated), frozenset(sets[True] - negated))


def check_success(text: str) -> None:
    """Check exit codes that mean success: ``3 10-12``.

    Raises:
        Refused: bad syntax.
    """
    if len(text) > _TEXT_MAX or not all(map(_CODES.fullmatch, text.split())):
        raise Refused(f"LSB_SUCCESS_EXIT_VALUES: expected exit codes from 0 to {_CODE_MAX}, as in 3 10-12")
    parse(text)


def _codes(word: str, text: str, at: int) -> set[int]:
    first, _, last = word.lstrip("~").partition("-")
    low, high = int(first), int(last or first)
    if not low <= high <= _CODE_MAX:
        raise _bad(text, at)
    return set(range(low, high + 1))


def _bad(text: str, at: int) -> Refused:
    found = repr(text[at:].strip()[:20]) if text[at:].strip() else "the end"
    expected = f"exit codes from 0 to {_CODE_MAX}, all, ~code or EXCLUDE(code ...)"
    return Refused(f"Bad requeue exit values at character {at + 1}: expected {expected}, found {found}")
