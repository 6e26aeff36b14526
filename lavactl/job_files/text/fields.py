"""Typed reading of a mapping's fields. Fields that nothing asked for are noted as ignored in the end.

An importer says by ``ignore`` which fields it knows and leaves out, and why; every other field that it does not read is
unknown. So a field of a job file is either honoured, or named to its user, or refused.
"""

import difflib
import re
from typing import NamedTuple

from lavactl.job_files.text.nodes import FileError, Mapping, Node, Null, Place, Scalar, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping as Table
    from typing import Any, TypeVar

    Value = TypeVar("Value")

WHOLE = re.compile(r"[-+]?[0-9]{1,19}")
REAL = re.compile(r"[-+]?[0-9]{1,19}(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?")
NO_TEXT = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?|0x[0-9a-fA-F]+|[tT]rue|TRUE|[fF]alse|FALSE")
TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
NUMBER_MAX = 2**31 - 1


class Note(NamedTuple):
    """Remark on a field, mostly that it is ignored."""

    place: Place
    field: str
    text: str


class Reading:
    """The reading of one document: its file, what was noted, and the fields that were opened.

    ``beside`` are documents of the file that others refer to, by kind and name.
    """

    def __init__(self, file: str, beside: "Table[tuple[str, str], Mapping] | None" = None) -> None:
        self.file = file
        self.beside = beside or {}
        self.notes: list[Note] = []
        self._opened: dict[int, Fields] = {}

    def open(self, node: Mapping, path: str = "") -> "Fields":
        """Fields of a document, or of one of its mappings; the same ones each time."""
        return self._opened.setdefault(id(node), Fields(self, node, path))

    def opened(self) -> "list[Fields]":
        """Fields of all mappings that were opened."""
        return list(self._opened.values())

    def note(self, place: Place, field: str, text: str) -> None:
        """Note a remark."""
        self.notes.append(Note(place, field, text))

    def wrong(self, place: Place, field: str, sentence: str) -> FileError:
        """Error at a place, to be raised."""
        return FileError(self.file, place, field, sentence)

    def close(self) -> list[Note]:
        """All notes by their places, with one for each field that nothing asked for."""
        for fields in self._opened.values():
            for key, place in fields.unread():
                self.note(place, fields.path_of(key), fields.why_unread(key))
        self.notes.sort()
        return self.notes

    def refuse_unread(self, known: "Iterable[str]" = ()) -> None:
        """Refuse fields that nothing asked for: in lava's own form they are mistakes."""
        for fields in self._opened.values():
            fields.refuse_unread(known)


