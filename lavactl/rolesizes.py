"""Sizes of the roles of a job as users write them: ``worker=3``, or a number alone for a job of one role."""

from lavactl.options import Grammar, printable
from lavactl.text.units import read_count
from lavactl.wire import messages

TASKS_MAX = 2**31 - 1


def read_sizes(words: list[str], grammar: Grammar) -> list[messages.RoleSize]:
    """Sizes in the words.

    Raises:
        UsageError: a word is none.
    """
    return [_size(word, grammar) for word in words]


def _size(word: str, grammar: Grammar) -> messages.RoleSize:
    role, equals, tasks = word.rpartition("=")
    try:
        if equals and not role:
            raise ValueError
        return messages.RoleSize(role=role, tasks=read_count(tasks, 0, TASKS_MAX))
    except ValueError:
        raise grammar.wrong(f"{printable(word)}: role=tasks is expected") from None
