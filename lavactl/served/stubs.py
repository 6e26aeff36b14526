"""Stubs on disk: one file with the right interpreter, paths and socket, and a link to it for each served command."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.util import MAGIC_NUMBER
from pathlib import Path

from lavactl.errors import FAILURE

SOURCE = Path(__file__).with_name("stub.py")
NAME = "lava-stub"
C_SOURCE = SOURCE.with_name("stub.c")
# Without shared libraries it starts in 0.37 ms, with them in 0.50.
LINKED: tuple[tuple[str, ...], ...] = (("-static",), ())
COMPILED = SOURCE.with_name(NAME)  # by packaging/stub.sh, where there is a compiler
COMPILE_S = 60.0
PYTHONS = ("/usr/bin/python3",)  # starts faster than that of a virtual environment
# What a stub in Python is compiled by: the version of its code, and the code.
COMPILE = """\
import marshal, sys
from _frozen_importlib_external import MAGIC_NUMBER
code = compile(sys.stdin.read(), "lava-stub", "exec", optimize=2)
sys.stdout.buffer.write(MAGIC_NUMBER + marshal.dumps(code))
"""
LOADER = """\
from _frozen_importlib_external import MAGIC_NUMBER
from marshal import loads
from posix import O_RDONLY, open, read
try:
    code = read(open({place!r}, O_RDONLY), {size} + 1)
except OSError:
    code = b""
exec(loads(code[{magic}:]) if code[:{magic}] == MAGIC_NUMBER and len(code) == {size} else {text!r})
"""
# Those that live as long as something else, ask, or are for administrators stay with their caller.
UNSERVED = frozenset(
    ("blaunch", "lavarun", "badmin", "lsadmin", "lsmon", "lsrun", "lsgrun", "lsmake", "srun", "salloc")
)


def write_stub(directory: Path, programs: Path, socket: str, compiled: Path | None = COMPILED) -> Path:
    """Write the stub, that in C where it was compiled for this machine or can be; return its path.

    Args:
        programs: directory of the whole commands.
        compiled: the stub in C, which is compiled here if that is no program of this machine; None for that in Python.
        socket: the agent's, where LAVA_SOCKET names no other.
    """
    place = directory / NAME
    program = _program(compiled) if compiled is not None else b""
    if program:
        _replace(directory / f"{NAME}.paths", f"{programs}\n{socket}\n".encode(), 0o644)
        _replace(place, program, 0o755)
        return place
    python = next((path for path in PYTHONS if os.access(path, os.X_OK)), sys.executable)
    text = SOURCE.read_text(encoding="utf-8").partition('"""\n\n')[2]
    text = text.replace("@FULL@", str(programs)).replace("@SOCKET@", socket)
    code = _compiled(python, text)
    beside = directory.absolute() / f"{NAME}.code"
    _replace(beside, code, 0o644)
    loader = LOADER.format(place=str(beside), size=len(code), magic=len(MAGIC_NUMBER), text=text)
    _replace(place, f"#!{python} -IS\n{loader}".encode(), 0o755)
    return place


def _compiled(python: str, text: str) -> bytes:
    """Version of the interpreter's code, and the text compiled for it, which takes a quarter of the stub's start.

    It has a file of its own: written out in the stub's text it takes 0.7 ms of 7 to read. Where it is missing, or of
    another version than the interpreter that is there later, the stub runs the text itself.
    """
    words = [python, "-ISXno_debug_ranges", "-c", COMPILE]
    return subprocess.run(words, input=text.encode(), capture_output=True, check=True, timeout=COMPILE_S).stdout


def _program(compiled: Path) -> bytes:
    """Content of the stub in C; empty if it runs here neither as it is nor compiled anew."""
    if _runs(compiled):
        return compiled.read_bytes()
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC") or "cc", "gcc"))), None)
    if compiler is None:
        return b""
    with tempfile.TemporaryDirectory(prefix="lava-stub-") as directory:
        built = Path(directory, NAME)
        return next(filter(None, (_built(built, [compiler, "-O2", "-s", *how]) for how in LINKED)), b"")


def _built(program: Path, words: list[str]) -> bytes:
    """Content of the stub compiled with these words; empty if that fails, or if it does not run."""
    try:
        subprocess.run([*words, "-o", str(program), str(C_SOURCE)], check=True, capture_output=True, timeout=COMPILE_S)
    except (OSError, subprocess.SubprocessError):
        return b""  # a compiler without headers, say: the stub in Python does the same
    return program.read_bytes() if _runs(program) else b""


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
