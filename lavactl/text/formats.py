"""The -o language of bjobs and bhosts: ``"field[:[-][width]][:unit] ... delimiter='c'"``.

Invariants: field names and aliases are case-insensitive; without a colon a field has its full width and no padding; a
bare colon means the recommended width; ``-`` justifies to the right.
"""

from lavactl.errors import CommandError
from lavactl.options import printable
from lavactl.text.render import keep_tail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from lavactl.io import Io

UNITS = "KMGTPEZ"
BAD_FIELD = 99  # the exit code of bjobs for a field it does not know


class Column:
    """One field of a format.

    width 0 means as long as the value; unit is a letter of ``UNITS`` or empty.
    """

    def __init__(self, name: str, width: int, right: bool, unit: str) -> None:
        self.name = name
        self.title = name.upper()
        self.width = width
        self.right = right
        self.unit = unit

    def fit(self, value: str) -> str:
        """Value or title, padded and cut to this column."""
        if not self.width:
            return value
        if len(value) > self.width:
            value = keep_tail(value, self.width) if self.name == "job_name" else value[: self.width]
        return value.rjust(self.width) if self.right else value.ljust(self.width)


class Format:
    """Columns and the delimiter between them."""

    def __init__(self, columns: list[Column], delimiter: str) -> None:
        self.columns = columns
        self.delimiter = delimiter

    def check(self, io: "Io") -> None:
        """Announce what a row takes."""
        io.check_row([column.name for column in self.columns], sum(column.width for column in self.columns))

    def header(self) -> str:
        """Line of column titles."""
        return self.delimiter.join([column.fit(column.title) for column in self.columns])


def read_format(text: str, widths: "Mapping[str, int]", aliases: "Mapping[str, str]") -> Format:
    """Parse a format string; ``all`` means every field, one ``*`` in a name any letters: ``all:10``, ``gpu*``.

    Args:
        widths: recommended width of each known field.

    Raises:
        CommandError: an unknown field or a malformed one.
    """
    text, delimiter = _take_delimiter(text)
    columns: list[Column] = []
    for word in text.split():
        given, colon, rest = word.partition(":")
        columns += [_column(name + colon + rest, widths, aliases) for name in _meant(given, widths)]
    if not columns:
        raise CommandError("The format string names no field.", BAD_FIELD)
    return Format(columns, delimiter)


def _take_delimiter(text: str) -> tuple[str, str]:
    """(text without ``delimiter='c'``, delimiter)."""
    place = text.lower().find("delimiter=")
    if place < 0:
        return text, " "
    value = text[place + len("delimiter=") :]
    if value[:1] in ("'", '"') and value[2:3] == value[0]:
        return f"{text[:place]} {value[3:]}", value[1]
    if value and value[0] not in "'\"" and (len(value) == 1 or value[1] == " "):
        return f"{text[:place]} {value[1:]}", value[0]
    raise CommandError("The delimiter in the format string must be one character.", BAD_FIELD)


def _meant(given: str, widths: "Mapping[str, int]") -> "list[str]":
    """Field names that a word of a format stands for; the word itself if that is one, or none."""
    begin, star, end = ("*" if given.lower() == "all" else given.lower()).partition("*")
    if not star:
        return [given]
    return [name for name in widths if name.startswith(begin) and name[len(begin) :].endswith(end)] or [given]


def _column(word: str, widths: "Mapping[str, int]", aliases: "Mapping[str, str]") -> Column:
    given, colon, rest = word.partition(":")
    name = aliases.get(given.lower(), given.lower())
    if name not in widths:
        raise CommandError(f"{printable(given)} in the format string is not a valid field name.", BAD_FIELD)
    size, _, unit = rest.partition(":")
    if size.upper() in UNITS and size and not unit:
        size, unit = "", size
        colon = ""
    right = size.startswith("-")
    digits = size.removeprefix("-")
    if (digits and not (digits.isascii() and digits.isdigit() and len(digits) < 5)) or (
        unit and unit.upper() not in UNITS
    ):
        raise CommandError(f"{printable(word)} in the format string is not field[:[-][width]][:unit].", BAD_FIELD)
    width = int(digits) if digits else widths[name] if colon else 0
    return Column(name, width, right, unit.upper())
