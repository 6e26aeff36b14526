"""Check of lava.conf, with the same strictness and in the same words as LSF's files."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from lavad.config.grammar import Complaint
from lavad.core.language.near import hint
from lavad.settings import NAMES, examine
from protos import conffile

PASSWORD = re.compile(r"\w+(\+\w+)?://[^/@]*:[^/@]+@")
READABLE = (
    "LAVA_DATABASE: it holds a password, and all users may read this file: put it into a file of mode 0600, and name "
    "that by LAVA_DATABASE_FILE"
)
LATER = "{}: it was changed, and counts when lavad is started anew"


def complaints(directory: Path) -> tuple[Complaint, ...]:
    """Return everything that is wrong with the file of a directory, or doubtful, by its lines."""
    path = directory / conffile.FILE_NAME
    try:
        text = conffile.text_of(path)
        _, wrong = examine(directory)
    except conffile.ConfError as error:
        wrong, text = str(error).splitlines(), ""
    values, _ = conffile.scan(text, str(path))
    found = [*(_error(path, text, sentence) for sentence in wrong), *_doubts(path, text, values)]
    return tuple(sorted(found, key=lambda one: one.line))


def changed(directory: Path, in_force: Mapping[str, str]) -> tuple[Complaint, ...]:
    """Return a warning of each setting that differs from that of a running master, which reads the file when it starts.

    Raises:
        ConfError: the file can't be read.
    """
    path = directory / conffile.FILE_NAME
    text = conffile.text_of(path)
    values, _ = conffile.scan(text, str(path))
    names = sorted(name for name in NAMES if values.get(name, "") != in_force.get(name, ""))
    return tuple(_warning(path, text, name, LATER.format(name)) for name in names)


def _error(path: Path, text: str, sentence: str) -> Complaint:
    found = re.fullmatch(re.escape(str(path)) + r"(?::(\d+))?: (.*?)\.?", sentence, re.DOTALL)
    line, about = (int(found[1] or 0), found[2]) if found else (0, sentence)
    return Complaint(str(path), line or conffile.line_of(text, about.partition(" ")[0]), about)


def _doubts(path: Path, text: str, values: Mapping[str, str]) -> Iterator[Complaint]:
    for name in values:
        if name not in NAMES:
            yield _warning(path, text, name, f"{name}: unknown setting, it has no effect{hint(name, NAMES)}")
    if PASSWORD.match(values.get("LAVA_DATABASE", "")) and path.stat().st_mode & 0o044:
        yield _warning(path, text, "LAVA_DATABASE", READABLE)


def _warning(path: Path, text: str, name: str, about: str) -> Complaint:
    return Complaint(str(path), conffile.line_of(text, name), about, is_fatal=False)
