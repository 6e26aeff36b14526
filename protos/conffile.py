"""lava.conf: one NAME=VALUE a line, shared by the master, the agents and the commands.

Blank lines and lines whose first character is # are skipped. A value runs to the end of its line, so it may contain =
and #; one pair of double quotes around all of it is removed. A name is set once. Every complaint names file and line
and what was expected, and all complaints of a file are raised at once. Secrets do not belong here: NAME_FILE=PATH names
a file of mode 0600 that holds the value.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from protos.trust.private import PrivateFileError, read_private

FILE_NAME = "lava.conf"

CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,38}")  # it is part of file names
_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


class ConfError(Exception):
    """Unusable configuration; the message is complete sentences for its owner."""


def read(path: Path) -> dict[str, str]:
    """Settings of a file, in its order; ConfError if it cannot be read or has a malformed line."""
    return parse(text_of(path), str(path))


def text_of(path: Path) -> str:
    """Text of a file; ConfError if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfError(f"{path}: {os.strerror(error.errno or 0)}.") from error
    except UnicodeDecodeError as error:
        raise ConfError(f"{path}: is not UTF-8 text.") from error


def parse(text: str, origin: str) -> dict[str, str]:
    """Settings of a text; `origin` names it in complaints."""
    settings, complaints = scan(text, origin)
    if complaints:
        raise ConfError("\n".join(complaints))
    return settings


def scan(text: str, origin: str) -> tuple[dict[str, str], list[str]]:
    """Settings of the well-formed lines of a text, and a complaint of each other one."""
    settings: dict[str, str] = {}
    complaints = []
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        name, equals, value = (part.strip() for part in stripped.partition("="))
        if not equals or not _NAME.fullmatch(name):
            complaints.append(f"{origin}:{number}: expected NAME=VALUE with a name of capital letters.")
        elif name in settings:
            complaints.append(f"{origin}:{number}: {name} is set a second time.")
        elif '"' in (value[:1], value[-1:]) and not (len(value) > 1 and value[0] == value[-1]):
            complaints.append(f"{origin}:{number}: the double quote has no partner.")
        else:
            settings[name] = value[1:-1] if value[:1] == '"' else value
    return settings, complaints


def line_of(text: str, name: str) -> int:
    """Number of the line that sets a name, the first being 1; 0 if none does."""
    lines = enumerate(text.splitlines(), start=1)
    return next((number for number, line in lines if line.partition("=")[0].strip() == name), 0)


def render(settings: Mapping[str, str], comments: Mapping[str, str] | None = None) -> str:
    """Text that `parse` reads back; `comments` puts a line of explanation before a name."""
    lines = []
    for name, value in settings.items():
        if "\n" in value:
            raise ConfError(f"{name}: a value is one line.")
        if comments and name in comments:
            lines.append(f"# {comments[name]}")
        quoted = f'"{value}"' if value != value.strip() or " " in value or value[:1] == '"' else value
        lines.append(f"{name}={quoted}")
    return "".join(f"{line}\n" for line in lines)


def replaced(text: str, changes: Mapping[str, str]) -> str:
    """Text with these settings changed in place, or appended; all else is kept."""
    left = dict(changes)
    lines = []
    for line in text.splitlines():
        name = line.partition("=")[0].strip()
        lines.append(render({name: left.pop(name)}).rstrip("\n") if name in left else line)
    return "".join(f"{line}\n" for line in lines) + render(left)


def secret(settings: Mapping[str, str], name: str, directory: Path) -> str | None:
    """Value of NAME, or of the 0600 file that NAME_FILE names (relative to `directory`); None without either."""
    file = settings.get(f"{name}_FILE")
    if file is None:
        return settings.get(name)
    if name in settings:
        raise ConfError(f"{directory / FILE_NAME}: {name} and {name}_FILE are both set; keep one of them.")
    try:
        return read_private(directory / file).decode("utf-8", "replace").strip()
    except PrivateFileError as error:
        raise ConfError(str(error)) from error
