"""Tree of a select expression."""

from dataclasses import dataclass

from lavad.core.model.rules.resources import ResourceKind


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Word:
    """A string to compare with. ``any`` equals all strings."""

    text: str


@dataclass(frozen=True, slots=True)
class Name:
    """Name of a resource."""

    word: str
    kind: ResourceKind


@dataclass(frozen=True, slots=True)
class Defined:
    """True for hosts on which the resource is defined."""

    word: str


@dataclass(frozen=True, slots=True)
class Unary:
    sign: str
    inner: "Node"


@dataclass(frozen=True, slots=True)
class Chain:
    """Operators of one level, evaluated from left to right."""

    first: "Node"
    rest: tuple[tuple[str, "Node"], ...]


Node = Number | Word | Name | Defined | Unary | Chain
EVERY = Number(1.0)
