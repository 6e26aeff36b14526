"""Section select[...]: an expression over values of hosts, compiled to a truth value for each host.

Parsed by hand in linear time into a small tree that prints as text which parses to the same tree. Operators, from high
to low: ! and unary -, * /, + -, > < >= <=, == !=, &&, ||. Chains of one operator level are evaluated in a loop, so that
a thousand terms do not nest a thousand calls.
"""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lavad.core.language.requirements.lexer import Reader, Token, bad, number, shown, size_mib
from lavad.core.language.requirements.select_tree import EVERY, Chain, Defined, Name, Node, Number, Unary, Word
from lavad.core.language.requirements.units import Sizes
from lavad.core.language.requirements.vocabulary import ANY, Vocabulary
from lavad.core.model.rules.resources import ResourceKind

Vector = NDArray[Any]
DEPTH_MAX = 64
_LOCAL = {"type": "local_type", "model": "local_model"}
_OPERATORS: dict[str, Any] = {
    "||": np.logical_or,
    "&&": np.logical_and,
    "==": np.equal,
    "!=": np.not_equal,
    ">=": np.greater_equal,
    "<=": np.less_equal,
    ">": np.greater,
    "<": np.less,
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.true_divide,
}
_LEVELS = (("||",), ("&&",), ("==", "!="), (">", "<", ">=", "<="), ("+", "-"), ("*", "/"))
_EQUALITY = 2


class Values(Protocol):
    """Values of hosts by name, one for each host."""

    def __len__(self) -> int:
        """Number of hosts."""

    def values(self, name: str) -> Vector:
        """Number, boolean or string of each host; False for an unknown name."""

    def defined(self, name: str) -> Vector:
        """True for hosts that have the resource."""


# -- text to tree ------------------------------------------------------------------------------------------------------


class _Parser:
    """Recursive descent parser; each rule returns a tree."""

    def __init__(self, text: str, at: int, vocabulary: Vocabulary) -> None:
        self.reader = Reader(text, at)
        self.vocabulary = vocabulary
        self.sizes = Sizes(vocabulary)
        self.depth = 0

    def whole(self) -> Node:
        made = self.level(0)
        self.reader.expect_end()
        self._no_word(made, self.reader.next.at)
        return made

    def level(self, number: int) -> Node:
        if number == len(_LEVELS):
            return self.unary()
        signs = (*_LEVELS[number], "=") if number == _EQUALITY else _LEVELS[number]
        start = self.reader.next.at
        first = self.level(number + 1)
        rest: list[tuple[str, Node]] = []
        while self.reader.next.kind == "op" and self.reader.next.word in signs:
            sign = self.reader.take()
            rest.append(("==" if sign.word == "=" else sign.word, self.level(number + 1)))
        if not rest:
            return first
        if number in (_EQUALITY, _EQUALITY + 1):
            first, rest = self.sizes.compared(first, rest)
        return self._equal(first, rest, start) if number == _EQUALITY else self._chained(first, rest, start)

    def _chained(self, first: Node, rest: list[tuple[str, Node]], at: int) -> Node:
        for node in (first, *(node for _, node in rest)):
            self._no_word(node, at)
        return Chain(first, tuple(rest))

    def _equal(self, first: Node, rest: list[tuple[str, Node]], at: int) -> Node:
        """Compare for equality, numbers or strings; in an open vocabulary a name compared with a string is a string."""
        if self.vocabulary.is_open and any(_is_string(node) for node in (first, *(node for _, node in rest))):
            first, rest = _as_string(first), [(sign, _as_string(node)) for sign, node in rest]
        for _, node in rest:
            if _is_string(first) != _is_string(node) or (_is_string(first) and len(rest) > 1):
                raise bad(at, "words can only be compared with words, by == or !=")
        return Chain(first, tuple(rest))

    def _no_word(self, node: Node, at: int) -> None:
        if _is_string(node):
            raise bad(at, "words can only be compared, with == or !=")

    def unary(self) -> Node:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise bad(self.reader.next.at, "nested too deeply")
        try:
            if self.reader.next.kind == "op" and self.reader.next.word in ("!", "-"):
                sign = self.reader.take()
                inner = self.unary()
                self._no_word(inner, sign.at)
                return Unary(sign.word, inner)
            return self.atom()
        finally:
            self.depth -= 1

    def atom(self) -> Node:
        before = self.reader.next
        token = self.reader.take()
        if token.kind == "op" and token.word == "(":
            inner = self.level(0)
            if not self.reader.skip(")"):
                raise bad(token.at, "this ( has no )")
            return inner
        if token.kind == "number":
            if token.word[-1].isalpha():
                return Number(size_mib(token.word, token.at))
            return self.sizes.note(Number(number(token.word, token.at)))
        if token.kind == "string":
            return Word(token.word[1:-1])
        if token.kind == "name":
            return self.name(token)
        raise bad(before.at, f"did not expect {token.word!r} here")

    def name(self, token: Token) -> Node:
        if token.word == "defined" and self.reader.skip("("):
            resource = self.reader.take()
            if not self.reader.skip(")"):
                raise bad(token.at, "defined takes one name in parentheses")
            self.vocabulary.known(resource.word, resource.at)
            return Defined(resource.word)
        compared = self.compared_name()
        if compared is not None:
            return self.word(compared, token.word)
        return Name(token.word, self.vocabulary.known(token.word, token.at))

    def compared_name(self) -> str | None:
        """String resource that the word just taken is compared with, or None."""
        left = self.reader.compared
        return left if left and self.vocabulary.kind(left) is ResourceKind.STRING else None

    def word(self, compared: str, text: str) -> Word:
        """String to compare with; ``local`` is the submission host's value."""
        if text != "local" or compared not in _LOCAL:
            return Word(text)
        return Word(getattr(self.vocabulary, _LOCAL[compared]) or "any")


