"""Horovod's wheel from its source, the only form on PyPI: for torch, with gloo, without MPI.

The source of 0.28.1 is of the days of C++14 and CMake 3; headers of torch need C++20, and CMake 4 a minimum version.
The build takes a quarter of an hour on two idle processors, so the wheel is kept beside the environments.
"""

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

from tests import virtual_environments as environments
from tests.virtual_environments import NotInstallable

VERSION = "0.28.1"
TOOLS = ("cmake", "ninja", "wheel")
SETTINGS = {
    "CMAKE_POLICY_VERSION_MINIMUM": "3.5",
    "MAKEFLAGS": "-j2",  # eight compilers at a time otherwise
    "HOROVOD_WITH_GLOO": "1",
    "HOROVOD_WITHOUT_MPI": "1",
    "HOROVOD_WITH_PYTORCH": "1",
    "HOROVOD_WITHOUT_TENSORFLOW": "1",
    "HOROVOD_WITHOUT_MXNET": "1",
}


def install(home: Path) -> None:
    """Install Horovod into an environment that has what it needs to run, and sees torch.

    Raises:
        NotInstallable: the source cannot be had or built.
    """
    if (home / "bin" / "horovodrun").exists():
        return
    wheels = home.parent / "wheels"
    if not list(wheels.glob("horovod-*.whl")):
        _build(home, wheels)
    wheel = next(wheels.glob("horovod-*.whl"))
    _check(environments.pip(home, "install", "-q", "--no-deps", str(wheel)), "the wheel of Horovod does not install")


def _build(home: Path, wheels: Path) -> None:
    place = home.parent / "horovod-build"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    _check(environments.pip(home, "install", "-q", *TOOLS), "the tools of the build cannot be installed")
    source = ("download", "-q", "--no-deps", "--no-binary", ":all:", "--no-build-isolation", f"horovod=={VERSION}")
    _check(environments.pip(home, *source, cwd=place), "the source of Horovod cannot be had")
    with tarfile.open(next(place.glob("horovod-*.tar.gz"))) as archive:
        archive.extractall(place, filter="data")
    tree = place / f"horovod-{VERSION}"
    for lists in (tree / "CMakeLists.txt", tree / "horovod" / "torch" / "CMakeLists.txt"):
        text = lists.read_text().replace("CMAKE_CXX_STANDARD 14", "CMAKE_CXX_STANDARD 20")
        lists.write_text(text.replace('"-O3"', '"-O0"'))  # half of the time; what is tested is who meets whom
    variables = {**os.environ, **SETTINGS, "PATH": f"{home / 'bin'}:{os.environ['PATH']}"}
    words = ("wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(wheels), str(tree))
    _check(environments.pip(home, *words, variables=variables), "Horovod does not build")
    shutil.rmtree(place, ignore_errors=True)


def _check(done: subprocess.CompletedProcess[str], what: str) -> None:
    if done.returncode:
        raise NotInstallable(f"{what}: {done.stderr.strip()[-300:]}")
