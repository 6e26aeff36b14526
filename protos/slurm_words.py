"""Slurm's notations that both agents and commands write: lists of hosts, and numbers for each of them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice

HOSTS_MAX = 65536  # names of one expression
BRACKETS_MAX = 8  # of one part of an expression; each is a level of recursion
# Variables that keep an mpirun within a task from Slurm's own protocols, which are not there.
FOR_LAUNCHERS = {
    "OMPI_MCA_plm": "rsh",
    "OMPI_MCA_ras": "^slurm",
    "PRTE_MCA_plm": "ssh",
    "PRTE_MCA_ras": "^slurm",
    "HYDRA_RMK": "lsf",
    "HYDRA_LAUNCHER": "lsf",
}


def repeated(counts: Iterable[int]) -> str:
    """Return counts in Slurm's notation: 2(x3),1."""
    groups = ((count, len(list(same))) for count, same in groupby(counts))
    return ",".join(f"{count}(x{times})" if times > 1 else str(count) for count, times in groups)


def compressed(hosts: Iterable[str]) -> str:
    """Return hosts in Slurm's notation, in their order: n[01-03,07],login."""
    parts: list[str] = []
    for prefix, same in groupby(map(_parted, hosts), key=lambda part: part[0]):
        digits = [text for _, text in same]
        if not digits[0]:
            parts += [prefix] * len(digits)
        elif len(digits) == 1:
            parts.append(prefix + digits[0])
        else:
            parts.append(f"{prefix}[{_ranges(digits)}]")
    return ",".join(parts)


def expanded(text: str) -> list[str]:
    """Return the hosts of an expression such as n[01-03,07],login.

    Raises:
        ValueError: a bracket is not closed, a range is malformed, or there are too many names or brackets.
    """
    parts = _outer_parts(text)
    if any(part.count("[") > BRACKETS_MAX for part in parts):
        raise ValueError(text)
    found = list(islice((host for part in parts for host in _expanded(part)), HOSTS_MAX + 1))
    if len(found) > HOSTS_MAX:
        raise ValueError(text)
    return found


def _outer_parts(text: str) -> list[str]:
    """Split at the commas outside brackets; blanks separate as well."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if depth not in (0, 1):
            raise ValueError(text)
        if depth == 0 and letter in ", \t\n":
            parts.append("")
        else:
            parts[-1] += letter
    if depth:
        raise ValueError(text)
    return [part for part in parts if part]


def _expanded(part: str) -> Iterator[str]:
    prefix, bracket, rest = part.partition("[")
    if not bracket:
        yield part
        return
    inside, _, suffix = rest.partition("]")
    for word in inside.split(","):
        first, dash, last = word.partition("-")
        if not (first.isascii() and first.isdigit() and (not dash or (last.isascii() and last.isdigit()))):
            raise ValueError(part)
        begin, end = int(first), int(last) if dash else int(first)
        if not 0 <= end - begin < HOSTS_MAX:
            raise ValueError(part)
        for number in range(begin, end + 1):
            yield from _expanded(f"{prefix}{number:0{len(first)}d}{suffix}")


def names_of_job(job: int, number: int | None, name: str, user: str, host: str) -> dict[str, str]:
    """Return what the letters of a file's pattern stand for, in the batch step of a job.

    Args:
        number: of the array's element as Slurm counts it; None for a plain job.
    """
    own = str(job) if number is None else f"{job}_{number}"
    element = "4294967294" if number is None else str(number)
    return {
        **{"j": own, "J": own, "A": str(job), "a": element, "x": name, "u": user, "N": host, "n": "0", "t": "0"},
        **{"s": "batch", "b": str((number or 0) % 10)},
    }


def expanded_name(template: str, letters: Mapping[str, str]) -> str:
    """Return a file's name with %j, %4t and the like replaced; a backslash in it leaves them all as they are."""
    if "\\" in template:
        return template.replace("\\", "")

    def one(found: re.Match[str]) -> str:
        width, letter = found[1], found[2]
        if letter == "%":
            return "%"
        if letter not in letters:
            return found[0]
        value = letters[letter]
        return value.zfill(int(width)) if width and value.isdigit() else value

    return re.sub(r"%([0-9]{0,2})([a-zA-Z%])", one, template)


def _parted(host: str) -> tuple[str, str]:
    """Part a host name into the rest and the digits at its end."""
    digits = re.search(r"[0-9]*$", host)
    end = digits.start() if digits else len(host)
    return host[:end], host[end:]


def _ranges(digits: Sequence[str]) -> str:
    """Join numbers that follow each other and are written in the same width."""
    found: list[list[str]] = []
    for text in digits:
        if found and f"{int(found[-1][-1]) + 1:0{len(found[-1][-1])}d}" == text:
            found[-1].append(text)
        else:
            found.append([text])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else run[0] for run in found)
