"""The -R language: ``select[...] order[...] rusage[...] span[...]``, parsed by hand in linear time.

``parse`` turns text into a ``Requirement``; ``select_mask`` compiles a select expression to a boolean vector over the
host table. Several -R texts are and-ed by joining them with blanks. Errors name the character they were found at.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lavad.core.indexes.hosts import LOAD_INDICES, HostTable
from lavad.core.model import HostFacts
from lavad.core.reasons import Refused

_SECTION = re.compile(r"(select|order|rusage|span|same|cu|affinity)\s*\[", re.IGNORECASE)
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[KMGT]B?)?(?![\w]))|(?P<name>[A-Za-z_][\w.\-]*)|(?P<string>'[^']*'|\"[^\"]*\")"
    r"|(?P<op>\|\||&&|==|!=|>=|<=|[-+*/<>()!=,])|(?P<bad>\S))"
)
_DEPTH_MAX = 64
_UNIT_MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024}
_TEXT_MAX = 4094
# Far above what hosts have, and far below where sums over hosts and tasks would not fit 64 bits.
_MEMORY_MAX_MIB = 1 << 40
_COUNT_MAX = 1_000_000

Vector = NDArray[Any]
Scalar = np.float64 | np.str_


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one or several -R texts ask for. Memory is reserved on each host that gets tasks."""

    select: str = ""
    memory_mib: int = 0
    gpus: int = 0
    one_host: bool = False
    ptile: int = 0


def parse(text: str) -> Requirement:
    """Read a requirement.

    Raises:
        Refused: bad syntax, an unknown resource, or a section this version does not honour, with the place.
    """
    if len(text) > _TEXT_MAX:
        raise Refused(f"Bad resource requirement syntax: longer than {_TEXT_MAX} characters")
    wanted = Requirement()
    for name, body, at in _sections(text):
        wanted = _SECTIONS[name](wanted, body, at)
    return wanted


def _bad(at: int, what: str) -> Refused:
    return Refused(f"Bad resource requirement syntax at character {at + 1}: {what}")


def _sections(text: str) -> Iterator[tuple[str, str, int]]:
    """(name, body, offset of body); text before the first section is a select, as in LSF."""
    at = 0
    first = _SECTION.search(text)
    lead = text[: first.start()] if first else text
    if lead.strip():
        yield "select", lead, 0
    at = len(lead)
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        found = _SECTION.match(text, at)
        if not found:
            raise _bad(at, f"expected a section such as span[...], found {text[at:].strip()[:20]!r}")
        end = _closing(text, found.end())
        yield found.group(1).lower(), text[found.end() : end], found.end()
        at = end + 1


def _closing(text: str, at: int) -> int:
    end = text.find("]", at)
    if end < 0:
        raise _bad(at, "this [ has no ]")
    return end


# -- sections ---------------------------------------------------------------------------------------------------


def _select(wanted: Requirement, body: str, at: int) -> Requirement:
    compile_select(body, at)
    both = f"({wanted.select}) && ({body.strip()})" if wanted.select else body.strip()
    return replace(wanted, select=both)


def _rusage(wanted: Requirement, body: str, at: int) -> Requirement:
    for item in re.split(r"[,:]", body):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not value:
            raise _bad(at, f"rusage takes name=value, found {item.strip()!r}")
        if name == "mem":
            wanted = replace(wanted, memory_mib=_whole(_size_mib(value, at), _MEMORY_MAX_MIB, at))
        elif name in ("ngpus_physical", "ngpus_excl_p", "ngpus_shared"):
            wanted = replace(wanted, gpus=_whole(_number(value, at), _COUNT_MAX, at))
        else:
            raise _bad(at, f"rusage can reserve mem and ngpus_physical; {name!r} is not known here")
    return wanted


def _span(wanted: Requirement, body: str, at: int) -> Requirement:
    name, equals, value = (part.strip() for part in body.partition("="))
    if name == "hosts" and equals and value in ("1", "-1"):
        return replace(wanted, one_host=value == "1", ptile=0)
    if name == "ptile" and value.isascii() and value.isdigit() and 0 < float(value) <= _COUNT_MAX:
        return replace(wanted, ptile=int(value), one_host=False)
    raise _bad(at, f"span takes hosts=1 or ptile=n, found {body.strip()!r}")


def _order(wanted: Requirement, body: str, at: int) -> Requirement:
    raise _bad(at, "the order section is not honoured by this version")


def _unsupported(wanted: Requirement, body: str, at: int) -> Requirement:
    raise _bad(at, "the same, cu and affinity sections are not honoured by this version")


