"""A root directory with a shell and a few programs, copied from this machine with their libraries."""

import shutil
import subprocess
from pathlib import Path

PROGRAMS = ("sh", "sleep", "cat", "env", "ls", "id", "readlink", "ln")


def make_root(path: Path) -> Path:
    """A root directory whose /etc/release says that it is an image."""
    files = [shutil.which(name) for name in PROGRAMS]
    linked = subprocess.run(["ldd", *map(str, files)], capture_output=True, text=True, check=True).stdout
    libraries = {
        word for line in linked.splitlines() for word in line.split() if word.startswith("/") and ":" not in word
    }
    for name, program in zip(PROGRAMS, files, strict=True):
        _copy(str(program), path / "bin" / name)
    for library in libraries:
        _copy(library, path / library.lstrip("/"))
    (path / "etc").mkdir()
    (path / "etc" / "release").write_text("an image\n")
    (path / "opt" / "tool").mkdir(parents=True)
    (path / "run").mkdir()
    (path / "var").mkdir()
    (path / "var" / "run").symlink_to("/run")
    for folder in (path, *path.rglob("*")):
        if folder.is_dir() and not folder.is_symlink():
            folder.chmod(0o755)
    return path


def _copy(source: str, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, place)
    place.chmod(0o755)
