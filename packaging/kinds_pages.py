"""Writes docs/reference/kinds: a page for each kind of job file of another system, from the tables of its importer.

The words that stand before the tables of a page are the docstrings of its tables.
"""

from importlib import import_module
from pathlib import Path

from lavactl.job_files.importers.kinds import PAGES
from lavactl.job_files.importers.tables import HONOURED, MOOT, OTHERS, REFUSED, TOLD, Named, Part, Parts, Row, Table

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference" / "kinds"
HEAD = "| field | where it is absent | there | here |\n| --- | --- | --- | --- |\n"
LEGEND = (
    "Written by `make docs` from the importer itself.\n"
    "*there*: what its own controller does with the field.\n"
    "*here*: what lava does with it; where nothing else is said, the same.\n"
    "*told*: the field is not honoured, and a remark at the submission and in a dry run names it, with this reason.\n"
    "*nothing*: it does nothing to a job there either.\n"
    "A value that equals the default is taken as absent; a field that stands in no table is told.\n"
)


def default(row: "Row[object]") -> str:
    """The default of a field."""
    if row.absent:
        return row.absent
    if row.name == OTHERS or row.default is None or row.default == "":
        return "none"
    shown = str(row.default).lower() if isinstance(row.default, bool) else str(row.default)
    return f"`{shown}`"


def here(row: "Row[object]") -> str:
    """Words for what lava does with a field."""
    fates = {HONOURED: row.words, TOLD: f"told: {row.words}", REFUSED: f"refused: {row.words}", MOOT: "nothing"}
    return fates[row.fate]


def inner(row: "Row[object]") -> "type[Table] | None":
    """Table of the mappings below a field."""
    return row.table if isinstance(row, Part | Parts | Named) else None


def below(table: "type[Table]", path: str, row: "Row[object]") -> str:
    """Path of the mapping below a field."""
    return f"{path}.{row.name}".lstrip(".") + "[]" * isinstance(row, Parts) + ".NAME" * isinstance(row, Named)


def field(row: "Row[object]", page: str) -> str:
    """Name of a field, with a link where its own table stands on another page."""
    name = "all others" if row.name == OTHERS else f"`{row.name}`"
    found = inner(row)
    return f"[{name}]({found.page}.md)" if found is not None and found.page not in ("", page) else name


def line(row: "Row[object]", page: str) -> str:
    """One row of a table."""
    cells = [field(row, page), default(row), row.origin, here(row)]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def section(table: "type[Table]", path: str, page: str, seen: "set[type[Table]]") -> str:
    """Table of a mapping and of those below it; each table once."""
    seen.add(table)
    rows = sorted(table.rows().values(), key=lambda row: row.name == OTHERS)
    title = f"## {path or 'The document'}\n\n{(table.__doc__ or '').strip()}\n\n"
    text = title + HEAD + "".join(line(row, page) for row in rows)
    for row in rows:
        found = inner(row)
        if found is not None and found.page in ("", page) and found not in seen:
            text += "\n" + section(found, below(table, path, row), page, seen)
    return text


def page(name: str) -> str:
    """Text of a page."""
    module, tables = PAGES[name]
    found = [getattr(import_module(f"lavactl.job_files.importers.{module}"), one) for one in tables]
    title = (found[0].__doc__ or "").strip().split(":")[0].rstrip(".")
    own = name if found[0].page == name else ""
    seen: set[type[Table]] = set()
    return f"# {title}\n\n{LEGEND}\n" + "\n".join(section(one, "", own, seen) for one in found)


def pages() -> dict[Path, str]:
    """All pages by their files."""
    return {FOLDER / f"{name}.md": page(name) for name in PAGES}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, text in pages().items():
        file.write_text(text, encoding="utf-8")
