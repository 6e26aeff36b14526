"""The grammar of LSF's configuration files: text to sections and settings, each cell with the line it stands on.

``Begin Name`` ... ``End Name`` hold either KEY = value lines (vertical) or a line of keywords with one row an item
(horizontal; a cell with blanks stands in parentheses). ``#`` begins a comment, ``\\`` at the end of a line continues
it. lsf.conf is NAME=VALUE lines without sections. ``#INCLUDE "file"`` reads another file in its place; blocks that
depend on the time (``#if time(...)``) are refused, not guessed at. Nothing is interpreted here; complaints carry file
and line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

_BEGIN = re.compile(r"begin\s+(\w+)\s*$", re.IGNORECASE)
_END = re.compile(r"end\s+(\w+)\s*$", re.IGNORECASE)
_SETTING = re.compile(r"([A-Za-z_][\w/]*)\s*=\s*(.*)$", re.DOTALL)
_DIRECTIVE = re.compile(r"#\s*(if|ifdef|ifndef|elif|else|endif|include)\b\s*(.*)$", re.IGNORECASE)
_INCLUDES_MAX = 8  # files that include files; more is a circle
_CELL = re.compile(r"\s*(?:\(((?:[^()]|\([^()]*\))*)\)|\"([^\"]*)\"|(\S+))")


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong where, and what was expected. Fatal ones keep the old configuration in force."""

    file: str
    line: int
    text: str
    is_fatal: bool = True

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


@dataclass(frozen=True, slots=True)
class Cell:
    """A value and where it stands. ``-`` and ``()`` count as empty."""

    text: str
    line: int
    file: str = ""


class Line(NamedTuple):
    """A line of meaning: comments gone, continued ones joined; where its first physical line stands."""

    file: str
    number: int
    text: str


Row = dict[str, Cell]


@dataclass(slots=True)
class Section:
    """One section: its items (one for a vertical section) by upper-case keyword."""

    name: str
    line: int
    file: str = ""
    rows: list[Row] = field(default_factory=list)


@dataclass(slots=True)
class Document:
    """A file as it was read."""

    file: str
    sections: list[Section] = field(default_factory=list)
    settings: Row = field(default_factory=dict)  # NAME=VALUE outside sections: lsf.conf
    complaints: list[Complaint] = field(default_factory=list)

    def of(self, name: str) -> Iterator[Section]:
        """All sections of that name; case does not matter."""
        return (section for section in self.sections if section.name.lower() == name.lower())


def read(path: Path) -> Document:
    """A file's document. A file that can't be read is a complaint, not an exception."""
    try:
        text = _text_of(path)
    except OSError as error:
        return Document(str(path), complaints=[Complaint(str(path), 0, f"{error.strerror}")])
    return parse(text, str(path))


