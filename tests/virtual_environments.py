"""Virtual environments that tests make for programs of others, each once, under .cache."""

import fcntl
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
INSTALL_S = 3600


class NotInstallable(Exception):
    """Package that cannot be had here; the text is the reason."""


def is_ready(home: Path) -> bool:
    """Return True if this environment has been made."""
    return (home / ".ready").exists()


def made(home: Path, packages: Sequence[str], below: Sequence[Path] = ()) -> Path:
    """Return the programs of an environment with these packages, made if it is missing.

    Args:
        home: its directory.
        packages: what pip installs.
        below: programs of environments whose packages it sees beside its own.

    Raises:
        NotInstallable: pip failed.
    """
    if is_ready(home):
        return home / "bin"
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, timeout=INSTALL_S)
    lines = [f"{_packages(programs.parent)}\n" for programs in below]
    (_packages(home) / "below.pth").write_text("".join(lines))
    done = pip(home, "install", "-q", "--no-compile", *packages)
    if done.returncode:
        raise NotInstallable(f"{' and '.join(packages)} cannot be installed: {done.stderr.strip()[-200:]}")
    (home / ".ready").touch()
    return home / "bin"


def pip(
    home: Path, *words: str, cwd: Path | None = None, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the pip of an environment."""
    command = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", *words]
    return subprocess.run(
        command, cwd=cwd, env=variables, capture_output=True, text=True, timeout=INSTALL_S, check=False
    )


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """Hold an environment alone: test processes side by side must not make the same one twice."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with open(home.parent / f"{home.name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _packages(home: Path) -> Path:
    return next((home / "lib").glob("python3*/site-packages"))
