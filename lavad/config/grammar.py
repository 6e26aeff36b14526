"""Grammar of LSF's configuration files: text to sections and settings, each cell with its line.

``Begin Name`` ... ``End Name`` hold either KEY = value lines (vertical) or a line of keywords with one row an item
(horizontal; a cell with blanks stands in parentheses). ``#`` begins a comment, ``\\`` at the end of a line continues
it. lsf.conf is NAME=VALUE lines without sections. Each mistake is reported once, where it is: a section without its
Begin or End is read all the same. Nothing is interpreted here; complaints carry file and line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lavad.config.lines import Clock, Line, logical_lines, text_of, unquoted

_BEGIN = re.compile(r"begin\s+(\w+)\s*$", re.IGNORECASE)
_END = re.compile(r"end\s+(\w+)\s*$", re.IGNORECASE)
_SETTING = re.compile(r"([A-Za-z_][\w/]*)\s*=\s*(.*)$", re.DOTALL)
_CELL = re.compile(r"\s*(?:\(((?:[^()]|\([^()]*\))*)\)|\"([^\"]*)\"|(\S+))")


@dataclass(frozen=True, slots=True)
class Complaint:
    """Error or warning with its position and what was expected. A fatal one keeps the old configuration in force."""

    file: str
    line: int
    text: str
    is_fatal: bool = True

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}" if self.line else f"{self.file}: {self.text}"


@dataclass(frozen=True, slots=True)
class Cell:
    """A value and its position. ``-`` and ``()`` count as empty."""

    text: str
    line: int
    file: str = ""


Row = dict[str, Cell]


@dataclass(slots=True)
class Section:
    """One section: its items (one for a vertical section) by upper-case keyword."""

    name: str
    line: int
    file: str = ""
    rows: list[Row] = field(default_factory=list)
    keywords_line: int = 0  # of a table
    keywords: tuple[str, ...] = ()


@dataclass(slots=True)
class Document:
    """One parsed file."""

    file: str
    sections: list[Section] = field(default_factory=list)
    settings: Row = field(default_factory=dict)  # NAME=VALUE outside sections: lsf.conf
    complaints: list[Complaint] = field(default_factory=list)

    def of(self, name: str) -> Iterator[Section]:
        """Yield all sections of that name, in any case."""
        return (section for section in self.sections if section.name.lower() == name.lower())


def read(path: Path, *, has_sections: bool = True, clock: Clock | None = None) -> Document:
    """Read and parse a file. A file that can't be read is a complaint, not an exception."""
    try:
        text = text_of(path)
    except OSError as error:
        return Document(str(path), complaints=[Complaint(str(path), 0, f"{error.strerror}")])
    return parse(text, str(path), has_sections=has_sections, clock=clock)


def parse(text: str, file: str, *, has_sections: bool = True, clock: Clock | None = None) -> Document:
    """Parse a text; ``file`` is its name in complaints.

    Args:
        has_sections: lines outside any section are an error, reported once for consecutive lines.
        clock: the time at which conditions hold; now.
    """
    document = Document(file)
    lines = list(logical_lines(text, file, lambda line, about: _complain(document, line, about), clock or Clock()))
    at, stray = 0, list[Line]()
    while at < len(lines):
        line = lines[at]
        begin, end = _BEGIN.match(line.text), _END.match(line.text)
        if begin:
            _astray(document, stray)
            stray = []
            at = _section(document, lines, at, begin[1])
            continue
        if end and stray:
            _without_begin(document, stray, line, end[1])
            stray = []
        elif end:
            _complain(document, line, f"{line.text!r} has no Begin before it")
        elif has_sections:
            stray.append(line)
        else:
            _outside(document, line)
        at += 1
    _astray(document, stray, is_fatal=not document.sections)  # behind the last section they are left out as in LSF
    return document


def _complain(document: Document, line: Line, text: str, *, is_fatal: bool = True) -> None:
    document.complaints.append(Complaint(line.file, line.number, text, is_fatal))


def _astray(document: Document, lines: list[Line], *, is_fatal: bool = True) -> None:
    """Report consecutive lines outside any section, at the first of them."""
    if lines:
        more = len(lines) - 1
        others = f" and {more} more line{'s' if more > 1 else ''} stand" if more else " stands"
        what = f"{lines[0].text[:40]!r}{others} outside any section"
        fate = "expected 'Begin SECTION' before" if is_fatal else "left out"
        _complain(document, lines[0], f"{what}; {fate}", is_fatal=is_fatal)


