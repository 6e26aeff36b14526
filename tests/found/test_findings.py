"""The table of findings from outside: each has the tests that hold it, a benchmark, or the reason why there is none.

The reports are in a folder beside the repository; without it their rows are not counted, and the tests say so.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.found.findings import TABLE, findings_in, rows_of

ROOT = Path(__file__).resolve().parents[2]
REPORTS = ROOT.parent / "shared" / "reference"
FOLDERS = {"found": TABLE, "outsiders": TABLE / "outsiders"}  # of the reports, with the tables about them
BENCHMARKS = ROOT / "benchmarks" / "results"
NAMES = sorted(path.relative_to(TABLE).with_suffix("").as_posix() for path in TABLE.rglob("*.toml"))


@cache
def _functions_of(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    for group in tree.body:
        if isinstance(group, ast.ClassDef):
            names |= {f"{group.name}::{node.name}" for node in group.body if isinstance(node, ast.FunctionDef)}
    return frozenset(names)


def _exists(test: str) -> bool:
    """True if a test is there: a function of a file, or a transcript."""
    path, _, function = test.partition("::")
    if not (ROOT / path).is_file():
        return False
    return function in _functions_of(path) if function else path.endswith(".txt")


@pytest.mark.parametrize("report", NAMES)
def test_each_row_names_what_holds_it(report: str) -> None:
    """Tests that exist, a figure that the newest benchmarks have, or a reason; and one of them alone."""
    figures = "".join(path.read_text(encoding="utf-8") for path in BENCHMARKS.glob("*.json"))
    for key, row in rows_of(report).items():
        assert [bool(row.tests), bool(row.reason), bool(row.benchmark)].count(True) == 1, key
        assert [test for test in row.tests if not _exists(test)] == [], key
        assert [name for name in row.benchmark.split(", ") if name and f'"{name}"' not in figures] == [], key


@pytest.mark.skipif(not REPORTS.is_dir(), reason="needs the collected facts beside the repository (../shared)")
def test_each_finding_has_its_row() -> None:
    """A finding that is added to a report, or a new report, fails until the table says what holds it."""
    for folder, table in FOLDERS.items():
        for path in sorted((REPORTS / folder).glob("*.md")):
            name = (table / path.stem).relative_to(TABLE).as_posix()
            assert name in NAMES
            assert findings_in(path.read_text(encoding="utf-8")) == list(rows_of(name)), name