class Fields:
    """Fields of one mapping. An absent mapping has none."""

    def __init__(self, reading: Reading, node: Mapping, path: str) -> None:
        self.reading = reading
        self.node = node
        self.path = path
        self.asked: set[str] = set()
        self.absent: dict[str, Mapping] = {}  # kept, so that each is opened once
        self.same: set[str] = set()  # keys that say what would hold without them
        self.rows: Table[str, Any] | None = None  # declarations of the fields by name, of a mapping that has them

    def unread(self) -> list[tuple[str, Place]]:
        """Keys with a value that nothing asked for, each with its place."""
        return [
            (key, self.node.keys[key])
            for key, value in self.node
            if key not in self.asked and not isinstance(value, Null)
        ]

    def why_unread(self, key: str) -> str:
        """Remark on a key that nothing asked for."""
        if self.rows is None or key in self.rows:
            return "ignored."
        return f"ignored: there is no such field{near(key, self.rows) or '.'}"

    def refuse_unread(self, known: "Iterable[str]" = ()) -> None:
        """Refuse keys of this mapping that nothing asked for."""
        for key, place in self.unread():
            hint = near(key, [*self.asked, *known]) or "."
            raise self.reading.wrong(place, self.path_of(key), f"there is no such key{hint}")

    def path_of(self, key: str) -> str:
        """Path of a field from the top of its document."""
        return f"{self.path}.{key}" if self.path else key

    def place(self, key: str = "") -> Place:
        """Place of a field's value; of the mapping if it has no such field."""
        found = self.node.entries.get(key)
        return found.place if found is not None else self.node.place

    def wrong(self, key: str, sentence: str) -> FileError:
        """Error in a field, to be raised."""
        return self.reading.wrong(self.place(key), self.path_of(key) if key else self.path, sentence)

    def note(self, key: str, text: str) -> None:
        """Note a remark on a field."""
        place = self.node.keys.get(key, self.node.place)
        self.reading.note(place, self.path_of(key) if key else self.path, text)

    def ignore(self, keys: "Iterable[str]", why: str) -> None:
        """Note fields, if they are there, as ignored for a reason."""
        for key in keys:
            if self.get(key) is not None:
                self.note(key, f"ignored: {why}.")

    def has(self, key: str) -> bool:
        """True if there is such a field with a value. Does not count as read."""
        return self.node.get(key) is not None

    def get(self, key: str) -> Node | None:
        """Value of a field; None if it is absent or empty."""
        self.asked.add(key)
        return self.node.get(key)

    def expected(self, key: str, what: str, node: Node) -> FileError:
        """Error in a field of the wrong kind."""
        return self.reading.wrong(node.place, self.path_of(key), f"expected {what}, found {node.kind}.")

    def scalar(self, key: str, what: str) -> Scalar | None:
        """Single value of a field."""
        node = self.get(key)
        if node is not None and not isinstance(node, Scalar):
            raise self.expected(key, what, node)
        return node

    def text(self, key: str, default: str = "") -> str:
        """Text of a field."""
        node = self.scalar(key, "a text")
        if node is not None and "\0" in node.text:
            raise self.expected(key, "a text without NUL characters", node)
        return node.text if node is not None else default

    def required(self, key: str) -> str:
        """Text of a field that must not be empty."""
        text = self.text(key)
        if not text.strip():
            raise self.wrong(key, "a value is needed here." if self.has(key) else "it is missing.")
        return text

    def number(self, key: str, default: int, least: int = 0, most: int = NUMBER_MAX) -> int:
        """Whole number of a field, within bounds."""
        what = f"a whole number from {least}" + (f" to {most}" if most < NUMBER_MAX else "")
        node = self.scalar(key, what)
        if node is None:
            return default
        if not WHOLE.fullmatch(node.text) or not least <= int(node.text) <= most:
            raise self.expected(key, what, node)
        return int(node.text)

    def whole(self, key: str, text: str) -> int:
        """Whole number that a text of this field's list is."""
        if not WHOLE.fullmatch(text):
            raise self.wrong(key, f"expected whole numbers, found {text[:80]}.")
        return int(text)

    def real(self, key: str, default: float) -> float:
        """Number of a field, not negative."""
        node = self.scalar(key, "a number")
        if node is None:
            return default
        if not REAL.fullmatch(node.text) or not 0 <= float(node.text) < 1e12:
            raise self.expected(key, "a number of at least 0", node)
        return float(node.text)

    def flag(self, key: str, default: bool = False) -> bool:
        """Truth value of a field."""
        node = self.scalar(key, "true or false")
        if node is None:
            return default
        if node.text.lower() not in TRUTH:
            raise self.expected(key, "true or false", node)
        return TRUTH[node.text.lower()]

    def word(self, key: str, words: "Table[str, Value]", default: "Value") -> "Value":
        """Meaning of a field whose text is one of some words."""
        node = self.scalar(key, one_of(words))
        if node is None:
            return default
        if node.text not in words:
            raise self.expected(key, one_of(words), node)
        return words[node.text]

    def child(self, key: str) -> "Fields":
        """Fields of a mapping; none if it is absent."""
        node = self.get(key)
        if node is None:
            node = self.absent.setdefault(key, Mapping(self.place(), {}, {}))
        if not isinstance(node, Mapping):
            raise self.expected(key, "a mapping", node)
        return self.reading.open(node, self.path_of(key))

    def items(self, key: str) -> list[Node]:
        """Values of a list; none if it is absent."""
        node = self.get(key)
        if node is not None and not isinstance(node, Sequence):
            raise self.expected(key, "a list", node)
        return node.items if node is not None else []

    def children(self, key: str) -> "list[Fields]":
        """Fields of each mapping of a list."""
        found = []
        for at, node in enumerate(self.items(key)):
            if not isinstance(node, Mapping):
                raise self.expected(f"{key}[{at}]", "a mapping", node)
            found.append(self.reading.open(node, f"{self.path_of(key)}[{at}]"))
        return found

    def texts(self, key: str) -> list[str]:
        """Texts of a list."""
        found = []
        for at, node in enumerate(self.items(key)):
            if not isinstance(node, Scalar) or "\0" in node.text:
                raise self.expected(f"{key}[{at}]", "a text", node)
            found.append(node.text)
        return found

    def quoted(self, key: str) -> str:
        """Text of a field that must not be a number or a truth value: these need quotes to be texts."""
        node = self.scalar(key, "a text")
        if node is not None:
            self._check_quoted(key, node)
        return self.text(key)

    def quoted_texts(self, key: str) -> list[str]:
        """Texts of a list in which numbers and truth values need quotes."""
        for at, node in enumerate(self.items(key)):
            if isinstance(node, Scalar):
                self._check_quoted(f"{key}[{at}]", node)
        return self.texts(key)

    def _check_quoted(self, key: str, node: Scalar) -> None:
        if not node.is_quoted and NO_TEXT.fullmatch(node.text):
            what = f'a text, "{node.text[:80]}" with its quotes'
            raise self.reading.wrong(node.place, self.path_of(key), f"expected {what}, found {node.kind}.")

    def named(self, key: str) -> "list[tuple[str, Fields]]":
        """Names and fields of a mapping of mappings, in their order."""
        parent = self.child(key)
        return [(name, parent.child(name)) for name, _ in parent.node]

    def pairs(self, key: str) -> dict[str, str]:
        """Keys and texts of a mapping of single values; an empty value is an empty text."""
        parent = self.child(key)
        return {name: parent.text(name) for name, _ in parent.node}


def near(key: str, known: "Iterable[str]") -> str:
    """Question for the key that may be meant; empty if none is like it."""
    found = difflib.get_close_matches(key, list(known), 1, 0.7)
    return f"; is {found[0]} meant?" if found else ""


def one_of(words: "Iterable[str]") -> str:
    """``a, b or c``."""
    *first, last = [word or '""' for word in words]
    return f"{', '.join(first)} or {last}" if first else last