_SECTIONS: dict[str, Callable[[Requirement, str, int], Requirement]] = {
    "select": _select,
    "rusage": _rusage,
    "span": _span,
    "order": _order,
    "same": _unsupported,
    "cu": _unsupported,
    "affinity": _unsupported,
}


def _number(text: str, at: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise _bad(at, f"expected a number, found {text!r}") from None


def _whole(value: float, most: int, at: int) -> int:
    """Rounded up; scheduling counts in 64 bits, so what is absurd is refused here."""
    if not 0 <= value <= most:
        raise _bad(at, f"expected a number from 0 to {most}")
    return int(np.ceil(value))


def _size_mib(text: str, at: int) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)B?", text, re.IGNORECASE)
    if not found:
        raise _bad(at, f"expected a size such as 2000 or 4GB, found {text!r}")
    return float(found.group(1)) * _UNIT_MIB[found.group(2).upper() or "M"]


# -- select: text to a function over columns ----------------------------------------------------------------------

Column = Callable[[HostTable], Vector | Scalar]


def _facts_column(attribute: str) -> Column:
    return lambda table: np.array([getattr(facts, attribute) for facts in table.facts])


def _load_column(name: str) -> Column:
    place = LOAD_INDICES.index(name)
    return lambda table: table.load[: len(table), place]


_COLUMNS: dict[str, Column] = {
    "ncpus": _facts_column("cpus"),
    "maxmem": _facts_column("memory_mib"),
    "maxswp": _facts_column("swap_mib"),
    "maxtmp": _facts_column("tmp_mib"),
    "cpuf": _facts_column("cpu_factor"),
    "type": _facts_column("type"),
    "model": _facts_column("model"),
    "hname": _facts_column("name"),
    "ngpus": _facts_column("gpus"),
    "ngpus_physical": _facts_column("gpus"),
    "maxslots": _facts_column("slots"),
    "slots": lambda table: table.slots_free[: len(table)],
    **{name: _load_column(name) for name in LOAD_INDICES},
    "swap": _load_column("swp"),
    "login": _load_column("ls"),
    "idle": _load_column("it"),
    "cpu": _load_column("r1m"),
}
_WORDS = ("any", "local")  # type==any, type==local


class _Parser:
    """Recursive descent over the select grammar; each rule gives a function from host table to vector."""

    def __init__(self, text: str, at: int) -> None:
        self.tokens = list(_tokens(text, at))
        self.place = 0
        self.depth = 0

    def peek(self) -> str:
        return self.tokens[self.place][1] if self.place < len(self.tokens) else ""

    def take(self) -> tuple[str, str, int]:
        if self.place == len(self.tokens):
            raise _bad(self.tokens[-1][2] if self.tokens else 0, "the expression ends too early")
        token = self.tokens[self.place]
        self.place += 1
        return token

    def whole(self) -> Column:
        made = self.either()
        if self.place < len(self.tokens):
            _, word, at = self.tokens[self.place]
            raise _bad(at, f"did not expect {word!r} here")
        return made

    def either(self) -> Column:
        return self._chain(self.both, {"||": np.logical_or})

    def both(self) -> Column:
        return self._chain(self.comparison, {"&&": np.logical_and})

    def comparison(self) -> Column:
        left = self.sum()
        if self.peek() in _COMPARE:
            _, word, at = self.take()
            right = self.sum()
            return _compared(_COMPARE[word], left, right, at)
        return left

    def sum(self) -> Column:
        return self._chain(self.product, {"+": np.add, "-": np.subtract})

    def product(self) -> Column:
        return self._chain(self.unary, {"*": np.multiply, "/": np.true_divide})

    def _chain(self, part: Callable[[], Column], operators: dict[str, Any]) -> Column:
        first = part()
        rest: list[tuple[Any, Column]] = []
        while self.peek() in operators:
            operator = operators[self.take()[1]]
            rest.append((operator, part()))
        return _joined(first, rest) if rest else first

    def unary(self) -> Column:
        self.depth += 1
        if self.depth > _DEPTH_MAX:
            raise _bad(0, "nested too deeply")
        try:
            if self.peek() == "!":
                self.take()
                inner = self.unary()
                return lambda table: np.logical_not(inner(table))
            if self.peek() == "-":
                self.take()
                inner = self.unary()
                return lambda table: np.negative(_number_of(inner(table)))
            return self.atom()
        finally:
            self.depth -= 1

    def atom(self) -> Column:
        kind, word, at = self.take()
        if word == "(":
            inner = self.either()
            if self.peek() != ")":
                raise _bad(at, "this ( has no )")
            self.take()
            return inner
        if kind == "number":
            value = _size_mib(word, at) if word[-1].isalpha() else float(word)
            return lambda table: np.float64(value)
        if kind == "string":
            return lambda table: np.str_(word[1:-1])
        if kind == "name":
            return self.name(word, at)
        raise _bad(at, f"did not expect {word!r} here")

    def name(self, word: str, at: int) -> Column:
        if word == "defined" and self.peek() == "(":
            self.take()
            _, resource, _ = self.take()
            if self.take()[1] != ")":
                raise _bad(at, "defined takes one name in parentheses")
            return _resource(resource)
        if word in _COLUMNS:
            return _COLUMNS[word]
        before = self.tokens[self.place - 2][1] if self.place >= 2 else ""
        if before in ("==", "!=", "="):
            return lambda table: np.str_(word)
        return _resource(word)


