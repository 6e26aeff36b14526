"""Error sentence on a daemon that ended at once: its own message, as far as its log shows it."""

from pathlib import Path

import pytest

from lavactl.personal.readiness import last_words

ROUTINE = "2026-01-01 00:00:00,000 level=INFO part=lavad going down\n"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", "; see {}."),
        (ROUTINE, f": {ROUTINE.strip()} (see {{}})."),
        (f"Traceback\n  File x\nOSError: full\n{ROUTINE}", ": OSError: full (see {})."),
        (f"lavad: an old one\n{ROUTINE}lavad: a:1: x\na:2: y\n", ": a:1: x\na:2: y (see {})."),
    ],
)
def test_last_words(tmp_path: Path, log: str, words: str) -> None:
    """A daemon's own sentence is shown whole, a traceback by its last line, and routine lines only without another."""
    path = tmp_path / "lavad.log"
    path.write_text(log)
    assert last_words(path) == words.format(path)
