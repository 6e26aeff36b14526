"""A run of the tests that is interrupted: it ends in order, and what its tests held is taken down."""

import subprocess
import sys
from pathlib import Path

STORY = """
import os, signal
from collections.abc import Iterator
from pathlib import Path
import pytest

@pytest.fixture
def held(tmp_path: Path) -> Iterator[None]:
    os.kill(os.getpid(), signal.SIGINT)
    yield

@pytest.fixture(scope="session", autouse=True)
def cluster() -> Iterator[None]:
    yield
    print("taken down")

def test_one(cluster: None, held: None) -> None: ...
"""


def test_an_interrupt_before_a_test_begins_takes_all_down(tmp_path: Path) -> None:
    """Also where the test has a directory of its own: no traceback, and the fixtures are taken down."""
    (tmp_path / "test_story.py").write_text(STORY)
    words = [sys.executable, "-m", "pytest", "-s", "-p", "tests.conftest", "-p", "no:cacheprovider", "-p", "no:xdist"]
    words += [f"--rootdir={tmp_path}", str(tmp_path)]
    root = Path(__file__).resolve().parents[1]
    ended = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "KeyboardInterrupt" in ended.stdout
    assert "taken down" in ended.stdout
    assert "KeyError" not in ended.stdout + ended.stderr
