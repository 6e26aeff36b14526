"""Logical lines of a configuration file: without comments, continuations joined, included files inserted.

``#INCLUDE "file"`` reads another file in its place. Of a block with time conditions (``#if time(...)``, ``#elif``,
``#else``, ``#endif``) the branch counts that holds at the time of reading; a condition that cannot be read is a
complaint, and its branch is still read and marked, so that other sections can refer to it. Comments that begin with
such a word (``# If a queue ...``) are comments.
"""

import errno
import re
import stat
import time
from collections.abc import Iterator
from datetime import UTC, tzinfo
from pathlib import Path
from typing import NamedTuple, Protocol

from lavad.config.values import Wrong, windows
from lavad.core.model.windows import Window, is_open

_DIRECTIVE = re.compile(r"#(\s*)(if|ifdef|ifndef|elif|else|endif|include)\b\s*(.*)$", re.IGNORECASE)
_CONDITION = re.compile(r"[!(]|\w+\s*\(|\S*$")  # `#if you want more` is a comment, `#if tme(8:00-9:00)` an error
_EDGE = re.compile(r"(?:begin|end)\s+\w+\s*$", re.IGNORECASE)
_FILE_MAX_MIB = 16  # the largest sites have some MiB; a larger file is named by mistake, a log for instance
_INCLUDES_MAX = 8  # nesting depth; more is a cycle
_EXPECTED = "expected time(begin-end ...), alone or joined by && || !, as in #if time(5:18:00-1:8:00 20:00-8:00)"
_TIMES = re.compile(r"(!*)\s*time\s*\(([^()]*)\)\s*\Z", re.IGNORECASE)


class Line(NamedTuple):
    """A logical line and the number of its first physical line."""

    file: str
    number: int
    text: str
    is_conditional: bool = False  # in a branch whose condition cannot be read


class Complain(Protocol):
    """Callback that reports an error on a line."""

    def __call__(self, line: Line, text: str) -> None: ...


class Condition(NamedTuple):
    """Time condition: one of these holds, of which each part holds; a part is (True to invert it, windows)."""

    choices: tuple[tuple[tuple[bool, tuple[Window, ...]], ...], ...]

    def holds(self, zone: tzinfo, at: float) -> bool:
        """Return True if the condition holds at that time."""
        return any(
            all(is_open(spans, zone, at) is not inverted for inverted, spans in choice) for choice in self.choices
        )

    @property
    def windows(self) -> tuple[tuple[Window, ...], ...]:
        """The windows at whose edges the condition may change."""
        return tuple(spans for choice in self.choices for _, spans in choice)


def condition_of(text: str) -> Condition:
    """Read the condition behind ``#if``.

    Raises:
        Wrong: it is none about the time.
    """
    choices = []
    for choice in text.split("||"):
        parts = []
        for part in choice.split("&&"):
            found = _TIMES.match(part.strip())
            spans = windows(found[2]) if found is not None else ()
            if found is None or not spans:
                raise Wrong(_EXPECTED)
            parts.append((len(found[1]) % 2 == 1, spans))
        choices.append(tuple(parts))
    return Condition(tuple(choices))


class Clock:
    """Time at which files are read, and the conditions found in them, each once and in order."""

    def __init__(self, zone: tzinfo = UTC, at: float | None = None) -> None:
        self.zone = zone
        self.at = time.time() if at is None else at
        self.conditions: dict[Condition, None] = {}

    def holds(self, condition: Condition) -> bool:
        """Return True if the condition holds; it is remembered."""
        self.conditions[condition] = None
        return condition.holds(self.zone, self.at)


class Directive(NamedTuple):
    """``#word rest``."""

    number: int
    word: str
    rest: str


