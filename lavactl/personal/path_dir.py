"""A directory with only lava's commands, first on a user's PATH, and one with lavactl, last on it.

The first one is removed while the cluster is down, and a shell caches the path of a command: so lavactl, which starts
the cluster again, is in another directory.

The directory of the installation is unsuitable: it also holds a Python, and maybe an MPI, that would hide the user's
own.
"""

import os
import shlex
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from lavactl.errors import CommandError
from lavactl.main import COMMANDS, SLURM
from lavactl.served.stubs import served, write_stub

LAVACTL = ("lavactl",)


def link_commands(directory: Path, names: Iterable[str] = COMMANDS, stub_socket: str = "") -> None:
    """Link this installation's commands into the directory; CommandError if they are not installed.

    With a socket of an agent, those that it serves are stubs, and the file of the stubs is above the directory.
    """
    source = Path(sysconfig.get_path("scripts"))
    missing = [name for name in names if not (source / name).exists()]
    if missing:
        raise CommandError(f"The commands are not installed beside {sys.executable} ({missing[0]} is missing).")
    directory.mkdir(exist_ok=True)
    directory.chmod(0o755)
    stub = write_stub(directory.parent, source, stub_socket) if stub_socket else None
    stubs = frozenset(served(names)) if stub is not None else frozenset()
    for name in names:
        _put_link(directory / name, stub if stub is not None and name in stubs else source / name)


def link_slurm(directory: Path, stub_socket: str) -> None:
    """Link lavactl into the directory under Slurm's names, by which it knows what is wanted.

    The agent serves what it can, as with the other commands; the programs behind the stubs are beside the directory.
    """
    program, full = Path(sysconfig.get_path("scripts")) / "lavactl", directory.with_name(f"{directory.name}-full")
    for place in (directory, full):
        place.mkdir(exist_ok=True)
        place.chmod(0o755)
    stub = write_stub(full, full, stub_socket)
    stubs = served(SLURM)
    for name in SLURM:
        _put_link(full / name, program)
        _put_link(directory / name, stub if name in stubs else program)


def _put_link(link: Path, target: Path) -> None:
    if not link.is_symlink() or os.readlink(link) != str(target):
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def closed_to_others(*paths: Path) -> Path | None:
    """First directory or file on the path to one of these (links followed) that other users may not enter or run."""
    for path in paths:
        real = path.resolve()
        for step in (*reversed(real.parents), real):
            if not step.stat().st_mode & 0o001:
                return step
    return None


def shell_word(text: str) -> str:
    """Text as one word of a POSIX shell."""
    return shlex.quote(text)
