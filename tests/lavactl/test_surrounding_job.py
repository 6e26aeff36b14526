"""The job around a process, as blaunch finds it."""

import json
from pathlib import Path

from lavactl.tasks.surrounding_job import with_tasks


def test_a_job_of_tasks_has_the_hosts_of_its_table(tmp_path: Path) -> None:
    """A host that joined may be reached, one that left may not; the slots of the others stay."""
    table = tmp_path / "tasks.json"
    table.write_text(json.dumps({"job": "ring", "tasks": [{"host": "h1"}, {"host": "h3"}, {"host": "h3"}]}))
    assert with_tasks(["h1", "h1", "h2"], str(table)) == ["h1", "h1", "h3", "h3"]


def test_without_a_table_the_slots_are_those_of_the_dispatch(tmp_path: Path) -> None:
    """No job of tasks, or no such file any more."""
    assert with_tasks(["h1", "h2"], "") == ["h1", "h2"]
    assert with_tasks(["h1"], str(tmp_path / "gone")) == ["h1"]