def _text_of(path: Path) -> str:
    """Names are ASCII; an odd byte in a comment or description is no reason to refuse a file. No system call takes a
    NUL."""
    return path.read_text(encoding="utf-8", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def parse(text: str, file: str) -> Document:
    """The document in a text; ``file`` is what complaints call it."""
    document = Document(file)
    lines = list(_logical_lines(document, text, file, 0))
    at = 0
    while at < len(lines):
        line = lines[at]
        begin = _BEGIN.match(line.text)
        if begin:
            at = _section(document, lines, at, begin[1])
            continue
        if _END.match(line.text):
            _complain(document, line, f"{line.text!r} has no Begin before it")
        else:
            _outside(document, line)
        at += 1
    return document


def _complain(document: Document, line: Line, text: str) -> None:
    document.complaints.append(Complaint(line.file, line.number, text))


def _logical_lines(document: Document, text: str, file: str, depth: int) -> Iterator[Line]:
    """Lines without comments and blanks, continued ones joined; included files in the place of their line."""
    pending, first, conditions = "", 0, 0
    for number, raw in enumerate(text.splitlines(), start=1):
        directive = _DIRECTIVE.match(raw.strip())
        if directive:
            word = directive[1].lower()
            if word == "include":
                yield from _included(document, Line(file, number, directive[2].strip()), depth)
            else:
                conditions = _conditional(document, Line(file, number, word), conditions)
            continue
        line = raw.split("#", 1)[0].rstrip()
        if conditions:
            continue
        if not pending:
            first = number
        if line.endswith("\\"):
            pending += line[:-1].strip() + " "
            continue
        whole = (pending + line.strip()).strip()
        pending = ""
        if whole:
            yield Line(file, first, whole)
    if pending.strip():
        yield Line(file, first, pending.strip())
    if conditions:
        _complain(document, Line(file, 0, ""), "an #if has no #endif")


def _conditional(document: Document, line: Line, depth: int) -> int:
    """How deep in conditions the next line is. What depends on the time is refused: it would have to change by
    itself."""
    if line.text.startswith("if"):
        if not depth:
            _complain(
                document,
                line,
                "#if: lava does not change its configuration by the clock; expected the lines for all times "
                "(RUN_WINDOW, DISPATCH_WINDOW and the LAVA_WINDOW of a limit depend on the time)",
            )
        return depth + 1
    if not depth:
        _complain(document, line, f"#{line.text} has no #if before it")
        return 0
    return depth - (line.text == "endif")


def _included(document: Document, line: Line, depth: int) -> Iterator[Line]:
    name = _unquoted(line.text)
    path = Path(line.file).parent / name
    if not name or depth >= _INCLUDES_MAX:
        problem = "expected a file's name" if not name else f"more than {_INCLUDES_MAX} files include one another"
        _complain(document, line, f"#INCLUDE: {problem}")
        return
    try:
        text = _text_of(path)
    except OSError as error:
        _complain(document, line, f"#INCLUDE: {path}: {error.strerror}")
        return
    yield from _logical_lines(document, text, str(path), depth + 1)


def _outside(document: Document, line: Line) -> None:
    found = _SETTING.match(line.text)
    if found is None:
        _complain(document, line, f"expected 'Begin SECTION' or NAME=VALUE, found {line.text[:40]!r}")
        return
    document.settings[found[1].upper()] = Cell(_unquoted(found[2].strip()), line.number, line.file)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _section(document: Document, lines: list[Line], at: int, name: str) -> int:
    """Read a section that begins at ``at``; returns where to go on."""
    begin = lines[at]
    section = Section(name, begin.number, begin.file)
    body: list[Line] = []
    at += 1
    while at < len(lines):
        line = lines[at]
        end = _END.match(line.text)
        if end:
            if end[1].lower() != name.lower():
                _complain(document, line, f"'End {end[1]}' closes 'Begin {name}' of line {section.line}")
            _fill(document, section, body)
            document.sections.append(section)
            return at + 1
        if _BEGIN.match(line.text):
            break
        body.append(line)
        at += 1
    _complain(document, begin, f"'Begin {name}' has no 'End {name}'")
    return at


def _fill(document: Document, section: Section, body: list[Line]) -> None:
    if not body:
        return
    if _SETTING.match(body[0].text):
        section.rows.append(_vertical(document, body))
    else:
        _horizontal(document, section, body)


def _vertical(document: Document, body: list[Line]) -> Row:
    row: Row = {}
    for line in body:
        found = _SETTING.match(line.text)
        if found is None:
            _complain(document, line, f"expected KEY = value, found {line.text[:40]!r}")
        elif found[1].upper() in row:
            before = row[found[1].upper()].line
            _complain(document, line, f"{found[1]} is set a second time; it was set on line {before}")
        else:
            value = _unquoted(found[2].strip())
            row[found[1].upper()] = Cell("" if value in ("-", "()") else value, line.number, line.file)
    return row


def _horizontal(document: Document, section: Section, body: list[Line]) -> None:
    keywords = [word.upper() for word in body[0].text.split()]
    twice = sorted({word for word in keywords if keywords.count(word) > 1})
    if twice:
        _complain(document, body[0], f"the column {twice[0]} is there twice")
        return
    for line in body[1:]:
        cells = cells_of(line.text)
        if len(cells) != len(keywords):
            _complain(document, line, f"expected {len(keywords)} columns ({' '.join(keywords)}), found {len(cells)}")
            continue
        row = {word: Cell(cell, line.number, line.file) for word, cell in zip(keywords, cells, strict=True)}
        section.rows.append(row)


def cells_of(line: str) -> list[str]:
    """The cells of a row; parentheses and quotes are taken off, ``-`` and ``()`` become empty."""
    cells = []
    for found in _CELL.finditer(line):
        text = next((group for group in found.groups() if group is not None), "").strip()
        cells.append("" if text == "-" else text)
    return cells