def text_of(path: Path) -> str:
    """Read a file as ASCII, replacing odd bytes (in comments and descriptions) and NULs, which no system call takes.

    Raises:
        OSError: it can't be read, or never to its end: a pipe, a device.
    """
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EISDIR, "It is a directory")
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "It is no regular file")
    if found.st_size > _FILE_MAX_MIB << 20:
        raise OSError(errno.EFBIG, f"It is larger than {_FILE_MAX_MIB} MiB")
    return path.read_text(encoding="utf-8", errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def whole_text(path: Path, depth: int = 0) -> str:
    """Read a file with the files that it includes in the place of these lines; one that can't be read stays a line.

    Raises:
        OSError: the file itself can't be read.
    """
    lines = []
    for raw in text_of(path).splitlines():
        directive = _directive(raw, 0, 0)
        try:
            if directive is not None and directive.word == "include" and depth < _INCLUDES_MAX:
                raw = whole_text(path.parent / unquoted(directive.rest), depth + 1)
        except OSError:
            pass  # it stands where it is not read, or the check has said so
        lines.append(raw)
    return "\n".join([*lines, ""])


def unquoted(text: str) -> str:
    """Remove the pair of double quotes around the whole text."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def logical_lines(text: str, file: str, complain: Complain, clock: Clock, depth: int = 0) -> Iterator[Line]:
    """Yield lines without comments and blanks, with included files in place of their line.

    Args:
        clock: the time at which conditions hold.
        depth: number of files that include this one.
    """
    raws = text.splitlines()
    conditions = _Conditions(file, raws, complain, clock)
    pending, first = "", 0
    for number, raw in enumerate(raws, start=1):
        directive = _directive(raw, number, conditions.depth)
        if directive is not None and directive.word != "include":
            conditions.turn(directive)
            continue
        if conditions.is_left_out(raw):
            continue
        if directive is not None:
            yield from _included(Line(file, number, directive.rest), complain, clock, depth)
            continue
        line = raw.split("#", 1)[0].rstrip()
        if not pending:
            first = number
        if line.endswith("\\"):
            pending += line[:-1].strip() + " "
            continue
        whole = (pending + line.strip()).strip()
        pending = ""
        if whole:
            yield Line(file, first, whole, conditions.is_unread)
    if pending.strip():
        yield Line(file, first, pending.strip())


def _directive(raw: str, number: int, depth: int) -> Directive | None:
    """Parse a directive; None for other lines and for comments that only begin alike."""
    found = _DIRECTIVE.match(raw.strip())
    if found is None:
        return None
    blank, word, rest = found[1], found[2].lower(), found[3].strip()
    is_meant = not blank
    if word == "include":
        is_meant = not blank or rest[:1] == '"'
    elif word.startswith("if"):
        is_meant = bool(_CONDITION.match(rest)) if not blank else bool(re.match(r"time\s*\(", rest))
    elif blank:
        is_meant = depth > 0 and (word == "elif" or not rest)
    return Directive(number, word, rest) if is_meant else None


class _Block:
    """An ``#if`` whose ``#endif`` is still to come: its line, whether a branch was taken, and whether this one is."""

    def __init__(self, number: int, is_taken: bool, is_unread: bool) -> None:
        self.number = number
        self.is_taken = self.was_taken = is_taken
        self.is_unread = is_unread


class _Conditions:
    """State of the ``#if`` blocks at the present line."""

    def __init__(self, file: str, raws: list[str], complain: Complain, clock: Clock) -> None:
        self._file, self._complain, self._clock = file, complain, clock
        self._open_ends = _without_end(raws)
        self._stack: list[_Block] = []

    @property
    def depth(self) -> int:
        return len(self._stack)

    @property
    def is_unread(self) -> bool:
        return any(block.is_unread for block in self._stack)

    def turn(self, directive: Directive) -> None:
        """Process an ``#if``, ``#else``, ``#elif`` or ``#endif``."""
        line = Line(self._file, directive.number, directive.word)
        if directive.word.startswith("if"):
            has_no_end = directive.number in self._open_ends
            holds = self._holds(line, directive)
            if has_no_end and holds is not None:
                self._complain(line, "#if: this one has no #endif")
            self._stack.append(_Block(directive.number, holds is not False or has_no_end, holds is None or has_no_end))
        elif not self._stack:
            self._complain(line, f"#{directive.word} has no #if before it")
        elif directive.word == "endif":
            self._stack.pop()
        else:
            self._next_branch(self._stack[-1], line, directive)

    def _next_branch(self, block: _Block, line: Line, directive: Directive) -> None:
        holds = True if directive.word == "else" else self._holds(line, directive)
        block.is_taken = bool(holds) and not block.was_taken
        block.was_taken = block.was_taken or block.is_taken

    def _holds(self, line: Line, directive: Directive) -> bool | None:
        """Return True if the condition holds now; None after a complaint about one that cannot be read."""
        try:
            if directive.word not in ("if", "elif"):
                raise Wrong(_EXPECTED)
            return self._clock.holds(condition_of(directive.rest))
        except Wrong as error:
            more = "; this one has no #endif" if directive.number in self._open_ends else ""
            self._complain(line, f"#{directive.word}: {error}{more}")
            return None

    def is_left_out(self, raw: str) -> bool:
        """Return True for a line in a branch that does not count; without ``#endif`` it ends with its section."""
        outer = next((place for place, block in enumerate(self._stack) if not block.is_taken), None)
        if outer is None:
            return False
        if self._stack[outer].number in self._open_ends and _EDGE.match(raw.strip()):
            del self._stack[outer:]
            return False
        return True


def _without_end(raws: list[str]) -> frozenset[int]:
    """Return the lines of every ``#if`` without an ``#endif``."""
    waiting: list[int] = []
    for number, raw in enumerate(raws, start=1):
        directive = _directive(raw, number, len(waiting))
        if directive is not None and directive.word.startswith("if"):
            waiting.append(number)
        elif directive is not None and directive.word == "endif" and waiting:
            waiting.pop()
    return frozenset(waiting)


def _included(line: Line, complain: Complain, clock: Clock, depth: int) -> Iterator[Line]:
    name = unquoted(line.text)
    path = Path(line.file).parent / name
    if not name or depth >= _INCLUDES_MAX:
        problem = "expected a file's name" if not name else f"more than {_INCLUDES_MAX} files include one another"
        complain(line, f"#INCLUDE: {problem}")
        return
    try:
        text = text_of(path)
    except OSError as error:
        complain(line, f"#INCLUDE: {path}: {error.strerror}")
        return
    yield from logical_lines(text, str(path), complain, clock, depth + 1)
