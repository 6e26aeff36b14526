"""The page that links each policy with its test names existing tests, and leaves out no policy."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "policies.md"
ACCEPTANCE = ROOT / "tests" / "acceptance"
# Policies that the scheduler was required to have, in the words of the request.
POLICIES = (
    "queue priority", "fairshare", "hierarchical shares", "kept in the database", "cross-queue fairshare", "FCFS",
    "round robin", "user priority", "`btop`, `bbot`", "slots of a queue", "slots of a user",
    "slots of users and groups",
    "slots of a host", "project limits", "`Limit` sections", "time windows", "pending-job limits", "run windows",
    "dispatch windows", "`loadSched`/`loadStop`", "exclusive jobs", "job dependencies", "array to array",
    "never satisfiable", "begin times", "end times", "requeue exit values", "rerunnable jobs", "slot reservation",
    "memory reservation", "backfill: none", "EASY", "conservative by depth", "preemption: suspend",
    "preemption: requeue", "preemption: shrink", "whole gangs only", "fewest victims", "capacity pools",
    "order by slowdown",
    "reconfiguration",
)  # fmt: skip


def rows() -> list[list[str]]:
    """The cells of the table: policy, configuration, tests with real processes, other tests."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@cache
def tree_of(file: str) -> ast.Module:
    """The syntax of an acceptance test's file."""
    return ast.parse((ACCEPTANCE / file).read_text(encoding="utf-8"))


def named_tests(cell: str) -> list[tuple[str, str]]:
    """(file, test or [case]) of each test that a cell names."""
    return [
        (file, name)
        for file, names in re.findall(r"`(test_\w+\.py)` ([^`;]+)", cell)
        for name in re.findall(r"\w+(?=\[|,|;|$)|\[[^\]]+\]", names.strip())
    ]


def missing(file: str, name: str) -> bool:
    """True if that file has no such test, or case."""
    tree = tree_of(file)
    if name.startswith("["):
        return all(getattr(node, "value", None) != name[1:-1] for node in ast.walk(tree))
    return all(getattr(node, "name", "") != f"test_{name}" for node in ast.walk(tree))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_every_policy_has_an_acceptance_test(row: list[str]) -> None:
    """Each row names at least one test with real processes, and each of them exists."""
    named = named_tests(row[2])
    assert named, f"{row[0]} has no test with real processes"
    assert [one for one in named if missing(*one)] == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_every_other_test_of_a_policy_exists(row: list[str]) -> None:
    """Transcripts and core tests, by the names of their files."""
    named = re.findall(r"`([\w.]+\.(?:txt|py))`", row[3])
    assert [name for name in named if not any((ROOT / "tests").rglob(name))] == []


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_that_was_asked_for_has_a_row(policy: str) -> None:
    """No required policy is left out."""
    assert any(policy in row[0] for row in rows())
