"""JSON as marked values, as portals and editors have taken it over the years.

Besides strict JSON: comments (``//``, ``/* */`` and ``#``), line breaks and tabs inside strings, a line that goes on
after a backslash, unknown escapes (``\\$`` is ``$``), a comma before a closing bracket, a byte order mark, and several
documents after each other.
"""

import re
from bisect import bisect_left

from lavactl.job_files.text.nodes import FileError, Mapping, Node, Null, Place, Scalar, Sequence

DEPTH_MAX = 60
BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.DOTALL)
LINE_END = re.compile("\n")
WORD = re.compile(r"[A-Za-z_]+")
NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])")
PLAIN = re.compile(r'[^"\\]*')
RAW_BREAK = re.compile(r"[ \t]*(?<!\\)\r?\n[ \t]*")
ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
HEX = re.compile(r"[0-9A-Fa-f]{4}")
BEGINNING = re.compile(r'[\[{]\s*(?:["\]}{\[#]|//|/\*)')


def looks_like_json(text: str) -> bool:
    """True if a text begins with a bracket and then, comments apart, as only JSON goes on."""
    start = BLANK.match(text)
    return start is not None and BEGINNING.match(text, start.end()) is not None


def read_json(text: str, file: str) -> list[Node]:
    """Documents of a JSON text; a list at the top is a list of documents.

    Raises:
        FileError: it is no JSON, even with the liberties above.
    """
    documents = _Reader(text, file).documents()
    found: list[Node] = []
    for one in documents:
        found += one.items if isinstance(one, Sequence) else [one]
    return [one for one in found if not isinstance(one, Null)]


class _Reader:
    """A text, and the position up to which it is read."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.at = 0
        self._line_ends = [found.start() for found in LINE_END.finditer(text)]  # a place costs no look at all before it

    def documents(self) -> list[Node]:
        found = []
        self.skip()
        while self.at < len(self.text):
            found.append(self.value(0))
            self.skip()
        return found

    def place(self, at: int) -> Place:
        line = bisect_left(self._line_ends, at)
        return Place(line + 1, at - (self._line_ends[line - 1] if line else -1))

    def wrong(self, sentence: str, at: int | None = None) -> FileError:
        return FileError(self.file, self.place(self.at if at is None else at), "", f"this is no JSON: {sentence}.")

    def skip(self) -> None:
        found = BLANK.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def peek(self) -> str:
        self.skip()
        return self.text[self.at : self.at + 1]

    def value(self, depth: int) -> Node:
        letter, place = self.peek(), self.place(self.at)
        if depth > DEPTH_MAX:
            raise self.wrong("its values are nested too deeply")
        if letter == "{":
            return self.mapping(place, depth)
        if letter == "[":
            return self.sequence(place, depth)
        if letter == '"':
            start = self.at
            text = self.string()
            is_wrapped = "\n" in self.text[start : self.at]
            return Scalar(place, text, True, self.joined(start) if is_wrapped else None)
        if number := NUMBER.match(self.text, self.at):
            self.at = number.end()
            return Scalar(place, number[0])
        word = WORD.match(self.text, self.at)
        if word and word[0] in ("true", "false", "null"):
            self.at = word.end()
            return Null(place) if word[0] == "null" else Scalar(place, word[0])
        raise self.wrong(f"expected a value, found {self.found()}")

    def found(self) -> str:
        letter = self.peek()
        return repr(letter) if letter else "the end of the file"

    def sequence(self, place: Place, depth: int) -> Sequence:
        self.at += 1
        items: list[Node] = []
        while self.peek() != "]":
            items.append(self.value(depth + 1))
            self.between("]")
        self.at += 1
        return Sequence(place, items)

    def mapping(self, place: Place, depth: int) -> Mapping:
        self.at += 1
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        while self.peek() != "}":
            start = self.at
            if self.peek() != '"':
                raise self.wrong(f"expected a key in quotes, found {self.found()}")
            key = self.string()
            if key in entries:
                raise FileError(
                    self.file, self.place(start), key, f"this key is there twice, first in line {keys[key].line}."
                )
            if self.peek() != ":":
                raise self.wrong(f"expected a colon, found {self.found()}")
            self.at += 1
            keys[key] = self.place(start)
            entries[key] = self.value(depth + 1)
            self.between("}")
        self.at += 1
        return Mapping(place, entries, keys)

    def between(self, end: str) -> None:
        """Skip the comma between two values; the last one needs none."""
        if self.peek() == ",":
            self.at += 1
        elif self.peek() != end:
            raise self.wrong(f"expected a comma or {end!r}, found {self.found()}")

    def string(self) -> str:
        start = self.at
        self.at += 1
        parts: list[str] = []
        while True:
            plain = PLAIN.match(self.text, self.at)
            if plain:
                parts.append(plain[0].replace("\r\n", "\n"))
                self.at = plain.end()
            if self.at >= len(self.text):
                raise self.wrong("this string has no end", start)
            if self.text[self.at] == '"':
                self.at += 1
                return "".join(parts)
            parts.append(self.escape())

    def joined(self, start: int) -> str:
        """The string that begins at ``start`` with its raw line breaks, and the blanks around them, as one blank."""
        source = self.text[start : self.at]
        return _Reader(RAW_BREAK.sub(" ", source), self.file).string()

    def escape(self) -> str:
        """Character of an escape sequence; one that JSON does not know stands for itself."""
        letter = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if letter == "\n":
            return ""  # the line goes on
        if letter != "u":
            return ESCAPES.get(letter, letter)
        first = self.code_unit()
        if 0xD800 <= first < 0xDC00 and self.text.startswith("\\u", self.at):
            self.at += 2
            second = self.code_unit()
            if 0xDC00 <= second < 0xE000:
                return chr(0x10000 + ((first - 0xD800) << 10) + second - 0xDC00)
        if 0xD800 <= first < 0xE000:
            raise self.wrong("half a character (a lone surrogate)", self.at - 6)
        return chr(first)

    def code_unit(self) -> int:
        digits = HEX.match(self.text, self.at)
        if not digits:
            raise self.wrong("expected four hexadecimal digits after \\u")
        self.at = digits.end()
        return int(digits[0], 16)
