"""Each transcript goes as it is written; ``python -m tests.transcripts.runner --rewrite`` writes how it goes now."""

from pathlib import Path

import pytest

from tests.transcripts.runner import HERE, played


@pytest.mark.parametrize("path", sorted(HERE.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    """What is written below each command is what comes of it."""
    text = path.read_text(encoding="utf-8")
    assert played(text) == text
