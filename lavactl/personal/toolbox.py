"""A directory with lava's commands and nothing else, to go first on a user's PATH, and one with lavactl, to go last.

The first one is gone while the cluster is down, and a shell remembers where it has found a command: so lavactl, with
which the cluster is brought up again, is found elsewhere.

The directory they are installed in will not do: it also holds a Python, and maybe an MPI, that would take the place of
the user's own.
"""

import os
import shlex
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from lavactl.errors import CommandError
from lavactl.main import COMMANDS

LAVACTL = ("lavactl",)


def link_commands(directory: Path, names: Iterable[str] = COMMANDS) -> None:
    """Fill the directory with links to this installation's commands; CommandError when they are not installed."""
    source = Path(sysconfig.get_path("scripts"))
    missing = [name for name in names if not (source / name).exists()]
    if missing:
        raise CommandError(f"The commands are not installed beside {sys.executable} ({missing[0]} is missing).")
    directory.mkdir(exist_ok=True)
    directory.chmod(0o755)
    for name in names:
        link = directory / name
        if not link.is_symlink() or os.readlink(link) != str(source / name):
            link.unlink(missing_ok=True)
            link.symlink_to(source / name)


def closed_to_others(*paths: Path) -> Path | None:
    """The first directory or file on the way to one of these (links followed) that other users may not enter or run."""
    for path in paths:
        real = path.resolve()
        for step in (*reversed(real.parents), real):
            if not step.stat().st_mode & 0o001:
                return step
    return None


def shell_word(text: str) -> str:
    """The text as one word of a POSIX shell."""
    return shlex.quote(text)
