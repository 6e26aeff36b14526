"""Writes the tables of options in docs/reference/commands.md from the parsers of all commands.

What stands above the first table in the page is written by hand.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from lavactl.absent import ABSENT
from lavactl.options import Grammar, Ignored, Reasoned
from lavactl.parsers import every, parsers, refused, title_of

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.md"
MARK = re.compile(r"(?<=<!-- options of all commands -->\n).*?(?=<!-- end -->)", re.DOTALL)
HEAD = "| here | option | why |\n| --- | --- | --- |\n"
# The options that each command has, whatever its parser.
STANDARD = ("h", "V")


def rows(parser: Grammar) -> Iterator[tuple[str, str, str]]:
    """(status, option, reason) of each option of a parser; those that are honoured first."""
    for name, kind in parser.kinds.items():
        if not isinstance(kind, str | Reasoned):
            yield "honoured", f"-{name}", ""
    for name in STANDARD:
        if name not in parser.kinds:
            yield "honoured", f"-{name}", ""
    for name, kind in parser.kinds.items():
        if isinstance(kind, Ignored):
            yield "ignored, with a word", f"-{name}", kind.why
    for name, kind in parser.kinds.items():
        if isinstance(kind, str):
            yield "not supported", f"-{name}", kind
        elif isinstance(kind, Reasoned) and not isinstance(kind, Ignored):
            yield "not supported", f"-{name}", kind.why


def table(found: list[tuple[str, str, str]]) -> str:
    """Table with a row for all options of the same status and reason."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for status, option, why in found:
        grouped.setdefault((status, why), []).append(f"`{option}`")
    lines = [f"| {status} | {' '.join(names)} | {escaped(why)} |\n" for (status, why), names in grouped.items()]
    return HEAD + "".join(lines)


def escaped(text: str) -> str:
    """Text that a cell of a table can hold."""
    return text.replace("|", "\\|")


def commands(reasons: dict[str, str]) -> str:
    """Table with a row for all commands of the same reason."""
    grouped: dict[str, list[str]] = {}
    for name, why in reasons.items():
        grouped.setdefault(why, []).append(f"`{name}`")
    rows = [f"| {' '.join(names)} | {escaped(why)} |\n" for why, names in grouped.items()]
    return "| command | why |\n| --- | --- |\n" + "".join(rows)


def section(command: str) -> str:
    """Heading and tables of one command."""
    text = f"### Options of {title_of(command)}\n\n"
    known = parsers(command)
    if not known:
        return text + f"See `{title_of(command)} -h`.\n\n"
    for parser in known:
        if parser.command != title_of(command) and len(known) > 1:
            text += f"`{parser.command}`:\n\n"
        text += table(list(rows(parser))) + "\n"
    if refused(command):
        text += "Subcommands of LSF:\n\n"
        text += table([("not supported", name, why) for name, why in refused(command).items()]).replace(
            "option", "name", 1
        )
        text += "\n"
    return text


def page() -> str:
    """The page with its tables as they are now."""
    tables = "\n" + "".join(map(section, every()))
    tables += "### Commands of LSF that lava does not have\n\n"
    tables += "`lavactl NAME` says so, too.\n\n"
    tables += commands(ABSENT) + "\n"
    return MARK.sub(lambda _: tables, PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
