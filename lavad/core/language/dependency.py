"""Language of dependency conditions (bsub -w).

``parse`` turns text into an expression, ``text_of`` writes it again so that it parses to the same; both in linear time.
Errors name the character they were found at. Expressions are evaluated in ``decide.jobs.dependencies``.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from lavad.core.language import job_groups
from lavad.core.model.reasons import Refused

_DEPTH_MAX = 64
_CODE_MAX = 255
_COUNT_MAX = 2_147_483_647
_WORD = re.compile(r"[A-Za-z_]\w*(?=\s*\()")
_LIST = r"\d{1,10}(?:-\d{1,10}(?::\d{1,10})?)?(?:,\d{1,10}(?:-\d{1,10}(?::\d{1,10})?)?)*"
_BARE = re.compile(r"[\w./:+%@#$^~{}-]+\*?(?:\[(?:\d+|\*|" + _LIST + r")\])?")
_PARTS = re.compile(r"(?P<name>.*?)(?P<prefix>\*?)(?:\[(?P<index>\*|" + _LIST + r")\])?", re.DOTALL)
_ELEMENTS_MAX = 1000  # in one index list
_OF_SLURM = {"after": "started", "afterok": "done", "afterany": "ended", "afternotok": "exit"}
_LISTED_MAX = 10_000  # elements in all index lists of a condition
_STATUS = re.compile(r"\"[^\s\"']+\"|'[^\s\"']+'|[^\s\"'(),&|!]+")
_NUMBER = re.compile(r"\d{1,10}")
_OPERATOR = re.compile(r">=|<=|==|!=|>|<")


class ConditionKind(StrEnum):
    """Kinds of conditions. Those on counts refer to the elements of an array, or to the jobs of a group."""

    DONE = "done"
    ENDED = "ended"
    EXIT = "exit"
    STARTED = "started"
    POST_DONE = "post_done"
    POST_ERR = "post_err"
    EXTERNAL = "external"
    NUMPEND = "numpend"
    NUMRUN = "numrun"
    NUMSTART = "numstart"
    NUMHOLD = "numhold"
    NUMDONE = "numdone"
    NUMEXIT = "numexit"
    NUMENDED = "numended"

    @property
    def is_count(self) -> bool:
        return self.startswith("num")


_KINDS = frozenset(kind.value for kind in ConditionKind)


@dataclass(frozen=True, slots=True)
class Ref:
    """Reference to a job by id or by name; ``is_prefix``: all names that begin so.

    ``index`` 0 is the whole job or array; ``each`` pairs an array with the dependent one, element by element. ``group``
    refers to the jobs of a job group, and of those below it, in a condition on counts.
    """

    job: int = 0
    name: str = ""
    is_prefix: bool = False
    index: int = 0
    each: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True)
class Clause:
    """One condition. ``operator`` compares an exit code or a count with ``number``; ``every``: with all elements.

    ``word`` is what the first word of an external status has to be.
    """

    kind: ConditionKind
    ref: Ref
    operator: str = ""
    number: int = 0
    every: bool = False
    word: str = ""


@dataclass(frozen=True, slots=True)
class Not:
    part: "Expression"


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction: all parts hold."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction: at least one part holds."""

    parts: tuple["Expression", ...]


Expression = Clause | Not | And | Or


def clauses_of(expression: Expression) -> Iterator[Clause]:
    """All conditions of an expression, from left to right."""
    match expression:
        case Clause():
            yield expression
        case Not(part):
            yield from clauses_of(part)
        case And(parts) | Or(parts):
            for part in parts:
                yield from clauses_of(part)


def parse(text: str) -> Expression:
    """Read a dependency condition.

    Raises:
        Refused: bad syntax, or a condition this version does not honour, with the place.
    """
    return _Reader(text).whole()


