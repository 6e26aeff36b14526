"""The grammar of LSF's configuration files: text to sections and settings, each cell with the line it stands on.

``Begin Name`` ... ``End Name`` hold either KEY = value lines (vertical) or a line of keywords with one row an item
(horizontal; a cell with blanks stands in parentheses). ``#`` begins a comment, ``\\`` at the end of a line continues
it. lsf.conf is NAME=VALUE lines without sections. Nothing is interpreted here; complaints carry file and line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_BEGIN = re.compile(r"begin\s+(\w+)\s*$", re.IGNORECASE)
_END = re.compile(r"end\s+(\w+)\s*$", re.IGNORECASE)
_SETTING = re.compile(r"([A-Za-z_][\w/]*)\s*=\s*(.*)$", re.DOTALL)
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


Row = dict[str, Cell]


@dataclass(slots=True)
class Section:
    """One section: its items (one for a vertical section) by upper-case keyword."""

    name: str
    line: int
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
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        return Document(str(path), complaints=[Complaint(str(path), 0, f"{error.strerror}")])
    except UnicodeDecodeError:
        return Document(str(path), complaints=[Complaint(str(path), 0, "is not UTF-8 text")])
    return parse(text, str(path))


def parse(text: str, file: str) -> Document:
    """The document in a text; ``file`` is what complaints call it."""
    document = Document(file)
    lines = list(_logical_lines(text))
    at = 0
    while at < len(lines):
        number, line = lines[at]
        begin = _BEGIN.match(line)
        if begin:
            at = _section(document, lines, at, begin[1])
            continue
        if _END.match(line):
            document.complaints.append(Complaint(file, number, f"{line!r} has no Begin before it"))
        else:
            _outside(document, number, line)
        at += 1
    return document


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blanks, continued ones joined, each with the number of its first physical line."""
    pending, first = "", 0
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.split("#", 1)[0].rstrip()
        if not pending:
            first = number
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        whole = (pending + line).strip()
        pending = ""
        if whole:
            yield first, whole
    if pending.strip():
        yield first, pending.strip()


def _outside(document: Document, number: int, line: str) -> None:
    found = _SETTING.match(line)
    if found is None:
        document.complaints.append(
            Complaint(document.file, number, f"expected 'Begin SECTION' or NAME=VALUE, found {line[:40]!r}")
        )
        return
    document.settings[found[1].upper()] = Cell(_unquoted(found[2].strip()), number)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _section(document: Document, lines: list[tuple[int, str]], at: int, name: str) -> int:
    """Read a section that begins at ``at``; returns where to go on."""
    section = Section(name, lines[at][0])
    body: list[tuple[int, str]] = []
    at += 1
    while at < len(lines):
        number, line = lines[at]
        end = _END.match(line)
        if end:
            if end[1].lower() != name.lower():
                document.complaints.append(
                    Complaint(document.file, number, f"'End {end[1]}' closes 'Begin {name}' of line {section.line}")
                )
            _fill(document, section, body)
            document.sections.append(section)
            return at + 1
        if _BEGIN.match(line):
            break
        body.append((number, line))
        at += 1
    document.complaints.append(Complaint(document.file, section.line, f"'Begin {name}' has no 'End {name}'"))
    return at


def _fill(document: Document, section: Section, body: list[tuple[int, str]]) -> None:
    if not body:
        return
    if _SETTING.match(body[0][1]):
        section.rows.append(_vertical(document, body))
    else:
        _horizontal(document, section, body)


def _vertical(document: Document, body: list[tuple[int, str]]) -> Row:
    row: Row = {}
    for number, line in body:
        found = _SETTING.match(line)
        if found is None:
            document.complaints.append(Complaint(document.file, number, f"expected KEY = value, found {line[:40]!r}"))
        elif found[1].upper() in row:
            before = row[found[1].upper()].line
            document.complaints.append(
                Complaint(document.file, number, f"{found[1]} is set a second time; it was set on line {before}")
            )
        else:
            row[found[1].upper()] = Cell(_unquoted(found[2].strip()), number)
    return row


def _horizontal(document: Document, section: Section, body: list[tuple[int, str]]) -> None:
    keywords = [word.upper() for word in body[0][1].split()]
    for number, line in body[1:]:
        cells = cells_of(line)
        if len(cells) != len(keywords):
            document.complaints.append(
                Complaint(
                    document.file,
                    number,
                    f"expected {len(keywords)} columns ({' '.join(keywords)}), found {len(cells)}",
                )
            )
            continue
        section.rows.append({word: Cell(cell, number) for word, cell in zip(keywords, cells, strict=True)})


def cells_of(line: str) -> list[str]:
    """The cells of a row; parentheses and quotes are taken off, ``-`` and ``()`` become empty."""
    cells = []
    for found in _CELL.finditer(line):
        text = next((group for group in found.groups() if group is not None), "").strip()
        cells.append("" if text == "-" else text)
    return cells
