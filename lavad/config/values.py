"""Readers of single values in LSF's files: numbers, switches, times, sizes, windows, thresholds.

Each raises ``Wrong`` with what was expected; the caller knows the name, the file and the line.
"""

import re
import shlex
import signal
from fractions import Fraction

from lavad.core.language.numbers import number_text
from lavad.core.language.requirements import gpu
from lavad.core.model.checkpoints import CheckpointTerms
from lavad.core.model.reasons import Refused
from lavad.core.model.rules.queues import QueueChecks, Threshold
from lavad.core.model.rules.resources import SizeUnits
from lavad.core.model.windows import Window
from protos.names import is_checkpoint

LARGEST = 2_147_483_647
WEEK_MIN = 7 * 24 * 60
MEMORY_MAX_MIB = 1 << 40
_UNITS_KIB = {"K": 1, "M": 1 << 10, "G": 1 << 20, "T": 1 << 30, "P": 1 << 40, "E": 1 << 50, "Z": 1 << 60}
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([KMGTPEZ]?)B?$", re.IGNORECASE)
_TIME = re.compile(r"(?:(\d{1,7}):)?(\d{1,7})(?:/(\S+))?$")
_MOMENT = re.compile(r"(?:([0-7]):)?(\d{1,2})(?::(\d{1,2}))?$")
_SIGNAL_OR_COMMAND = re.compile(r"(SUSPEND|RESUME|TERMINATE)\s*\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\s*", re.IGNORECASE)


class Wrong(ValueError):
    """Invalid value; the message says what was expected."""


def bare(text: str) -> str:
    """Return a list without the parentheses that stand around all of it."""
    inner = text.strip()
    return inner[1:-1].strip() if inner.startswith("(") and inner.endswith(")") else inner


def integer(text: str, least: int = 0, most: int = LARGEST) -> int:
    """Read a plain number within bounds."""
    if not re.fullmatch(r"-?\d{1,18}", text) or not least <= int(text) <= most:
        raise Wrong(f"expected a whole number from {least} to {most}")
    return int(text)


def above_one(text: str) -> bool:
    """Return True if a text is a number above one."""
    return text.isdigit() and int(text) > 1


def decimal(text: str, least: float = 0.0, most: float = 1e9) -> float:
    """Read a number that may have a fraction."""
    if not re.fullmatch(r"\d{1,12}(\.\d{0,9})?|\.\d{1,9}", text) or not least <= float(text) <= most:
        raise Wrong(f"expected a number from {number_text(least)} to {number_text(most)}")
    return float(text)


def switch(text: str) -> bool:
    """Read Y or N, as LSF's files spell it."""
    word = text.strip().lower()
    if word in ("y", "yes", "1", "true", "on"):
        return True
    if word in ("n", "no", "0", "false", "off"):
        return False
    raise Wrong("expected Y or N")


def minutes_s(text: str) -> tuple[int, str]:
    """Read ``[hours:]minutes[/host]``: seconds, and the host or model they refer to."""
    found = _TIME.match(text)
    if not found:
        raise Wrong("expected [hours:]minutes[/host]")
    seconds = (int(found[1] or 0) * 60 + int(found[2])) * 60
    if not 0 < seconds <= LARGEST:
        raise Wrong("expected a time limit above 0")
    return seconds, found[3] or ""


def default_and_most_s(text: str) -> tuple[int, int]:
    """Read ``[default] maximum`` of a time limit, in seconds; the default is 0 if absent."""
    words = text.split()
    if not 1 <= len(words) <= 2:
        raise Wrong("expected [default] maximum, each [hours:]minutes[/host]")
    return _ordered([minutes_s(word)[0] for word in words])


def _ordered(numbers: list[int]) -> tuple[int, int]:
    if len(numbers) == 1:
        return 0, numbers[0]
    if numbers[0] > numbers[1]:
        raise Wrong("expected the default before the maximum, and not above it")
    return numbers[0], numbers[1]


