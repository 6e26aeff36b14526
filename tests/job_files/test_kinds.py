"""Kinds of other systems: every field of a file is honoured, told or refused, and the pages say which.

Each field of each file is taken away in turn. The job or the remarks change, unless the table of its kind says that its
value is the default, that it does nothing there either, or that the whole mapping around it is told.
"""

import re
import runpy
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from lavactl.errors import CommandError
from lavactl.job_files import dry_run
from lavactl.job_files.importers import kinds, tables
from lavactl.job_files.importers.kubernetes import metadata
from lavactl.job_files.model import JobFile
from lavactl.job_files.text.documents import read_documents
from lavactl.job_files.text.fields import Fields, Reading
from lavactl.job_files.text.nodes import Mapping, Node, Scalar, Sequence
from lavactl.job_files.understanding import understand_text

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = Path(__file__).parent / "samples"
SHARED = ROOT.parent / "shared" / "specs"
PAGES = runpy.run_path(str(ROOT / "packaging" / "kinds_pages.py"))
LINE = re.compile(r"^f:\d+:(\d+:)?|, line \d+$", re.MULTILINE)
Path_ = tuple[str | int, ...]


def test_the_pages_are_what_the_tables_say() -> None:
    """Each page of docs/reference/kinds was written from the tables as they are now, and there is no other."""
    for file, text in PAGES["pages"]().items():
        assert file.read_text(encoding="utf-8") == text, f"run make docs ({file.name})"
    found = {file.stem for file in PAGES["FOLDER"].iterdir()}
    assert found == {*kinds.PAGES, "index"}


def test_the_pages_are_in_the_navigation() -> None:
    """mkdocs.yml has each of them."""
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [name for name in kinds.PAGES if f"- reference/kinds/{name}.md\n" not in text] == []


def said(text: str) -> str:
    """All that a file comes to: its jobs as they are sent, the dry run and the remarks; no numbers of lines."""
    try:
        found = understand_text(text, "f", "ann")
    except CommandError as error:
        return LINE.sub("", str(error))
    return LINE.sub("", "\n".join([dry_run.describe(found), *map(sent, found.jobs)]))


def sent(job: JobFile) -> str:
    """All of a job that is sent, and what it lacks."""
    rules = job.rules.SerializeToString() if job.rules else b""
    roles = [role.SerializeToString() for role in job.roles]
    lacks = [(one.field, one.text) for one in job.lacks]
    return repr((job.options, job.environment, job.after, rules, roles, job.run_limit_s, lacks))


def paths(value: object, path: Path_ = ()) -> list[Path_]:
    """Paths of all fields of a document."""
    found: list[Path_] = []
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found += [(*path, key)] * isinstance(value, dict) + paths(one, (*path, key))
    return found


def without(value: Any, path: Path_) -> Any:
    """Document without a field."""
    if isinstance(value, list):
        return [without(one, path[1:]) if at == path[0] else one for at, one in enumerate(value)]
    if len(path) == 1:
        return {key: one for key, one in value.items() if key != path[0]}
    return {key: without(one, path[1:]) if key == path[0] else one for key, one in value.items()}