def _without_begin(document: Document, body: list[Line], end: Line, name: str) -> None:
    """Read a section whose Begin is missing or misspelt, so that references to it still work."""
    if _names_alone(body[0], name):
        _complain(document, body[0], f"expected 'Begin {name}', found {body[0].text!r}")
        body = body[1:]
    else:
        _complain(document, body[0], f"expected 'Begin {name}' before this line: {end.text!r} is on line {end.number}")
    _keep(document, Section(name, end.number, end.file), body)


def _names_alone(line: Line, name: str) -> bool:
    """Return True for one word and the section's name: a misspelt Begin or End."""
    words = line.text.lower().split()
    return len(words) == 2 and words[1] == name.lower()


def _keep(document: Document, section: Section, body: list[Line]) -> None:
    _fill(document, section, body)
    document.sections.append(section)


def _outside(document: Document, line: Line) -> None:
    found = _SETTING.match(line.text)
    if found is None:
        _complain(document, line, f"expected 'Begin SECTION' or NAME=VALUE, found {line.text[:40]!r}")
        return
    document.settings[found[1].upper()] = Cell(unquoted(found[2].strip()), line.number, line.file)


def _section(document: Document, lines: list[Line], at: int, name: str) -> int:
    """Read the section that begins at ``at``; return the index after it."""
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
            _keep(document, section, body)
            return at + 1
        if _BEGIN.match(line.text):
            break
        body.append(line)
        at += 1
    _without_end(document, section, body, lines[at] if at < len(lines) else None)
    return at


def _without_end(document: Document, section: Section, body: list[Line], following: Line | None) -> None:
    """Read a section whose End is missing or misspelt."""
    name = section.name
    if body and _names_alone(body[-1], name):
        _complain(document, body[-1], f"expected 'End {name}', found {body[-1].text!r}")
        body = body[:-1]
    else:
        where = "" if following is None else f" before {following.text!r} on line {following.number}"
        begin = Line(section.file, section.line, "")
        _complain(document, begin, f"'Begin {name}' has no 'End {name}'{where}")
    _keep(document, section, body)


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
            _not_a_setting(document, line)
        elif found[1].upper() in row and line.is_conditional:
            continue  # the value without a time condition counts
        elif found[1].upper() in row:
            before = row[found[1].upper()].line
            _complain(document, line, f"{found[1]} is set a second time; it was set on line {before}")
        else:
            value = unquoted(found[2].strip())
            row[found[1].upper()] = Cell("" if value in ("-", "()") else value, line.number, line.file)
    return row


def _not_a_setting(document: Document, line: Line) -> None:
    """Report a line without ``=``. Prose, as after a description without ``\\``, is left out as in LSF.

    What begins like a setting was meant as one: without USERS, say, a queue would be for all.
    """
    about = f"expected KEY = value, found {line.text[:40]!r}"
    if line.text.split()[0].isupper():
        _complain(document, line, about)
    else:
        _complain(document, line, f"{about}; the line is left out", is_fatal=False)


def _horizontal(document: Document, section: Section, body: list[Line]) -> None:
    """Read a table. A row of another length is left out, as LSF does: it must not stop a whole cluster."""
    keywords = [word.upper() for word in body[0].text.split()]
    section.keywords_line, section.keywords = body[0].number, tuple(keywords)
    twice = sorted({word for word in keywords if keywords.count(word) > 1})
    if twice:
        _complain(document, body[0], f"the column {twice[0]} is there twice")
        return
    for line in body[1:]:
        cells = cells_of(line.text)
        if len(cells) != len(keywords):
            expected = f"expected {len(keywords)} columns ({' '.join(keywords)}), found {len(cells)}"
            _complain(document, line, f"{expected}; the line is left out", is_fatal=False)
            continue
        row = {word: Cell(cell, line.number, line.file) for word, cell in zip(keywords, cells, strict=True)}
        section.rows.append(row)


def cells_of(line: str) -> list[str]:
    """Split a row into cells; parentheses and quotes are removed, ``-`` and ``()`` become empty."""
    cells = []
    for found in _CELL.finditer(line):
        text = next((group for group in found.groups() if group is not None), "").strip()
        cells.append("" if text == "-" else text)
    return cells
