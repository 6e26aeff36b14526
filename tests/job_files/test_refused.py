"""Jobs that their own system would refuse, and lava with them: one sentence that names field and cause."""

import re
from pathlib import Path

import pytest

from lavactl.errors import CommandError
from lavactl.job_files.understanding import understand_text

CASES = Path(__file__).parent / "refused.txt"


def cases() -> list[tuple[str, str, str]]:
    """(name, text of the file, what is said) of each case: a line of dashes with its name, the file, the sentences."""
    found = []
    for part in re.split(r"^-{5,} ", CASES.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("\n")
        text, _, said = rest.partition("=> ")
        found.append((name.strip(), text, said.strip().replace("\n=> ", "\n")))
    return found


@pytest.mark.parametrize(("name", "text", "said"), cases(), ids=[name for name, _, _ in cases()])
def test_refused(name: str, text: str, said: str) -> None:
    """The sentence is as it stands in the list."""
    with pytest.raises(CommandError) as error:
        understand_text(text, "f", "ann")
    assert str(error.value) == said, name