def size_kib(text: str, unit: str, least: int = 1) -> int:
    """Read a size in KiB, rounded up, at least ``least``; ``unit`` is the unit letter where the text has none."""
    found = _SIZE.match(text)
    if not found:
        raise Wrong("expected a size: a number, or one with K, M, G or T after it")
    kib = -int(-Fraction(found[1]) * _UNITS_KIB[(found[2] or unit).upper()] // 1)
    if not least <= kib <= MEMORY_MAX_MIB << 10:
        raise Wrong("expected a size above 0 that a host could have")
    return kib


def size_mib(text: str, unit: str) -> int:
    """Read a size in MiB, rounded up."""
    return -(-size_kib(text, unit) // 1024)


def default_and_most_kib(text: str, unit: str, least: int = 1) -> tuple[int, int]:
    """Read ``[default] maximum`` of a size limit, in KiB; the default is 0 if absent."""
    words = text.split()
    if not 1 <= len(words) <= 2:
        raise Wrong("expected [default] maximum, each a size")
    return _ordered([size_kib(word, unit, least) for word in words])


def counts(text: str) -> tuple[int, int]:
    """Read ``[default] maximum`` of a number of processes or threads."""
    words = text.split()
    if not 1 <= len(words) <= 2:
        raise Wrong("expected [default] maximum")
    return _ordered([integer(word, 1) for word in words])


def task_limit(text: str) -> tuple[int, int, int]:
    """Read ``[minimum [default]] maximum`` of the size of a job."""
    numbers = [integer(word, 1) for word in text.split()]
    if not 1 <= len(numbers) <= 3:
        raise Wrong("expected [minimum [default]] maximum")
    least = numbers[0] if len(numbers) > 1 else 1
    default = numbers[1] if len(numbers) == 3 else least
    if not least <= default <= numbers[-1]:
        raise Wrong("expected minimum, default and maximum in ascending order")
    return least, default, numbers[-1]


def windows(text: str) -> tuple[Window, ...]:
    """Read time windows separated by blanks; one without days applies every day."""
    found: list[Window] = []
    for word in text.split():
        found += _window(word)
    return tuple(found)


def _window(word: str) -> list[Window]:
    begin, dash, end = word.partition("-")
    first, last = _MOMENT.match(begin), _MOMENT.match(end)
    expected = "expected [day:]hour[:minute]-[day:]hour[:minute] with days 0 (Sunday) to 6"
    if not dash or not first or not last:
        raise Wrong(f"{word}: {expected}")
    start, stop = _moment(word, begin), _moment(word, end)
    if (start[0] is None) != (stop[0] is None):
        raise Wrong(f"{word}: {expected}, a day at both ends or at none")
    if start == stop:
        raise Wrong(f"{word}: it begins when it ends")
    if start[0] is not None and stop[0] is not None:
        return [Window(start[0] * 1440 + start[1], stop[0] * 1440 + stop[1])]
    after = stop[1] + (1440 if stop[1] < start[1] else 0)
    return [Window(day * 1440 + start[1], (day * 1440 + after) % WEEK_MIN) for day in range(7)]


def _moment(word: str, text: str) -> tuple[int | None, int]:
    """Read a day of the week, if any, and the minute of the day. ``d:h``, as in 6:20, is an hour with minutes."""
    parts = text.split(":")
    day = int(parts[0]) % 7 if len(parts) == 3 else None
    hour = int(parts[-2]) if len(parts) > 1 else int(parts[0])
    minute = int(parts[-1]) if len(parts) > 1 else 0
    if hour > 24 or minute > 59 or (hour == 24 and minute):
        raise Wrong(f"{word}: expected hours from 0 to 23 and minutes from 0 to 59")
    return day, hour * 60 + minute


def threshold(index: str, text: str, units: SizeUnits) -> Threshold:
    """Read ``loadSched/loadStop`` of a load index; either may be left out."""
    sched, _, stop = text.partition("/")
    try:
        bounds = [decimal(part.strip()) if part.strip() else None for part in (sched, stop)]
    except Wrong:
        raise Wrong("expected loadSched/loadStop, each a number or nothing") from None
    if index == "ut":
        bounds = [bound / 100 if bound is not None and bound > 1 else bound for bound in bounds]
    unit = {"mem": units.size_mib, "swp": units.size_mib, "tmp": units.tmp_mib}.get(index, 1.0)
    return Threshold(index, *[bound if bound is None else bound * unit for bound in bounds])


def per_time(text: str) -> tuple[int, float]:
    """Read ``increment/minutes`` of a priority: the step, and its interval in seconds."""
    step, slash, every = text.partition("/")
    if not slash:
        raise Wrong("expected increment/minutes")
    return integer(step.strip(), 1), 60.0 * integer(every.strip(), 1)


def job_controls(text: str) -> tuple[tuple[str, str], ...]:
    """Read ``SUSPEND[signal, command or CHKPNT] RESUME[...] TERMINATE[...]``; a signal by its name, with SIG."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _SIGNAL_OR_COMMAND.match(text, at)
        if not match:
            raise Wrong("expected SUSPEND[...], RESUME[...] or TERMINATE[...] with a signal or command inside")
        action = match[2].strip()
        if not action or (is_checkpoint(action) and match[1].upper() == "RESUME"):
            raise Wrong(f"{match[0].strip()}: expected a signal or a command")
        if re.fullmatch(r"SIG[A-Z0-9]+", action) and action not in signal.Signals.__members__:
            raise Wrong(f"{action}: there is no such signal")
        found[match[1].upper()] = action
        at = match.end()
    return tuple(found.items())


_CHECK = re.compile(r"\s*(BEFORE|AFTER|BETWEEN|LIMIT)\s*\[([^\]\[]*)\]\s*", re.IGNORECASE)
CHECK_LIMIT_MAX_S = 3600


def health_checks(text: str) -> QueueChecks:
    """Read ``BEFORE[program] AFTER[program] BETWEEN[program] LIMIT[seconds]``; programs by their full paths."""
    found: dict[str, str] = {}
    at = 0
    while at < len(text):
        match = _CHECK.match(text, at)
        if not match:
            raise Wrong("expected BEFORE[...], AFTER[...], BETWEEN[...] with a program inside, or LIMIT[seconds]")
        found[match[1].lower()] = match[2].strip()
        at = match.end()
    limit_s = integer(found.pop("limit", "60"), 1, CHECK_LIMIT_MAX_S)
    for command in found.values():
        try:
            argv = shlex.split(command)
        except ValueError:
            argv = []
        if not argv or not argv[0].startswith("/"):
            raise Wrong(f"{command or 'an empty text'}: expected the full path of a program")
    return QueueChecks(**found, limit_s=limit_s)


def words(text: str, *known: str) -> frozenset[str]:
    """Read words of a fixed set, in any case; return them as spelt in the set."""
    spelt = {word.lower(): word for word in known}
    given = text.lower().split()
    if not given or not spelt.keys() >= set(given):
        raise Wrong(f"expected some of {' '.join(known)}")
    return frozenset([spelt[word] for word in given])


def account_name(text: str) -> str:
    """Read the name of one user."""
    name = text.strip()
    if not name or not name.isprintable() or any(letter in name for letter in " :/,()"):
        raise Wrong("expected the name of one user")
    return name


def gpu_requirement(text: str) -> str:
    """Read the argument of -gpu.

    Raises:
        Wrong: -gpu would refuse it.
    """
    try:
        gpu.parse(text)
    except Refused as error:
        raise Wrong(str(error)) from None
    return text.strip()


def warning_time(text: str) -> float:
    """Seconds of a warning time: [hours:]minutes, or seconds as 30s."""
    if text.endswith("s") and text[:-1].isascii() and text[:-1].isdigit():
        return float(text[:-1])
    hours, _, minutes = text.rpartition(":")
    return 3600.0 * integer(hours or "0") + 60.0 * integer(minutes)


def checkpoint_directory(text: str) -> str:
    """Directory of checkpoints."""
    if len(text.split()) != 1 or "$" in text or "%" in text:
        raise Wrong("expected one directory, without variables")
    return text.strip()


def checkpoint_method(text: str) -> str:
    """Name of a method of checkpoints."""
    if not re.fullmatch(r"[A-Za-z0-9_.+-]{1,64}", text.strip()):
        raise Wrong("expected a name of letters, digits and _ . + -")
    return text.strip()


def minutes(text: str) -> float:
    """Seconds of some minutes."""
    return 60.0 * integer(text.strip(), 0, 10**6)


def checkpoints(text: str) -> CheckpointTerms:
    """Directory and perhaps minutes."""
    directory, _, period = text.strip().partition(" ")
    return CheckpointTerms(checkpoint_directory(directory), minutes(period) if period else 0.0)


def warning_action(text: str) -> str:
    """Signal or command of a warning."""
    name = text.strip().upper().removeprefix("SIG")
    if name in ("KILL", "STOP"):
        raise Wrong(f"{name}: no job can handle this signal; expected another, or a command")
    return text.strip()
