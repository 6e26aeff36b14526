"""Small job files that would grow without bound, or take forever to read."""

import time

import pytest

from lavactl.errors import CommandError
from lavactl.job_files.importers.kubernetes.expansion import VALUE_MAX, expand, shell_word
from lavactl.job_files.importers.kubernetes.variables import SIZE_MAX, Variables
from lavactl.job_files.text.json_text import read_json
from lavactl.job_files.text.nodes import FileError

KEYS = 60_000


def test_variables_that_double_are_refused() -> None:
    """Each refers to the one before it twice: the text that is too long is never made."""
    known = {"A0": "x" * 16}

    def double() -> None:
        for at in range(60):
            known[f"A{at + 1}"] = expand(f"$(A{at})$(A{at})", known)

    with pytest.raises(CommandError, match=r"\$\(A\d+\)\$\(A\d+\): with its \$\(NAME\) replaced it would be longer"):
        double()
    assert max(map(len, known.values())) <= VALUE_MAX


def test_words_of_a_command_are_bounded_alike() -> None:
    """Also those that the shell completes with what only the task knows."""
    known = {"A": "x" * 1000}
    assert expand("$(A)" * 100, known) == "x" * 100_000
    with pytest.raises(CommandError, match="longer than"):
        shell_word("$(A)" * 1000 + "$(B)", known, {"B": '"$B"'})


def test_all_variables_together_are_bounded() -> None:
    """Many long ones are no job's; one that is set again counts once."""
    found = Variables()
    for _ in range(100):
        found.put("A", found.known, "x" * (SIZE_MAX // 2))
    found.put("B", found.secret, "x" * (SIZE_MAX // 2))
    with pytest.raises(CommandError, match="longer than 4 MiB together"):
        found.put("C", found.secret, "x")


def test_places_of_a_long_file_are_found_at_once() -> None:
    """Keys on lines of their own: the time grows with the file and not with its square; each place is right."""
    text = "{\n" + ",\n".join(f'  "k{at}": {at}' for at in range(KEYS)) + "\n}"
    times = []
    for count in (KEYS // 8, KEYS):
        part = "{\n" + ",\n".join(f'  "k{at}": {at}' for at in range(count)) + "\n}"
        began = time.process_time()
        read_json(part, "f")
        times.append(time.process_time() - began)
    assert times[1] < 30 * times[0]
    (document,) = read_json(text, "f")
    assert document.keys[f"k{KEYS - 1}"].line == KEYS + 1  # type: ignore[attr-defined]
    with pytest.raises(FileError, match=r"first in line 2"):
        read_json('{\n  "a": 1,\n  "a": 2}', "f")
