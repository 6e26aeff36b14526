"""Checkpoint terms of bsub -k: ``"dir [init=minutes] [minutes] [method=name]"``."""

import os
import re

from lavactl.errors import CommandError
from lavactl.options import printable
from lavactl.submit.submission import METHOD, METHOD_DIR
from lavactl.text import units
from lavactl.wire import messages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

EXPECTED = (
    'a directory and perhaps init=minutes, minutes and method=name, such as "/scratch/saved init=5 30 method=dmtcp"'
)
MINUTES_MAX = 10**6
_NAME = re.compile(r"[A-Za-z0-9_.+-]{1,64}")


def checkpoint(text: str, start: str, environ: "Mapping[str, str]") -> messages.Checkpoint:
    """Terms of an option's value; a relative directory begins at ``start``.

    Raises:
        CommandError: they are malformed.
    """
    directory, *words = text.split() or [""]
    found = messages.Checkpoint(
        directory=os.path.normpath(os.path.join(start, directory)),
        method=environ.get(METHOD, ""),
        programs=environ.get(METHOD_DIR, ""),
        names_minutes=not words and _is_period(directory),
    )
    given: set[str] = set()
    try:
        for word in words:
            name, equals, value = word.partition("=")
            name, value = (name, value) if equals else ("period", name)
            if not directory or name in given:
                raise ValueError(text)
            given.add(name)
            _fill(found, name, value)
    except ValueError:
        raise CommandError(f"-k {printable(text)}: expected {EXPECTED}.") from None
    if found.method and not _NAME.fullmatch(found.method):
        raise CommandError(f"{METHOD}={printable(found.method)}: expected a name of letters, digits and _ . + -.")
    if found.programs and not found.programs.startswith("/"):
        raise CommandError(f"{METHOD_DIR}={printable(found.programs)}: expected an absolute path.")
    return found


def _fill(found: messages.Checkpoint, name: str, value: str) -> None:
    if name == "init":
        found.first_s = 60.0 * units.read_count(value, 1, MINUTES_MAX)
    elif name == "period":
        found.period_s = 60.0 * units.read_count(value, 0, MINUTES_MAX)
        found.no_period = not found.period_s
    elif name == "method" and _NAME.fullmatch(value):
        found.method = value
    else:
        raise ValueError(value)


def _is_period(word: str) -> bool:
    try:
        return units.read_count(word, 0, MINUTES_MAX) >= 0
    except ValueError:
        return False


def checkpoint_text(found: messages.Checkpoint) -> str:
    """Value of the option that gives these terms."""
    words = [
        found.directory,
        f"init={found.first_s / 60:.0f}" if found.first_s else "",
        f"{found.period_s / 60:.0f}" if found.period_s or found.no_period else "",
        f"method={found.method}" if found.method else "",
    ]
    return " ".join(filter(None, words))


def parts(text: str) -> tuple[str, int]:
    """Directory of an option's value as it is written, and its period in seconds; 0 for none."""
    directory = (text.split() or [""])[0]
    return directory, round(checkpoint(text, "/", {}).period_s)


def changed(text: str, directory: str, minutes: str) -> str:
    """An option's value with another directory or period; an empty one stays."""
    before, *words = text.split() or [""]
    kept = [word for word in words if "=" in word or not minutes]
    return " ".join(filter(None, (directory or before, *kept, minutes)))
