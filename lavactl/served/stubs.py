"""Stubs on disk: one file with the right interpreter, paths and socket, and a link to it for each served command."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from lavactl.errors import FAILURE

SOURCE = Path(__file__).with_name("stub.py")
NAME = "lava-stub"
COMPILED = SOURCE.with_name(NAME)  # by packaging/stub.sh, where there is a compiler
PYTHONS = ("/usr/bin/python3",)  # starts faster than that of a virtual environment
UNSERVED = frozenset(("blaunch", "lavarun", "badmin", "lsadmin"))


def write_stub(directory: Path, programs: Path, socket: str, compiled: Path | None = COMPILED) -> Path:
    """Write the stub, that in C where it was compiled for this machine; return its path.

    Args:
        programs: directory of the whole commands.
        socket: the agent's, where LAVA_SOCKET names no other.
    """
    place = directory / NAME
    if compiled is not None and _runs(compiled):
        _replace(directory / f"{NAME}.paths", f"{programs}\n{socket}\n".encode(), 0o644)
        _replace(place, compiled.read_bytes(), 0o755)
        return place
    python = next((path for path in PYTHONS if os.access(path, os.X_OK)), sys.executable)
    text = SOURCE.read_text(encoding="utf-8").partition('"""\n\n')[2]
    text = text.replace("@FULL@", str(programs)).replace("@SOCKET@", socket)
    _replace(place, f"#!{python} -IS\n{text}".encode(), 0o755)
    return place


def _runs(program: Path) -> bool:
    """True for a program of this machine; without its paths it only fails."""
    try:
        return subprocess.run([program], capture_output=True, check=False, timeout=10).returncode == FAILURE
    except (OSError, subprocess.TimeoutExpired):
        return False


def _replace(place: Path, content: bytes, mode: int) -> None:
    temporary = place.with_name(f".{place.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.chmod(mode)
    temporary.replace(place)


def served(names: Iterable[str]) -> list[str]:
    """Commands that a stub stands for."""
    return [name for name in names if name not in UNSERVED and not name.startswith("lava")]
