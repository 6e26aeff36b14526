"""Values of a job file, each with its line and column."""

from typing import NamedTuple

from lavactl.errors import CommandError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT_MAX = 200  # characters of a value that a sentence shows


class Place(NamedTuple):
    """Position in a file, both numbers from 1."""

    line: int
    column: int


class FileError(CommandError):
    """Error in a job file: ``FILE:LINE:COLUMN: field: sentence``."""

    def __init__(self, file: str, place: Place, field: str, sentence: str) -> None:
        where = f"{file}:{place.line}:{place.column}: "
        super().__init__(where + (f"{field}: " if field else "") + sentence)
        self.file, self.place, self.field, self.sentence = file, place, field, sentence


class Node:
    """A value as it stands in a file."""

    kind = "a value"

    def __init__(self, place: Place) -> None:
        self.place = place


class Null(Node):
    """An empty value: as if its key were not there."""

    kind = "nothing"


class Scalar(Node):
    """A single value: its text as written, and whether quotes make it a text and nothing else.

    ``joined``: of a JSON string with raw line breaks, which JSON does not have, the text with blanks in their place.
    """

    def __init__(self, place: Place, text: str, is_quoted: bool = False, joined: str | None = None) -> None:
        super().__init__(place)
        self.text = text
        self.is_quoted = is_quoted
        self.joined = joined

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The value as a sentence names it."""
        shown = "".join(letter if letter.isprintable() else " " for letter in self.text[:TEXT_MAX])
        return f'"{shown}"' if self.is_quoted or not shown else shown


class Sequence(Node):
    """A list."""

    kind = "a list"

    def __init__(self, place: Place, items: list[Node]) -> None:
        super().__init__(place)
        self.items = items


class Mapping(Node):
    """Keys and values, each key once."""

    kind = "a mapping"

    def __init__(self, place: Place, entries: dict[str, Node], keys: dict[str, Place]) -> None:
        super().__init__(place)
        self.entries = entries
        self.keys = keys  # the place of each key

    def __iter__(self) -> "Iterator[tuple[str, Node]]":
        return iter(self.entries.items())

    def get(self, key: str) -> Node | None:
        """Value of a key; None if it is not there, or empty."""
        value = self.entries.get(key)
        return None if value is None or isinstance(value, Null) else value

    def text(self, key: str) -> str:
        """Text of a single value; empty if there is none."""
        value = self.entries.get(key)
        return value.text if isinstance(value, Scalar) else ""
