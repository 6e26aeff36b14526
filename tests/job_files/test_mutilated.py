"""Files with one value of another kind: understood or refused in sentences, and never more."""

import re
from functools import cache
from pathlib import Path

import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from lavactl.errors import CommandError
from lavactl.io import Io
from lavactl.job_files import dry_run, submitting
from lavactl.job_files.own.writer import as_values, write_yaml
from lavactl.job_files.understanding import understand_text
from lavactl.options import Options

SAMPLES = Path(__file__).parent / "samples"
NAMES = sorted(path.name for path in SAMPLES.glob("*.yaml"))
ODD = [
    None,
    "",
    "x",
    "a b",
    "-1",
    0,
    3,
    1.5,
    99999999999,
    True,
    [],
    ["x"],
    [[]],
    [{}],
    {},
    {"a": "b"},
    {"name": "n"},
    "$(A)",
]
WHERE = re.compile(r"^(f:\d+:\d+: .+\n?)+$")


@cache
def documents(name: str) -> list[object]:
    """Documents of a sample as plain values."""
    return list(yaml.safe_load_all((SAMPLES / name).read_text(encoding="utf-8")))


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """Paths of all values."""
    found = [path]
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in pairs:
        found += places(one, (*path, key))
    return found


def changed(value: object, path: tuple[object, ...], new: object) -> object:
    """Value with another one at a path."""
    if not path:
        return new
    if isinstance(value, dict):
        return {key: changed(one, path[1:], new) if key == path[0] else one for key, one in value.items()}
    assert isinstance(value, list)
    return [changed(one, path[1:], new) if at == path[0] else one for at, one in enumerate(value)]


@given(st.sampled_from(NAMES), st.integers(0, 10_000), st.sampled_from(ODD))
@example("own-roles.yaml", 0, None)
def test_any_value_of_another_kind(name: str, at: int, new: object) -> None:
    """Each path of each sample, with each odd value; the whole way to what would be sent."""
    whole = documents(name)
    path = places(whole)[at % len(places(whole))]
    made = changed(whole, path, new)
    text = "---\n".join(yaml.safe_dump(one, sort_keys=False) for one in (made if isinstance(made, list) else [made]))
    line = Options()
    line.words = ["work"]
    said = ""
    try:
        found = understand_text(text, "f", "ann")
        write_yaml([as_values(job) for job in found.jobs])
        dry_run.describe(found)
        for job in found.jobs:
            submitting.submission_of(job, line, Io(raw_environ=[], cwd="/h", umask=0o22)).spec.SerializeToString()
    except CommandError as error:
        said = str(error)
    assert not said or WHERE.match(said), said
