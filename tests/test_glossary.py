"""The glossary and the names of the scheduler: each word of a class name is defined there, or is plain English."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("lavad/core/scheduling", "lavad/core/queries", "lavad/core/state")
# Words of plain English, and of LSF's own manuals, that need no definition here.
PLAIN = frozenset(
    re.findall(
        r"\w+",
        """
    abnormal account adviser advice amounts and array cache caller candidate cause change changes charge columns
    condition consumer counter counters cpus delayed dependants dependency device end ends entry exit expected facts
    finder first fit found free future gate gpus group held host hosts index interval job jobs key kind left limit
    limited limits link list lists load minimum name names need order outcome paged part pending per placer plain
    place policy queue ranking ranges rates reason reasons record refusal release resizing resource resources row rule
    rules running selector set shadow shared single site size sizes slot slots source span state start starts status
    table task tasks time timeline times totals tree unclaimed unentered unit units usage used user users view waiters
    window
""",
    )
)


def words_of(name: str) -> list[str]:
    """The words of a class name in camel case."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z]+", name)]


def defined() -> set[str]:
    """The words in the first column of the glossary's tables, in singular and plural."""
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    words = {word for row in rows for word in re.findall(r"[a-z]+", row.lower())}
    return words | {f"{word}s" for word in words} | {f"un{word}" for word in words}


def test_every_word_of_a_class_name_is_defined() -> None:
    """A reader of the scheduler finds each term in the glossary."""
    known = defined() | PLAIN
    unknown = {}
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                missing = [word for word in words_of(node.name) if word not in known]
                if missing:
                    unknown[f"{path.relative_to(ROOT)}: {node.name}"] = missing
    assert unknown == {}


def test_a_word_is_defined_once() -> None:
    """No word has two rows."""
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ") and "---" not in line]
    words = [word.strip() for row in rows for word in row.split(",") if word.strip() != "word"]
    assert sorted({word for word in words if words.count(word) > 1}) == []


def test_what_a_word_is_not_called_names_no_class() -> None:
    """A word that the last column rules out is part of no class name of the scheduler."""
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").partition("## The scheduler's words")[2]
    ruled_out = {
        word.strip() for line in page.splitlines() if line.startswith("| ") for word in line.split("|")[3].split(",")
    }
    names = {
        node.name
        for path in (ROOT / "lavad" / "core" / "scheduling").rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    }
    offending = {name for name in names if ruled_out & set(words_of(name)) - {"kind", "rest", "class"}}
    assert offending == set()
