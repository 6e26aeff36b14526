"""Each transcript matches its real results; ``python -m tests.transcripts.runner --rewrite`` writes these."""

from pathlib import Path

import pytest

from tests.transcripts.runner import HERE, played


@pytest.mark.parametrize("path", sorted(HERE.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    """The lines below each command are its results."""
    text = path.read_text(encoding="utf-8")
    assert played(text) == text