class _Reader:
    """Parser from left to right; ``at`` is the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0
        self.listed = 0

    def whole(self) -> Expression:
        found = self.either()
        self.blanks()
        if self.at < len(self.text):
            raise self.bad("&&, || or the end")
        return found

    def bad(self, expected: str, at: int = -1) -> Refused:
        at = self.at if at < 0 else at
        rest = self.text[at : at + 20].strip()
        found = repr(rest) if rest else "the end"
        return Refused(f"Dependency condition syntax error at character {at + 1}: expected {expected}, found {found}")

    def blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def takes(self, word: str) -> bool:
        self.blanks()
        if not self.text.startswith(word, self.at):
            return False
        self.at += len(word)
        return True

    def needs(self, word: str) -> None:
        if not self.takes(word):
            raise self.bad(word)

    def either(self) -> Expression:
        parts = [self.both()]
        while self.takes("||"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def both(self) -> Expression:
        parts = [self.one()]
        while self.takes("&&"):
            parts.append(self.one())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def one(self) -> Expression:
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            raise self.bad(f"at most {_DEPTH_MAX} nested parts")
        try:
            if self.takes("!"):
                return Not(self.one())
            if self.takes("("):
                found = self.either()
                self.needs(")")
                return found
            return self.clause()
        finally:
            self.depth -= 1

    def clause(self) -> Expression:
        """Parse a condition; of several elements (``done("a[1-3]")``) all must meet it."""
        self.blanks()
        word = _WORD.match(self.text, self.at)
        slurm, colon, _ = self.text[self.at :].partition(":")
        if word is None and colon and slurm in _OF_SLURM:
            raise self.bad(f"a condition such as {_OF_SLURM[slurm]}(12), which is Slurm's {slurm}:12")
        if word is None:
            return _all_of([Clause(ConditionKind.DONE, ref) for ref in self.refs()])
        kind = self.kind(word)
        self.needs("(")
        refs = self.refs()
        found: Expression
        if kind.is_count:
            self.needs(",")
            found = self.count(kind, refs[0])
        elif kind is ConditionKind.EXTERNAL:
            self.needs(",")
            status = self.status()
            found = _all_of([Clause(kind, ref, word=status) for ref in refs])
        else:
            compared = self.comparison(_CODE_MAX) if kind is ConditionKind.EXIT and self.takes(",") else ("", 0)
            found = _all_of([Clause(kind, ref, *compared) for ref in refs])
        self.needs(")")
        return found

    def kind(self, word: re.Match[str]) -> ConditionKind:
        name = word[0].lower()
        if name == "rsv":
            raise Refused(f"The dependency condition {name}() at character {self.at + 1} is not supported yet")
        if name not in _KINDS:
            raise self.bad("a condition such as done(), exit(), ended() or started()")
        self.at = word.end()
        return ConditionKind(name)

    def status(self) -> str:
        """Parse a word in quotes, as of external(), or without them."""
        self.blanks()
        found = _STATUS.match(self.text, self.at)
        if found is None:
            raise self.bad('one word, such as "half"')
        self.at = found.end()
        return found[0].strip("'\"")

    def count(self, kind: ConditionKind, ref: Ref) -> Expression:
        if ref.index or ref.each:
            raise self.bad("a whole array or a job group before the comma")
        if ref.name.startswith(job_groups.ROOT) and not ref.is_prefix:
            ref = Ref(group=ref.name)
        if self.takes("*"):
            return Clause(kind, ref, "==", 0, every=True)
        return Clause(kind, ref, *self.comparison(_COUNT_MAX))

    def comparison(self, most: int) -> tuple[str, int]:
        self.blanks()
        operator = _OPERATOR.match(self.text, self.at)
        if operator is not None:
            self.at = operator.end()
            self.blanks()
        number = _NUMBER.match(self.text, self.at)
        if number is None or int(number[0]) > most:
            raise self.bad(f"a number from 0 to {most}")
        self.at = number.end()
        return operator[0] if operator is not None else "==", int(number[0])

    def refs(self) -> list[Ref]:
        """Parse a reference to a job, or to elements of it."""
        self.blanks()
        at = self.at
        quote = self.text[at : at + 1]
        if quote and quote in "'\"":
            end = self.text.find(quote, at + 1)
            if end < 0:
                raise self.bad(f"a {quote} that ends the name begun")
            self.at = end + 1
            return self.named(self.text[at + 1 : end], at)
        found = _BARE.match(self.text, at)
        if found is None:
            raise self.bad("a job id or a job name")
        self.at = found.end()
        number = re.fullmatch(r"(\d{1,19})(?:\[(\*|" + _LIST + r")\])?", found[0])
        if number is None:
            return self.named(found[0], at)
        job = self.positive(number[1], at)
        return [Ref(job=job, index=index, each=each) for index, each in self.places(number[2], at)]

    def named(self, text: str, at: int) -> list[Ref]:
        parts = _PARTS.fullmatch(text)
        assert parts is not None, "every text matches"
        if not parts["name"] and not parts["prefix"]:
            raise self.bad("a job name that is not empty", at)
        if "@" in parts["name"] and parts["name"].partition("@")[0].isdigit():
            raise Refused(f"A job of another cluster, at character {at + 1}, is not supported")
        is_prefix = bool(parts["prefix"])
        places = self.places(parts["index"], at)
        return [Ref(name=parts["name"], is_prefix=is_prefix, index=index, each=each) for index, each in places]

    def places(self, indices: str | None, at: int) -> list[tuple[int, bool]]:
        """Parse the brackets into pairs: index, and True if the elements of two arrays are paired."""
        if indices is None or indices == "*":
            return [(0, indices is not None)]
        found = list[int]()
        for part in indices.split(","):
            first, last, step = [*re.split("[-:]", part), "", ""][:3]
            low, high = self.positive(first, at), self.positive(last or first, at)
            if high < low or (high - low) // self.positive(step or "1", at) >= _ELEMENTS_MAX - len(found):
                raise self.bad(f"an index list of at most {_ELEMENTS_MAX} elements", at)
            found += range(low, high + 1, int(step or "1"))
        self.note_list(len(found))
        return [(index, False) for index in found]

    def note_list(self, elements: int) -> None:
        """Bound all lists together, before a text of 4,000 characters grows to 200,000 conditions."""
        self.listed += elements if elements > 1 else 0
        if self.listed > _LISTED_MAX:
            raise Refused(f"The dependency condition lists more than {_LISTED_MAX} array elements")

    def positive(self, digits: str, at: int) -> int:
        if not int(digits):
            raise self.bad("a number of at least 1", at)
        return int(digits)


def _all_of(clauses: list[Clause]) -> Expression:
    return clauses[0] if len(clauses) == 1 else And(tuple(clauses))


def text_of(expression: Expression) -> str:
    """Text that parses to the same expression."""
    match expression:
        case Clause():
            return _clause_text(expression)
        case Not(part):
            return f"!{_inner(part)}"
        case And(parts):
            return " && ".join(map(_inner, parts))
        case Or(parts):
            return " || ".join(map(_inner, parts))


def _inner(part: Expression) -> str:
    return f"({text_of(part)})" if isinstance(part, And | Or) else text_of(part)


def _clause_text(clause: Clause) -> str:
    compared = ", *" if clause.every else f", {clause.operator} {clause.number}" if clause.operator else ""
    compared = f', "{clause.word}"' if clause.word else compared
    return f"{clause.kind.value}({_ref_text(clause.ref)}{compared})"


def _ref_text(ref: Ref) -> str:
    place = "[*]" if ref.each else f"[{ref.index}]" if ref.index else ""
    if ref.job:
        return f"{ref.job}{place}"
    name = ref.group or ref.name
    quote = "'" if '"' in name else '"'
    return f"{quote}{name}{'*' if ref.is_prefix else ''}{place}{quote}"
