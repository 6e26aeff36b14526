"""Fixtures of agent tests: working directories and users."""

import contextlib
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.hosts import Place


@pytest.fixture(scope="session")
def somebody() -> Iterator[pwd.struct_passwd]:
    """An ordinary user with a secondary group, made for these tests where we may; otherwise ourselves."""
    if os.geteuid() != 0:
        yield pwd.getpwuid(os.geteuid())
        return
    name = f"lt{secrets.token_hex(4)}"
    subprocess.run(["groupadd", f"{name}g"], check=True)
    try:
        subprocess.run(["useradd", "-M", "-d", "/nonexistent", "-s", "/bin/sh", "-G", f"{name}g", name], check=True)
        yield pwd.getpwnam(name)
    finally:
        subprocess.run(["userdel", name], check=False, capture_output=True)
        subprocess.run(["groupdel", f"{name}g"], check=False, capture_output=True)


@pytest.fixture
def place(somebody: pwd.struct_passwd) -> Iterator[Place]:
    """A fresh directory that the user's processes can reach."""
    root = Path(tempfile.mkdtemp(prefix="lava-test-"))
    try:
        yield Place(root, somebody)
    finally:
        said = root / "state" / "shepherds.log"
        text = said.read_text() if said.exists() else ""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(root)
        assert "Traceback" not in text, text
