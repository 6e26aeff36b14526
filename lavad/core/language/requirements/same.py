"""Section same[...]: resources whose values must be equal on all hosts of a job."""

from lavad.core.language.requirements.lexer import Reader, bad
from lavad.core.language.requirements.vocabulary import ANY, Vocabulary


def parse(text: str, at: int = 0, vocabulary: Vocabulary = ANY) -> tuple[str, ...]:
    """Parse ``type:model``, names of static resources.

    Raises:
        Refused: bad syntax or an unknown name, with the character.
    """
    reader = Reader(text, at)
    found: list[str] = []
    while True:
        token = reader.take()
        if token.kind != "name":
            raise bad(token.at, f"same takes names of resources, found {token.word!r}")
        vocabulary.known(token.word, token.at)
        found.append(token.word)
        if not reader.skip(":"):
            reader.expect_end()
            return tuple(dict.fromkeys(found))
