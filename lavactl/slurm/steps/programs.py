"""Programs of a step's ranks: one for all, or the file of --multi-prog."""

from lavactl.errors import CommandError
from lavactl.slurm.words.options import fail
from lavactl.submit.words import split_words
from lavactl.text import units

TYPE_CHECKING = False
if TYPE_CHECKING:
    from lavactl.io import Io

FILE_MAX = 1 << 20


def programs(words: list[str], is_multi: bool, tasks: int, io: "Io") -> list[list[str]]:
    """Words of each rank's program.

    Raises:
        CommandError: the file of --multi-prog cannot be read, or leaves out a rank.
    """
    if not words:
        raise fail("srun", "no command is given to run.")
    return _of_file(words[0], tasks, io) if is_multi else [words] * tasks


def _of_file(name: str, tasks: int, io: "Io") -> list[list[str]]:
    data = io.read_file(io.path(name), FILE_MAX)
    if data is None:
        raise fail("srun", f"--multi-prog: {name} cannot be read.")
    found: dict[int, list[str]] = {}
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
        words = _words(line, number, name)
        if not words:
            continue
        if len(words) < 2:
            raise fail("srun", f"{name}, line {number}: expected ranks and a program.")
        ranks = _ranks(words[0], tasks, name, number)
        for place, rank in enumerate(ranks):
            found.setdefault(rank, [word.replace("%t", str(rank)).replace("%o", str(place)) for word in words[1:]])
    if missing := [rank for rank in range(tasks) if rank not in found]:
        raise fail("srun", f"{name}: no program for task {missing[0]}.")
    return [found[rank] for rank in range(tasks)]


def _words(line: str, number: int, name: str) -> list[str]:
    try:
        return split_words(line)
    except CommandError:
        raise fail("srun", f"{name}, line {number}: a quote is not closed.") from None


def _ranks(text: str, tasks: int, name: str, line: int) -> list[int]:
    if text == "*":
        return list(range(tasks))
    try:
        found: list[int] = []
        for part in text.split(","):
            low, dash, high = part.partition("-")
            first = units.read_count(low, 0, 1 << 24)
            found += range(first, (units.read_count(high, first, 1 << 24) if dash else first) + 1)
    except ValueError:
        raise fail("srun", f"{name}, line {line}: {text} is no list of ranks such as 0-3,5.") from None
    return [rank for rank in found if rank < tasks]