def _is_string(node: Node) -> bool:
    return isinstance(node, Word) or (isinstance(node, Name) and node.kind is ResourceKind.STRING)


def _as_string(node: Node) -> Node:
    is_flag = isinstance(node, Name) and node.kind is ResourceKind.BOOLEAN
    return Name(node.word, ResourceKind.STRING) if is_flag and isinstance(node, Name) else node


def parse(text: str, at: int = 0, vocabulary: Vocabulary = ANY) -> Node:
    """Parse a select expression, also in the restricted old form; an empty one selects all hosts.

    Raises:
        Refused: bad syntax or an unknown name, with the character.
    """
    if not text.strip():
        return EVERY
    if ":" in text or text.strip() == "-":
        return _old_form(text, at, vocabulary)
    return _Parser(text, at, vocabulary).whole()


def _old_form(text: str, at: int, vocabulary: Vocabulary) -> Node:
    """Parse ``r15m=1.5:mem=20:-ultrix``: all hold; = asks for a value at least that good, a bare - for any type."""
    found: list[Node] = []
    for part in text.split(":"):
        word = part.strip()
        start = at + part.index(word) if word else at
        name, equals, value = (piece.strip() for piece in word.partition("="))
        if not word:
            raise bad(at, "a part between two : is empty")
        if word != "-":
            found.append(_old_part(name, value, start, vocabulary) if equals else _flag(word, start, vocabulary))
        at += len(part) + 1
    if len(found) < 2:
        return found[0] if found else EVERY
    return Chain(found[0], tuple(("&&", node) for node in found[1:]))


def _old_part(name: str, value: str, at: int, vocabulary: Vocabulary) -> Node:
    kind = vocabulary.known(name, at)
    if kind is ResourceKind.STRING:
        return Chain(Name(name, kind), (("==", Word(value)),))
    sign = "<=" if vocabulary.is_increasing(name) else ">="
    return Chain(Name(name, kind), ((sign, Number(size_mib(value, at, vocabulary.unit_of(name) or 1.0))),))


