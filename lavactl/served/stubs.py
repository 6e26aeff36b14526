"""Stubs on disk: one file with the right interpreter, paths and socket, and a link to it for each served command."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

SOURCE = Path(__file__).with_name("stub.py")
NAME = "lava-stub"
PYTHONS = ("/usr/bin/python3",)  # starts faster than that of a virtual environment
UNSERVED = frozenset(("blaunch", "lavarun", "badmin", "lsadmin"))


def write_stub(directory: Path, programs: Path, socket: str) -> Path:
    """Write the stub; return its path.

    Args:
        programs: directory of the whole commands.
        socket: the agent's, where LAVA_SOCKET names no other.
    """
    python = next((path for path in PYTHONS if os.access(path, os.X_OK)), sys.executable)
    text = SOURCE.read_text(encoding="utf-8").partition('"""\n\n')[2]
    text = text.replace("@FULL@", str(programs)).replace("@SOCKET@", socket)
    place = directory / NAME
    temporary = place.with_name(f".{NAME}.{os.getpid()}")
    temporary.write_text(f"#!{python} -IS\n{text}", encoding="utf-8")
    temporary.chmod(0o755)
    temporary.replace(place)
    return place


def served(names: Iterable[str]) -> list[str]:
    """Commands that a stub stands for."""
    return [name for name in names if name not in UNSERVED and not name.startswith("lava")]
