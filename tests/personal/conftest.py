"""Owners of personal clusters in tests: root, and an ordinary user that exists only for the tests.

Every cluster of a test is taken down at its end, also after a failure.
"""

import contextlib
import os
import pwd
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from pathlib import Path

import pytest

from lavactl.personal.processes import all_pids, sweep
from tests.personal.people import Person, is_open

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def public_commands() -> Iterator[Path]:
    """The commands of an installation that any user of this machine can run."""
    installed = Path(sys.executable).parent
    if os.geteuid() != 0 or is_open(Path(sys.executable)):
        yield installed
        return
    # The developer's Python is in a closed home: the system's own may be the same version and read the same packages.
    python = Path(f"/usr/bin/python3.{sys.version_info.minor}")
    site = Path(sys.prefix, "lib", f"python3.{sys.version_info.minor}", "site-packages")
    if not python.exists() or not is_open(site) or not is_open(ROOT):
        pytest.skip("no Python, or no copy of lava, on this machine can be run by another user")
    home = Path(tempfile.mkdtemp(prefix="lava-venv-"))
    try:
        home.chmod(0o755)
        subprocess.run([python, "-m", "venv", "--without-pip", home / "venv"], check=True)
        own_site = home / "venv" / "lib" / python.name / "site-packages"
        (own_site / "lava.pth").write_text(f"{ROOT}\n{site}\n")
        _write_commands(home / "venv" / "bin")
        yield home / "venv" / "bin"
    finally:
        shutil.rmtree(home)


def _write_commands(directory: Path) -> None:
    package = ConfigParser()
    package.read(ROOT / "setup.cfg")
    for line in package["options.entry_points"]["console_scripts"].split("\n"):
        name, _, function = line.partition(" = ")
        module, _, attribute = function.partition(":")
        if name:
            text = f"#!{directory}/python\nimport sys\nfrom {module} import {attribute}\nsys.exit({attribute}())\n"
            (directory / name).write_text(text)
            (directory / name).chmod(0o755)


@pytest.fixture(scope="session")
def short_directory() -> Iterator[Callable[[Person], Path]]:
    """Make directories of a person whose paths are short enough for sockets."""
    made: list[Path] = []

    def make(person: Person) -> Path:
        path = Path(tempfile.mkdtemp(prefix="lava-t-"))
        entry = pwd.getpwnam(person.name)
        os.chown(path, entry.pw_uid, entry.pw_gid)
        path.chmod(0o755)
        made.append(path)
        return path

    yield make
    for path in made:
        shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def account() -> Iterator[str]:
    """Name of an ordinary user: the one who runs the tests, or one made for root's tests."""
    if os.geteuid() != 0:
        yield pwd.getpwuid(os.geteuid()).pw_name
        return
    with made_account() as name:
        yield name


@pytest.fixture(scope="session")
def other_account() -> Iterator[str]:
    """The name of a second ordinary user."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to make a second user")
    with made_account() as name:
        yield name


@contextlib.contextmanager
def made_account() -> Iterator[str]:
    """A user of this machine for as long as it is needed."""
    name = f"lava{secrets.token_hex(4)}"
    subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True)
    uid = pwd.getpwnam(name).pw_uid
    try:
        yield name
    finally:
        # The account is the tests' own, so processes left by a failed test may be killed.
        sweep(lambda: [pid for pid in all_pids() if _owner(pid) == uid])
        subprocess.run(["userdel", "--remove", name], check=True, stderr=subprocess.DEVNULL)


def _owner(pid: int) -> int:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except FileNotFoundError:
        return -1


@pytest.fixture
def user(account: str, public_commands: Path) -> Iterator[Person]:
    """An ordinary user."""
    become = ("runuser", "-u", account, "--") if os.geteuid() == 0 else ()
    person = Person(account, Path(pwd.getpwnam(account).pw_dir), public_commands, become)
    yield person
    person.purge()


@pytest.fixture
def root(public_commands: Path) -> Iterator[Person]:
    """Root, with an installation that all users can run."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    person = Person("root", Path("/root"), public_commands)
    yield person
    person.purge()


@pytest.fixture(params=["root", "user"])
def person(request: pytest.FixtureRequest) -> Person:
    """Each kind of person in turn."""
    found: Person = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def directory(person: Person, short_directory: Callable[[Person], Path]) -> Path:
    """Directory for that person's cluster."""
    return short_directory(person) / "D"
