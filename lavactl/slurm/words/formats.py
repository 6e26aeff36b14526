"""Formats of squeue, sinfo and sacct: %.18i, "JobID:20,State", and the columns that they make.

Invariant: a column of a given width cuts and pads its values to it; a field that does not exist is refused by name.
"""

import re
from typing import NamedTuple

from lavactl.text.render import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from lavactl.io import Io


class Column(NamedTuple):
    """One column.

    Attributes:
        name: of its field; empty for plain text.
        text: its title, or the plain text itself.
        width: 0 for as long as the value.
    """

    name: str
    text: str
    width: int = 0
    right: bool = False

    def fit(self, value: str) -> str:
        """Value, cut and padded to this column."""
        value = clean(value)
        if not self.width:
            return value
        value = value[: self.width]
        return value.rjust(self.width) if self.right else value.ljust(self.width)


def read_letters(text: str, names: "Mapping[str, str]", titles: "Mapping[str, str]") -> list[Column]:
    """Columns of a format of letters: ``%.18i %.9P``; text between fields is kept.

    Args:
        names: field of each letter.
        titles: of each field.

    Raises:
        ValueError: its message is the unknown letter.
    """
    columns: list[Column] = []
    at = 0
    for found in re.finditer(r"%(\.?)([0-9]{0,4})(.)", text):
        if found.start() > at:
            columns.append(Column("", text[at : found.start()]))
        at = found.end()
        letter = found[3]
        if letter == "%":
            columns.append(Column("", "%"))
            continue
        if letter not in names:
            raise ValueError(f"%{letter}")
        name = names[letter]
        columns.append(Column(name, titles[name], int(found[2] or 0), bool(found[1])))
    if text[at:]:
        columns.append(Column("", text[at:]))
    return columns


def read_names(
    text: str, known: "Mapping[str, str]", width: "Callable[[str], int]", *, percent: bool = False
) -> list[Column]:
    """Columns of a format of names: ``JobID:20,State:.12`` or, with ``percent``, ``JobID%20,State%-12``.

    Args:
        known: title of each field by its name in lower case.
        width: default width of a field.

    Raises:
        ValueError: its message is the unknown name.
    """
    columns = []
    for word in re.split(r"[,\s]+", text.strip(", \n")):
        name, mark, size = word.partition("%" if percent else ":")
        lower = name.lower().replace("_", "")
        if lower not in known:
            raise ValueError(name)
        digits = size.strip(".-+")
        if mark and digits and not re.fullmatch("[0-9]{1,4}", digits):
            raise ValueError(word)
        right = not size.startswith("-") if percent else size.startswith(".")
        columns.append(Column(lower, known[lower], int(digits) if digits else width(lower), right))
    return columns


def line(columns: "Sequence[Column]", value: "Callable[[str], str]", between: str = "") -> str:
    """One line: the values of the fields in their columns."""
    return between.join(column.fit(value(column.name)) if column.name else column.text for column in columns).rstrip(
        "" if between == "|" else " "
    )


def head(columns: "Sequence[Column]", between: str = "") -> str:
    """The line of titles."""
    return between.join(column.fit(column.text) if column.name else column.text for column in columns)


def check(columns: "Sequence[Column]", io: "Io") -> None:
    """Announce what a row takes."""
    io.check_row([column.name for column in columns if column.name], sum(column.width for column in columns))


def names_of(columns: "Iterable[Column]") -> set[str]:
    """Fields of these columns."""
    return {column.name for column in columns if column.name}
