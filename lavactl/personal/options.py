"""Shared options of `up`, `env`, `down` and `init`: two-dash options, and the cluster directory without --dir."""

import os
from collections.abc import Mapping
from pathlib import Path

from lavactl.errors import CommandError, UsageError
from lavactl.io import Io
from lavactl.options import FLAG, VALUE, Grammar, Options
from lavactl.personal.state_file import RECORD

# Characters in the path that have a special meaning in lava.conf or in a database URL.
_UNFIT = set('"?#%\\')


def parse(argv: list[str], usage: str, command: str, kinds: Mapping[str, int]) -> Options:
    """Options given as `--name value` or `--name=value`; UsageError for others."""
    words: list[str] = []
    for word in argv:
        name, equals, value = word.partition("=")
        if equals and kinds.get(name.removeprefix("--")) == VALUE and name.startswith("--"):
            words += [name, value]
        elif equals and kinds.get(name.removeprefix("--")) == FLAG and name.startswith("--"):
            raise UsageError(f"lavactl {command}: option {name} takes no value", usage)
        else:
            words.append(word)
    return Grammar(f"lavactl {command}", usage, {f"-{name}": kind for name, kind in kinds.items()}).parse(words)


def value(options: Options, name: str) -> str | None:
    """The last value given for --NAME."""
    return options.last(f"-{name}")


def number(options: Options, name: str, smallest: int, largest: int) -> int | None:
    """Number given for --NAME; CommandError if it is malformed or out of bounds."""
    text = value(options, name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not smallest <= int(text) <= largest:
        raise CommandError(f"--{name}: expected a number from {smallest} to {largest}, not {text!r}.")
    return int(text)


def cluster_directory(options: Options, io: Io) -> Path:
    """--dir, else the fixed folder under the user's data home; always absolute."""
    given = value(options, "dir")
    if given is not None:
        return directory(given, io)
    home = io.environ.get("XDG_DATA_HOME", "")
    if not home.startswith("/"):  # the XDG specification ignores relative paths
        home = os.path.join(io.environ.get("HOME") or os.path.expanduser("~"), ".local", "share")
    return directory(os.path.join(home, "lava", "personal"), io)


def shell_directory(options: Options, io: Io) -> Path:
    """--dir, else the personal cluster that this shell uses (``lavactl env``), else the fixed folder.

    Raises:
        CommandError: the shell's cluster is gone; no other one is substituted.
    """
    used = _of_shell(options, io)
    if used is None:
        return cluster_directory(options, io)
    if not used.exists():
        raise CommandError(f"The cluster of this shell (LAVA_ENVDIR={used}) is gone; name another one with --dir.")
    return used if (used / RECORD).exists() else cluster_directory(options, io)


def own_directory(options: Options, io: Io) -> Path:
    """--dir, else the caller's own personal cluster that this shell uses, else the fixed folder."""
    used = _of_shell(options, io)
    if used is not None and (used / RECORD).exists() and (used / RECORD).stat().st_uid == os.geteuid():
        return used
    return cluster_directory(options, io)


def _of_shell(options: Options, io: Io) -> Path | None:
    """Configuration directory that the environment names, unless --dir is given."""
    named = io.environ.get("LAVA_ENVDIR", "")
    return directory(named, io) if named.startswith("/") and value(options, "dir") is None else None


def directory(path: str, io: Io) -> Path:
    """Cluster directory as an absolute path; CommandError if lava's files cannot represent it."""
    absolute = os.path.normpath(io.path(path))
    if not path or not absolute.isprintable() or _UNFIT & set(absolute):
        raise CommandError(f"{path!r} cannot be a cluster directory: choose a path without quotes, backslashes, ? # %.")
    return Path(absolute)
