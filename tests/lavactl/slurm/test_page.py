"""The page of Slurm's commands is what the parsers say."""

import runpy
from pathlib import Path

from lavactl.main import SLURM

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_is_up_to_date() -> None:
    """Every option of every command is on it with its fate; make docs writes it."""
    script = runpy.run_path(str(ROOT / "packaging" / "slurm_page.py"))
    text = script["PAGE"].read_text(encoding="utf-8")
    assert script["page"]() == text
    assert all(f"<!-- options of {name} -->" in text for name in SLURM)
    parsers = [script["parser_of"](name) for name in SLURM]
    assert all(f"--{option.name}" in text for parser in parsers for option in parser.options)
