"""Writes the tables of docs/reference/slurm.md from the parsers of Slurm's commands.

What stands outside the marks in the page is written by hand.
"""

import re
from importlib import import_module
from pathlib import Path

from lavactl.main import SLURM
from lavactl.slurm.submit.options import PARSERS
from lavactl.slurm.words.accounting_fields import FIELDS as ACCOUNTING
from lavactl.slurm.words.job_fields import FIELDS as JOBS
from lavactl.slurm.words.options import HONOURED, IGNORED, Option, Parser, spelled

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "slurm.md"
MARK = re.compile(r"<!-- options of (\w+) -->\n.*?<!-- end -->", re.DOTALL)
FIELDS = re.compile(r"<!-- fields of (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def parser_of(command: str) -> Parser:
    """Parser of a command."""
    if command in PARSERS:
        return PARSERS[command]
    found: Parser = import_module(f"lavactl.slurm.{command}").PARSER
    return found


def row(option: Option) -> str:
    """One row: the option, its fate, a remark."""
    words = option.words.replace("|", "\\|")
    fate = option.fate if option.fate != IGNORED else "ignored with a word"
    return f"| `{spelled(option).strip()}` | {fate} | {words} |\n"


def table(found: "re.Match[str]") -> str:
    """The options of a command between its marks, those that are honoured first."""
    command = found[1]
    options = sorted(parser_of(command).options, key=lambda one: (one.fate != HONOURED, one.fate != IGNORED, one.name))
    head = "| option | here | |\n| --- | --- | --- |\n"
    return f"<!-- options of {command} -->\n{head}{''.join(map(row, options))}<!-- end -->"


def fields(found: "re.Match[str]") -> str:
    """The names of the fields of a command between its marks."""
    names = (
        sorted(field.title for field in ACCOUNTING.values())
        if found[1] == "sacct"
        else [f"{name} (`%{field.letter}`)" if field.letter else name for name, field in JOBS.items()]
    )
    return f"<!-- fields of {found[1]} -->\n{', '.join(names)}.\n<!-- end -->"


def page() -> str:
    """The page with its tables as they are now."""
    return FIELDS.sub(fields, MARK.sub(table, PAGE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    assert set(SLURM) == {found[1] for found in MARK.finditer(PAGE.read_text(encoding="utf-8"))}
