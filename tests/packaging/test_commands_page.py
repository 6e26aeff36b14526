"""The tables of options in the page of commands, which are written from the parsers."""

import runpy
from pathlib import Path

from lavactl.options import FLAG, VALUE, Grammar, Ignored, RefusedLater
from lavactl.parsers import every, title_of

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = runpy.run_path(str(ROOT / "packaging" / "commands_page.py"))


def test_the_page_of_commands_is_what_the_parsers_say() -> None:
    """The tables were written from the parsers as they are now; every command has its own."""
    text = SCRIPT["PAGE"].read_text(encoding="utf-8")
    assert text == SCRIPT["page"](), "run make docs, or PYTHONPATH=. python packaging/commands_page.py"
    assert [name for name in every() if f"\n### Options of {title_of(name)}\n" not in text] == []


def test_a_table_tells_what_becomes_of_each_option() -> None:
    """Options of one status and reason share a row; -h and -V are those of every command."""
    kinds = {"g": "no groups | yet.", "a": FLAG, "n": VALUE, "N": Ignored(FLAG, "no mail."), "app": "no groups | yet."}
    kinds["E"] = RefusedLater(VALUE, "no commands.")
    assert SCRIPT["table"](list(SCRIPT["rows"](Grammar("bx", "", kinds)))) == (
        "| here | option | why |\n"
        "| --- | --- | --- |\n"
        "| honoured | `-a` `-n` `-h` `-V` |  |\n"
        "| ignored, with a word | `-N` | no mail. |\n"
        "| not supported | `-g` `-app` | no groups \\| yet. |\n"
        "| not supported | `-E` | no commands. |\n"
    )
