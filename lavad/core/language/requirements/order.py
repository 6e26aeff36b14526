"""Section order[...]: keys by which candidate hosts are sorted."""

from typing import NamedTuple

from lavad.core.language.requirements.lexer import Reader, bad
from lavad.core.language.requirements.vocabulary import ANY, Vocabulary
from lavad.core.model.rules.resources import ResourceKind


class OrderKey(NamedTuple):
    """One sort key; the leftmost one decides first."""

    name: str
    is_reversed: bool  # against the natural direction of the resource

    @property
    def text(self) -> str:
        return f"-{self.name}" if self.is_reversed else self.name


def parse(text: str, at: int = 0, vocabulary: Vocabulary = ANY) -> tuple[OrderKey, ...]:
    """Parse ``[!][-]res[:[-]res...]``; the ! asks for a new sort after each job, which is always done here.

    Raises:
        Refused: bad syntax or a name of no number, with the character.
    """
    reader = Reader(text, at)
    reader.skip("!")
    found: list[OrderKey] = []
    while True:
        is_reversed = reader.skip("-")
        token = reader.take()
        if token.kind != "name":
            raise bad(token.at, f"order takes names of resources, found {token.word!r}")
        if vocabulary.known(token.word, token.at) is ResourceKind.STRING:
            raise bad(token.at, f"hosts can't be sorted by {token.word}: it is a string")
        found.append(OrderKey(token.word, is_reversed))
        if not reader.skip(":"):
            reader.expect_end()
            return tuple(found)


def text_of(keys: tuple[OrderKey, ...]) -> str:
    """Text that parses to the same keys."""
    return ":".join([key.text for key in keys])
