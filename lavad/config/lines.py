"""Logical lines of a configuration file: without comments, continuations joined, included files inserted.

``#INCLUDE "file"`` reads another file in its place. Blocks with a time condition (``#if time(...)``) are refused with
one complaint for each; their first branch is still read and marked, so that other sections can refer to it. Comments
that begin with such a word (``# If a queue ...``) are comments.
"""

import errno
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

_DIRECTIVE = re.compile(r"#(\s*)(if|ifdef|ifndef|elif|else|endif|include)\b\s*(.*)$", re.IGNORECASE)
_CONDITION = re.compile(r"[!(]|\w+\s*\(|\S*$")  # `#if you want more` is a comment, `#if tme(8:00-9:00)` an error
_EDGE = re.compile(r"(?:begin|end)\s+\w+\s*$", re.IGNORECASE)
_FILE_MAX_MIB = 16  # the largest sites have some MiB; a larger file is named by mistake, a log for instance
_INCLUDES_MAX = 8  # nesting depth; more is a cycle
_BY_THE_CLOCK = (
    "#if: lava does not change its configuration by the clock; expected the lines for all times "
    "(RUN_WINDOW, DISPATCH_WINDOW and the LAVA_WINDOW of a limit depend on the time)"
)


class Line(NamedTuple):
    """A logical line and the number of its first physical line."""

    file: str
    number: int
    text: str
    is_conditional: bool = False  # in the first branch of an #if


class Complain(Protocol):
    """Callback that reports an error on a line."""

    def __call__(self, line: Line, text: str) -> None: ...


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


def unquoted(text: str) -> str:
    """Remove the pair of double quotes around the whole text."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def logical_lines(text: str, file: str, complain: Complain, depth: int = 0) -> Iterator[Line]:
    """Yield lines without comments and blanks, with included files in place of their line.

    Args:
        depth: number of files that include this one.
    """
    raws = text.splitlines()
    conditions = _Conditions(file, raws, complain)
    pending, first = "", 0
    for number, raw in enumerate(raws, start=1):
        directive = _directive(raw, number, conditions.depth)
        if directive is not None and directive.word != "include":
            conditions.turn(directive)
            continue
        if conditions.is_left_out(raw):
            continue
        if directive is not None:
            yield from _included(Line(file, number, directive.rest), complain, depth)
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
            yield Line(file, first, whole, conditions.depth > 0)
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


class _Conditions:
    """State of the ``#if`` blocks at the present line."""

    def __init__(self, file: str, raws: list[str], complain: Complain) -> None:
        self._file, self._complain = file, complain
        self._open_ends = _without_end(raws)
        self._stack: list[int] = []  # lines of the open #if
        self._other_branch = 0  # in an #else or #elif, at this depth

    @property
    def depth(self) -> int:
        return len(self._stack)

    def turn(self, directive: Directive) -> None:
        """Process an ``#if``, ``#else``, ``#elif`` or ``#endif``."""
        line = Line(self._file, directive.number, directive.word)
        if directive.word.startswith("if"):
            self._stack.append(directive.number)
            has_no_end = directive.number in self._open_ends
            if self.depth == 1 or has_no_end:
                self._complain(line, _BY_THE_CLOCK + ("; this one has no #endif" if has_no_end else ""))
        elif not self._stack:
            self._complain(line, f"#{directive.word} has no #if before it")
        elif directive.word == "endif":
            self._stack.pop()
            if self.depth < self._other_branch:
                self._other_branch = 0
        elif not self._other_branch:
            self._other_branch = self.depth

    def is_left_out(self, raw: str) -> bool:
        """Return True for a line in a later branch; without an ``#endif`` the branch ends with its section."""
        if self._other_branch and self._stack[self._other_branch - 1] in self._open_ends and _EDGE.match(raw.strip()):
            del self._stack[self._other_branch - 1 :]
            self._other_branch = 0
        return bool(self._other_branch)


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


def _included(line: Line, complain: Complain, depth: int) -> Iterator[Line]:
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
    yield from logical_lines(text, str(path), complain, depth + 1)
