"""Writes the tables of docs/reference/job-file.md and its schema from the keys of lava's own form.

What stands outside the marks in the page is written by hand.
"""

import json
import re
from pathlib import Path

from lavactl.job_files.own.keys import TABLES, Key
from lavactl.job_files.own.schema import schema

DOCS = Path(__file__).resolve().parent.parent / "docs" / "reference"
PAGE, SCHEMA = DOCS / "job-file.md", DOCS / "job-file.schema.json"
MARK = re.compile(r"<!-- keys of (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def row(key: Key) -> str:
    """One row of a table."""
    value = ", ".join(f"`{word}`" for word in key.words) if key.words else key.kind
    option = f"`-{key.option}`" if key.option else ""
    return f"| `{key.name}` | {value} | {option} | {key.meaning} |\n"


def table(found: "re.Match[str]") -> str:
    """A table between its marks."""
    head = "| key | value | bsub | meaning |\n| --- | --- | --- | --- |\n"
    return f"<!-- keys of {found[1]} -->\n{head}{''.join(map(row, TABLES[found[1]]))}<!-- end -->"


def page() -> str:
    """The page with its tables as they are now."""
    return MARK.sub(table, PAGE.read_text(encoding="utf-8"))


def schema_text() -> str:
    """The schema as it is now."""
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    SCHEMA.write_text(schema_text(), encoding="utf-8")
