"""The README's demo, run like `make demo`."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.acceptance
@pytest.mark.mpi
def test_the_demo_checks_itself() -> None:
    """Three hosts, three jobs, every result right, nothing left behind."""
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo"], cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "everything as it should be" in done.stdout