def _flag(word: str, at: int, vocabulary: Vocabulary) -> Node:
    if word.startswith("-"):
        return Unary("!", _flag(word[1:].strip(), at + 1, vocabulary))
    return _Parser(word, at, vocabulary).whole()


def both(first: Node, second: Node) -> Node:
    """Conjunction of two expressions."""
    if EVERY in (first, second):
        return second if first == EVERY else first
    return Chain(first, (("&&", second),))


# -- tree to text ------------------------------------------------------------------------------------------------------


def text_of(node: Node) -> str:
    """Text that parses to the same tree."""
    match node:
        case Number(value):
            return shown(value)
        case Word(text):
            return f'"{text}"' if "'" in text else f"'{text}'"
        case Name(word):
            return word
        case Defined(word):
            return f"defined({word})"
        case Unary(sign, inner):
            return f"{sign}{_inside(inner)}"
        case Chain(first, rest):
            return _inside(first) + "".join([f" {sign} {_inside(part)}" for sign, part in rest])


def _inside(node: Node) -> str:
    return f"({text_of(node)})" if isinstance(node, Chain) else text_of(node)


def names_in(node: Node) -> Iterator[str]:
    """Resources whose values the expression uses."""
    match node:
        case Name(word):
            yield word
        case Unary(_, inner):
            yield from names_in(inner)
        case Chain(first, rest):
            yield from names_in(first)
            for _, part in rest:
                yield from names_in(part)


# -- evaluation --------------------------------------------------------------------------------------------------------

Column = Callable[[Values], Vector]


def compiled(node: Node) -> Column:
    """Compile to a function from hosts to a value of each."""
    match node:
        case Number(value):
            constant = np.float64(value)
            return lambda hosts: np.asarray(constant)
        case Word(text):
            return lambda hosts: np.asarray(text)
        case Name(word):
            return lambda hosts: hosts.values(word)
        case Defined(word):
            return lambda hosts: hosts.defined(word)
        case Unary("!", inner):
            value_of = compiled(inner)
            return lambda hosts: np.logical_not(_numbers(value_of(hosts)))
        case Unary(_, inner):
            value_of = compiled(inner)
            return lambda hosts: np.negative(_numbers(value_of(hosts)))
        case Chain(first, rest):
            if _is_string(first):
                return _compared(compiled(first), rest[0][0], compiled(rest[0][1]))
            return _joined(compiled(first), [(_OPERATORS[sign], compiled(part)) for sign, part in rest])


def _numbers(value: Vector) -> Vector:
    """Convert to numbers; True is 1."""
    return np.asarray(value, dtype=np.float64)


def _joined(first: Column, rest: list[tuple[Any, Column]]) -> Column:
    def together(hosts: Values) -> Vector:
        value = _numbers(first(hosts))
        for operator, part in rest:
            value = _numbers(operator(value, _numbers(part(hosts))))
        return value

    return together


def _compared(left: Column, sign: str, right: Column) -> Column:
    """Compare two strings; ``any`` equals all."""

    def compare(hosts: Values) -> Vector:
        a, b = left(hosts), right(hosts)
        equal = np.ones(len(hosts), dtype=bool) if "any" in (_single(a), _single(b)) else np.equal(a, b)
        return equal if sign == "==" else np.logical_not(equal)

    return compare


def _single(value: Vector) -> str | None:
    return str(value) if value.ndim == 0 else None


class Selection:
    """Compiled select text. ``names`` are the resources whose values it uses."""

    __slots__ = ("_column", "names", "text")

    def __init__(self, text: str, at: int = 0, vocabulary: Vocabulary = ANY) -> None:
        node = parse(text, at, vocabulary)
        self.text = text_of(node)
        self.names = frozenset(names_in(node))
        self._column = compiled(node)

    def truth(self, hosts: Values) -> NDArray[np.bool_]:
        """True for hosts that satisfy the expression. Undefined values (1/0) are numpy's."""
        with np.errstate(all="ignore"):
            value = self._column(hosts)
        return np.broadcast_to(np.asarray(value, dtype=bool), (len(hosts),))
