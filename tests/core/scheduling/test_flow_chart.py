"""The flow chart of a scheduling pass beside ``cycle.py``: its names exist, and its stages are those of the code."""

import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType

from lavad.core.scheduling import cycle
from lavad.core.scheduling.capacity.constraint import Refusal

SCHEDULER = "lavad.core.scheduling"
CHART = Path(cycle.__file__).with_suffix(".md")
NAME = re.compile(r"(?<![\w./])[a-z_]+(?:\.\w+)+(?![\w/]|\.\w)")
FILES = (".py", ".md")


def names() -> list[str]:
    """Names of the chart in its order, without those of files."""
    return [name for name in NAME.findall(CHART.read_text(encoding="utf-8")) if not name.endswith(FILES)]


def module_of(name: str) -> tuple[ModuleType, list[str]]:
    """The module of a name: its longest part that is one. Then the rest of the name."""
    words = name.split(".") if name.startswith("lavad.") else [*SCHEDULER.split("."), *name.split(".")]
    here = words[: len(SCHEDULER.split("."))] if not name.startswith("lavad.") else words[:1]
    while len(here) < len(words) and importlib.util.find_spec(".".join([*here, words[len(here)]])) is not None:
        here = words[: len(here) + 1]
        if not hasattr(importlib.import_module(".".join(here)), "__path__"):
            break
    return importlib.import_module(".".join(here)), words[len(here) :]


def exists(name: str) -> bool:
    """True if the name is that of something in its module."""
    found: object
    found, rest = module_of(name)
    for word in rest:
        if not hasattr(found, word):
            return False
        found = getattr(found, word)
    return bool(rest)


def test_every_name_exists() -> None:
    """Each name in a box is found in its module."""
    assert len(names()) > 30
    assert [name for name in names() if not exists(name)] == []


def test_a_name_that_is_gone_is_found() -> None:
    """The check is not blind: neither to a module that is gone, nor to a function."""
    assert not exists("cycle.no_such_function")
    assert not exists("no_such_module.plan_slice")
    assert not exists("worklist.Worklist.no_such_method")


def test_every_stage_is_shown_in_order() -> None:
    """The stages of the chart are those of ``cycle.STAGES``, as they follow one another."""
    stages = [f"cycle.{stage.__name__}" for stage in cycle.STAGES]
    assert [name for name in names() if name in stages] == stages


def test_every_refusal_is_shown() -> None:
    """The table says for each kind of refusal what the bucket waits for."""
    rows = re.findall(r"^\| `(\w+)` \|", CHART.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(rows) == {one.name for one in Refusal}