def spelled(path: Path_) -> str:
    """Path as remarks have it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")


class Opened(NamedTuple):
    """Mappings of a document that its importer opened, by their paths, and the paths that a remark says are ignored."""

    mappings: dict[str, Fields]
    ignored: set[str]


def opened(text: str) -> list[Opened]:
    """Of each document what its importer opened; nothing for a kind without tables."""
    documents = read_documents(text, "f")
    shared = kinds.Shared("ann")
    for document in documents:
        kinds.prepare(document, shared)
    found = []
    for document in documents:
        reading = Reading("f", shared.beside)
        fields = reading.open(document)
        importer = kinds.importer_of(fields)
        if importer is not None:
            importer(fields, shared)
        has_tables = fields.rows is not None and {*fields.rows} != {*metadata.Document.rows()}
        ignored = {note.field for note in reading.close() if note.text.startswith("ignored") or "left out" in note.text}
        found.append(Opened({one.path: one for one in reading.opened()} if has_tables else {}, ignored))
    return found


def may_be_silent(known: Opened, path: Path_) -> bool:
    """True if a remark names a mapping around a field, or a table says that taking it away changes nothing."""
    if any(spelled(path[:end]) in known.ignored for end in range(len(path))):
        return True
    around = [(known.mappings.get(spelled(path[:end])), path[end]) for end in range(len(path))]
    if any(row_of(fields, key).fate == tables.MOOT for fields, key in around if fields is not None):
        return True
    fields, key = around[-1]
    if fields is None:
        return False
    inner = fields.node.get(str(key))
    if isinstance(inner, Mapping) and inner.entries:
        return all(may_be_silent(known, (*path, one)) for one, _ in inner)
    return not fields.has(str(key)) or str(key) in fields.same or equals_default(row_of(fields, key), fields, str(key))


def row_of(fields: Fields, key: str | int) -> tables.Row[Any]:
    """Declaration of a field; one that has none must not be silent."""
    rows: dict[str, tables.Row[Any]] = dict(fields.rows or {})
    return rows.get(str(key)) or rows.get(tables.OTHERS) or tables.Anything("", object(), "")


def equals_default(row: tables.Row[Any], fields: Fields, key: str) -> bool:
    """True if a field has the value that it has where the file says nothing."""
    node = fields.node.get(key)
    if not isinstance(node, Scalar):
        return not getattr(node, "entries", None) and not getattr(node, "items", None)
    text = node.text
    default = str(row.default).lower() if isinstance(row.default, bool) else str(row.default)
    return text == default or (row.default in (None, "") and text == "")


def silent(text: str) -> list[str]:
    """Fields of a file that can be taken away without a word."""
    documents = [plain(one) for one in read_documents(text, "f")]
    whole = said(dump(documents))
    known = opened(dump(documents))
    found = []
    for at, document in enumerate(documents):
        for path in paths(document) if known[at].mappings else ():
            if may_be_silent(known[at], path):
                continue
            left = [without(document, path) if one is document else one for one in documents]
            if said(dump(left)) == whole:
                found.append(f"{at}: {spelled(path)}")
    return found


def plain(node: Node) -> Any:
    """Value of a node, as YAML would write it."""
    if isinstance(node, Mapping):
        return {key: plain(one) for key, one in node}
    if isinstance(node, Sequence):
        return [plain(one) for one in node.items]
    if isinstance(node, Scalar):
        return node.text if node.is_quoted else yaml.safe_load(node.text)
    return None


def dump(documents: list[Any]) -> str:
    """Documents as YAML."""
    return "---\n".join(yaml.safe_dump(one, sort_keys=False) for one in documents)


@cache
def files() -> list[Path]:
    """Samples, and the job files of other systems' repositories where they stand beside this one."""
    found = [*SAMPLES.glob("*.yaml"), *SAMPLES.glob("*.json"), *SHARED.glob("*/*.yaml"), *SHARED.glob("*/*.json")]
    return sorted(path for path in found if not path.name.startswith(("own-", "hived-config")))


@pytest.mark.parametrize("path", files(), ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_field_is_dropped_in_silence(path: Path) -> None:
    """Each field that is taken away changes the job, the dry run or a remark."""
    assert silent(path.read_text(encoding="utf-8-sig")) == []


def test_a_field_that_is_read_and_not_used_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The walk above sees an importer that asks for a field and forgets it."""
    text = (SAMPLES / "batch-indexed.yaml").read_text(encoding="utf-8")
    monkeypatch.setattr(metadata, "read_times", lambda _job, fields: metadata.Timed.ttl_s.read(fields))
    assert any(one.endswith("spec.ttlSecondsAfterFinished") for one in silent(text))