def _tokens(text: str, at: int) -> Iterator[tuple[str, str, int]]:
    text, place, before = text.rstrip(), 0, ""
    while found := _TOKEN.match(text, place):
        kind = found.lastgroup or "bad"
        word, start = found.group(kind), found.start(kind)
        if kind == "bad":
            raise _bad(at + start, f"did not expect {word!r}")
        if kind == "name" and before not in ("==", "!=", "="):
            word = word.partition("-")[0]  # a minus; only a word to compare with, as a host's name, may hold one
        yield kind, word, at + start
        place, before = start + len(word), word


def _resource(name: str) -> Column:
    """A boolean resource: true on the hosts that list it."""
    return lambda table: np.array([name in facts.resources for facts in table.facts], dtype=bool)


def _number_of(value: Vector | Scalar) -> Vector:
    """True counts as 1."""
    return np.asarray(_no_word(value), dtype=np.float64)


def _no_word(value: Vector | Scalar) -> Vector | Scalar:
    if value.dtype.kind == "U":
        raise TypeError("a word is neither a number nor true or false")
    return value


def _joined(first: Column, rest: list[tuple[Any, Column]]) -> Column:
    """From left to right, in a loop: a user's thousand terms must not nest a thousand calls."""

    def together(table: HostTable) -> Vector | Scalar:
        value = _no_word(first(table))
        for operator, part in rest:
            value = operator(_number_of(value), _number_of(part(table)))
        return value

    return together


_COMPARE = {
    "==": np.equal,
    "=": np.equal,
    "!=": np.not_equal,
    ">=": np.greater_equal,
    "<=": np.less_equal,
    ">": np.greater,
    "<": np.less,
}


def _compared(operator: Any, left: Column, right: Column, at: int) -> Column:
    def compare(table: HostTable) -> Vector:
        a, b = np.asarray(left(table)), np.asarray(right(table))
        if "U" in (a.dtype.kind, b.dtype.kind):
            return _compared_words(operator, a, b, len(table))
        return np.asarray(operator(a, b))

    return compare


def _compared_words(operator: Any, a: Vector, b: Vector, hosts: int) -> Vector:
    """Strings: only == and != mean something. ``any`` and ``local`` match every type (one type here until there are
    several)."""
    if b.ndim == 0 and str(b) in _WORDS:
        return np.full(hosts, operator is np.equal)
    if operator not in (np.equal, np.not_equal):
        return np.zeros(hosts, dtype=bool)
    return np.asarray(operator(a.astype(str), b.astype(str)))


def compile_select(text: str, at: int = 0) -> Column:
    """A select expression as a function from host table to truth for each host.

    Raises:
        Refused: bad syntax, with the character.
    """
    if not text.strip():
        return lambda table: np.ones(len(table), dtype=bool)
    column = _Parser(text, at).whole()
    try:
        truth(column, _probe())
    except (TypeError, ValueError):  # numpy's, for words in a sum and the like
        raise _bad(at, "words can only be compared, with == or !=") from None
    return column


def _probe() -> HostTable:
    table = HostTable()
    table.add(HostFacts("probe", 1))
    return table


def truth(column: Column, table: HostTable) -> NDArray[np.bool_]:
    """The value for each host, as true or false. What has no value (1/0) is as numpy has it."""
    with np.errstate(all="ignore"):
        value = np.asarray(column(table))
    return np.broadcast_to(np.asarray(_no_word(value), dtype=bool), (len(table),))


def select_mask(text: str, table: HostTable) -> NDArray[np.bool_]:
    """Which hosts satisfy a select expression now."""
    return truth(compile_select(text), table)
