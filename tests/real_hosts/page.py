"""A documentation page as a script: its commands in order, with the host and user that the text names for them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_WHERE = re.compile(r"^(?:On|From) (the master|every host|each host|n\d+)\b(.*)", re.IGNORECASE)
_AS = re.compile(r"\bas (root|[a-z]+)\b")


class Block(NamedTuple):
    """Consecutive commands."""

    section: str
    place: str  # "the master", "every host", "each host" or a host's name
    user: str
    text: str


def blocks(path: Path) -> Iterator[Block]:
    """Shell blocks of a page that follow a sentence like "On the master, as root:"; the last such sentence counts until
    the next heading.
    """
    section, place, user, lines = "", "", "", []
    inside = False
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            if inside and place:
                yield Block(section, place, user, "\n".join(lines) + "\n")
            inside, lines = line == "```sh" and not inside, []
        elif inside:
            lines.append(line)
        elif line.startswith("## "):
            section, place, user = line.removeprefix("## "), "", ""
        else:
            for sentence in re.split(r"(?<=[.;]) |, and ", line):
                found = _WHERE.match(sentence.strip())
                named = _AS.search(line) if found else None
                if found and named:
                    place, user = found[1].lower(), named[1]
