"""Options that select jobs or hosts, as several of Slurm's commands have them."""

from lavactl.slurm.words.options import Given, fail
from lavactl.slurm.words.states import State, read_state
from protos.slurm_words import expanded


def listed(given: Given, name: str) -> list[str]:
    """Words of an option that takes a list with commas, and may be given several times."""
    return [word.strip() for text in given.all(name) for word in text.split(",") if word.strip()]


def split_ids(text: str) -> list[str]:
    """Ids of a list with commas, those within brackets aside."""
    import re

    return [word for word in re.split(r",(?![^\[]*\])", text) if word.strip()]


def hosts_of(given: Given, name: str, command: str) -> set[str]:
    """Hosts that an option names, also as n[01-04]; empty without the option.

    Raises:
        CommandError: its value is no list of hosts.
    """
    found = set[str]()
    for text in given.all(name):
        try:
            found.update(expanded(text))
        except ValueError:
            raise fail(command, f"--{name} {text}: expected hosts such as n[01-04],n07.") from None
    return found


def states_of(words: list[str], command: str) -> frozenset[State] | None:
    """States that the words name, without those that no job here has; None without a word: any state.

    Raises:
        CommandError: Slurm has no such state.
    """
    found = set()
    for word in words:
        try:
            found.add(read_state(word))
        except ValueError:
            raise fail(command, f"Invalid job state specified: {word}") from None
    return frozenset(state for state in found if state is not None) if words else None
