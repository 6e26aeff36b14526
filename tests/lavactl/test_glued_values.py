"""Values written without a space after the letter of their option, a habit of LSF's users and of AiiDA's scheduler."""

import pytest

from lavactl.errors import UsageError
from lavactl.parsers import parsers

LISTS_AND_CONTROLS = ("bjobs", "bkill", "bqueues", "bhist", "bacct", "bstop", "bresume", "bhosts", "lsload")


@pytest.mark.parametrize("command", LISTS_AND_CONTROLS)
def test_a_name_may_follow_its_letter_at_once(command: str) -> None:
    """As a wrong one is refused by the cluster, it is no danger if an option was misspelt."""
    (grammar,) = parsers(command)
    for letter in set("uqmR") & set(grammar.kinds):
        assert grammar.parse([f"-{letter}all"]).items == [(letter, "all")]


@pytest.mark.parametrize(
    ("command", "word"), [("bjobs", "-Jobs"), ("bjobs", "-outfile"), ("bsub", "-umask"), ("bmod", "-user")]
)
def test_other_words_are_options(command: str, word: str) -> None:
    """A misspelt option is no name of a job and no address for mail."""
    (grammar,) = parsers(command)
    with pytest.raises(UsageError, match=f"illegal option -- {word[1:]}"):
        grammar.parse([word, "x"])


@pytest.mark.parametrize(
    ("command", "argv", "items"),
    [
        ("bjobs", ["-o exit_code", "-noheader", "7"], [("o", "exit_code"), ("noheader", "")]),
        ("bhist", ["-l", "-n2", "7"], [("l", ""), ("n", "2")]),
        ("bkill", ["-s", "SIGTERM", "7"], [("s", "SIGTERM")]),
    ],
)
def test_words_of_erts_driver(command: str, argv: list[str], items: list[tuple[str, str]]) -> None:
    """Equinor's ERT passes an option and its value as one word, with a blank between them."""
    (grammar,) = parsers(command)
    found = grammar.parse(argv)
    assert [(letter, value.strip()) for letter, value in found.items] == items
    assert found.words == ["7"]
