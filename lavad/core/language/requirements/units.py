"""Numbers without a unit in select[...] that are compared with sizes: they count in the cluster's unit.

A comparison counts so if one of its sides is a size: mem, swp, tmp and their maxima, a number with a unit, sums of
these, and their multiples. ``mem/maxmem > 0.5`` compares no sizes. Pure.
"""

from lavad.core.language.requirements.select_tree import Chain, Name, Node, Number, Unary
from lavad.core.language.requirements.vocabulary import Vocabulary


class Sizes:
    """Sizes of one expression. ``plain``: its numbers without a unit, by their identity."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._plain: dict[int, Number] = {}

    def note(self, made: Number) -> Number:
        """Remember a number that was written without a unit."""
        if self._vocabulary.has_unit:
            self._plain[id(made)] = made
        return made

    def compared(self, first: Node, rest: list[tuple[str, Node]]) -> tuple[Node, list[tuple[str, Node]]]:
        """Operands of a comparison, all in MiB if one of them is a size."""
        units = [unit for node in (first, *(node for _, node in rest)) if (unit := self._unit(node)) != 1.0]
        if not self._plain or not units:
            return first, rest
        return self._in_mib(first, units[0]), [(sign, self._in_mib(node, units[0])) for sign, node in rest]

    def _power(self, node: Node) -> int:
        """1 for a size, 0 for a plain number, 2 for the product of two sizes."""
        match node:
            case Name(word):
                return int(self._vocabulary.unit_of(word) > 0)
            case Number():
                return int(id(node) not in self._plain)
            case Unary("-", inner):
                return self._power(inner)
            case Chain(first, rest) if rest[0][0] in "*/":
                return self._power(first) + sum(self._power(part) * (1 if sign == "*" else -1) for sign, part in rest)
            case Chain(first, rest) if rest[0][0] in "+-":
                return max(self._power(first), *(self._power(part) for _, part in rest))
        return 0

    def _unit(self, node: Node) -> float:
        """Unit of the first size in an operand that is a size; 1 without any."""
        if self._power(node) != 1:
            return 1.0
        match node:
            case Name(word):
                return self._vocabulary.unit_of(word) or 1.0
            case Unary(_, inner):
                return self._unit(inner)
            case Chain(first, rest):
                units = map(self._unit, (first, *(part for _, part in rest)))
                return next((unit for unit in units if unit != 1.0), 1.0)
        return 1.0

    def _in_mib(self, node: Node, unit: float) -> Node:
        match node:
            case Number(value):
                return Number(value * unit) if id(node) in self._plain else node
            case Unary("-", inner):
                return Unary("-", self._in_mib(inner, unit))
            case Chain(first, rest) if rest[0][0] in "+-":
                return Chain(self._in_mib(first, unit), tuple((sign, self._in_mib(part, unit)) for sign, part in rest))
        return node if self._power(node) else Chain(node, (("*", Number(unit)),))
