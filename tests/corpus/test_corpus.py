"""Each case of the corpus, run by the reader of its folder."""

import shlex
import tomllib
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from lavactl.errors import CommandError
from lavactl.job_files.dry_run import describe
from lavactl.job_files.understanding import understand_text
from tests.config.files import loaded, said
from tests.lavactl.conftest import desk
from tests.lavactl.scripted import Desk

__all__ = ["desk"]

HERE = Path(__file__).resolve().parent
KEYS = {
    "submissions": {"command", "input", "encoding", "environment", "files", "job"},
    "job_files": {"file", "plan"},
    "configurations": {"files", "policy"},
}
COMMON = {"source", "refused", "says"}


def cases(folder: str) -> list[Any]:
    """The cases of a folder, each named by its file."""
    return [pytest.param(path, id=path.stem) for path in sorted((HERE / folder).glob("*.toml"))]


def read(path: Path) -> dict[str, Any]:
    """A case, whose keys are all known."""
    case = tomllib.loads(path.read_text(encoding="utf-8"))
    assert set(case) <= COMMON | KEYS[path.parent.name], "a key that no reader knows"
    assert case["source"], "a case says where its right value is written"
    return case


def value_at(whole: Any, path: str) -> Any:
    """Part of a value by a dotted path: fields, keys, positions, and names of items that have names."""
    for word in path.split("."):
        if isinstance(whole, Mapping):
            whole = whole[word]
        elif hasattr(whole, word):
            whole = getattr(whole, word)
        elif word.isdecimal():
            whole = whole[int(word)]
        else:
            whole = next(item for item in whole if item.name == word)
    return plain(whole)


def plain(value: Any) -> Any:
    """A value in the terms of TOML."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, frozenset | set):
        return sorted(map(plain, value))
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        return [plain(one) for one in value]
    return value


def lines_of(text: str) -> list[str]:
    """The lines of what was told."""
    return text.splitlines()


@pytest.mark.parametrize("path", cases("submissions"))
def test_a_submission_is_what_its_manual_says(path: Path, desk: Desk, tmp_path: Path) -> None:
    """The job that is sent to the master has these fields, or the command says why there is none."""
    case = read(path)
    desk.environ.update(case.get("environment", {}))
    for name, text in case.get("files", {}).items():
        Path(name.replace("{tmp}", str(tmp_path))).write_bytes(text.encode(case.get("encoding", "utf-8")))
    name, *argv = shlex.split(case["command"].replace("{tmp}", str(tmp_path)))
    result = desk.type(name, *argv, stdin=case.get("input", "").encode(case.get("encoding", "utf-8")))
    if "refused" in case:
        assert (lines_of(result.err), result.code != 0) == (lines_of(case["refused"]), True)
        assert desk.client.asked == []
        return
    assert (result.code, lines_of(result.err)) == (0, case.get("says", []))
    variables = dict(plain(one).partition("=")[::2] for one in desk.spec.environment)
    for field, expected in case["job"].items():
        if field.startswith("environment."):
            assert variables.get(field.partition(".")[2], "") == expected, field
        else:
            assert value_at(desk.spec, field) == expected, field


@pytest.mark.parametrize("path", cases("job_files"))
def test_a_job_file_is_what_its_origin_makes_of_it(path: Path) -> None:
    """The dry run has these lines and these remarks, or the file is refused with this sentence."""
    case = read(path)
    if "refused" in case:
        with pytest.raises(CommandError) as error:
            understand_text(case["file"], "f", "ann")
        assert lines_of(str(error.value)) == lines_of(case["refused"])
        return
    text = describe(understand_text(case["file"], "f", "ann")).splitlines()
    remarks = [line for line in text if line.startswith("f:")]
    plan = iter([line.strip() for line in text if line not in remarks])
    assert [line for line in case["plan"] if line not in plan] == [], "\n".join(text)
    assert remarks == case.get("says", [])


@pytest.mark.parametrize("path", cases("configurations"))
def test_a_configuration_means_what_lsf_means(path: Path, tmp_path: Path) -> None:
    """The policy has these values, and what has no effect is told."""
    case = read(path)
    found = loaded(tmp_path, case["files"])
    if "refused" in case:
        errors = [str(one)[len(str(tmp_path)) + 1 :] for one in found.errors]
        assert errors == lines_of(case["refused"])
        return
    assert said(found) == case.get("says", [])
    for field, expected in case["policy"].items():
        assert value_at(found.policy, field) == expected, field


def test_every_file_is_a_case() -> None:
    """A case in a folder without a reader, or with another ending, would never be run."""
    files = [path for path in HERE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    others = {"README.md", "__init__.py", "test_corpus.py"}
    strays = [path for path in files if not (path.suffix == ".toml" and path.parent.name in KEYS)]
    assert {path.name for path in strays} == others
