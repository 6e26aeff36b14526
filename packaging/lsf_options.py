"""Lists commands and options of LSF that the collected facts name and lava does not know.

Usage: lsf_options.py [FILE]; FILE is reference/lsf.md of the shared facts. Exit code 1 if one is missing.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from lavactl.absent import ABSENT
from lavactl.main import COMMANDS
from lavactl.parsers import parsers

FACTS = Path(__file__).resolve().parents[2] / "shared" / "reference" / "lsf.md"
OPTION = re.compile(r"(?<![\w<>=\])*-])-([A-Za-z]\w*)")
CODE = re.compile(r"`([^`]+)`")
BSUB, BJOBS, CONTROL, SHOWN, OTHERS = "### 1.2", "### 1.3", "### 1.4", ("### 1.5", "### 1.6", "### 1.7"), "### 1.9"
# Tokens of the facts that look like options of the command and are none.
NO_OPTIONS = {"bsub": {"Wep"}, "bresources": {"request"}}


def named(text: str) -> dict[str, set[str]]:
    """Options that the facts name, by command."""
    found: dict[str, set[str]] = {}
    for command, option in pairs(text):
        found.setdefault(command, set()).add(option)
    return {command: options - NO_OPTIONS.get(command, set()) for command, options in found.items()}


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """(command, option), as often as the facts say it."""
    section, is_example = "", False
    for line in text.splitlines():
        if line.startswith("#"):
            section = line[:7]
        if line.startswith("```"):
            is_example = not is_example
        elif is_example:
            continue
        elif section == BSUB and line.startswith("| `-"):
            yield from (("bsub", option) for option in OPTION.findall(line.replace("bmod `-We+ t` / `-Wep", "")))
        elif section == BJOBS and (line.startswith(("Options:", "-app", "O:"))):
            yield from (("bjobs", option) for option in OPTION.findall(line.replace("-p0..-p3", "-p0 -p1 -p2 -p3")))
        elif section == CONTROL and line.startswith("| b"):
            names, options = line.split("|")[1:3]
            yield from ((name, option) for name in re.findall(r"b\w+", names) for option in OPTION.findall(options))
        elif section in SHOWN:
            yield from by_sentence(line)
        elif section == OTHERS and line.startswith("| b"):
            names, options = line.split("|", 2)[1:]
            yield from ((name, option) for name in re.findall(r"b\w+", names) for option in OPTION.findall(options))


def by_sentence(line: str) -> Iterator[tuple[str, str]]:
    """Options in a line where each sentence is about the command that begins it."""
    for sentence in re.split(r"(?:^\|? ?|[.;] )(?=(?:b|ls)[a-z]+[ :/])", line):
        command = re.match(r"(?:b|ls)[a-z]+", sentence)
        for code in CODE.findall(sentence):
            yield from ((command[0] if command else "", option) for option in OPTION.findall(code))


def inventory(text: str) -> set[str]:
    """Names of commands in the table of all commands."""
    part = text.partition("### 1.1")[2].partition("### 1.2")[0]
    cells = [line.split("|")[1] for line in part.splitlines() if line.startswith("| ")]
    return {name for cell in cells for name in re.findall(r"\bx?(?:b|ls)[a-z]+", cell)}


def missing(text: str) -> list[str]:
    """Each command that lava neither has nor lists as absent, and `command -option` for each unknown option."""
    lines = sorted(inventory(text) - {*COMMANDS, *ABSENT})
    for command, options in sorted(named(text).items()):
        known = {name for one in parsers(command) for name in one.kinds} if command in COMMANDS else set()
        if command in COMMANDS:
            lines += [f"{command} -{option}" for option in sorted(options - known - {"h", "V"})]
    return lines


def main(argv: list[str]) -> int:
    """Print what is missing; returns the exit code."""
    lines = missing(Path(argv[0] if argv else FACTS).read_text(encoding="utf-8"))
    print("\n".join(lines) or "Every command and option is known.")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
