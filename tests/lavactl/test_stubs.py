"""The stubs of commands, when they or what they stand for cannot be reached as they were."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lavactl.served.stubs import COMPILED, write_stub

EXECUTE = "import os, sys; os.execve(int(sys.argv[1]), ['bsub', 'x'], {'LAVA_SOCKET': '/nowhere'})"
KINDS = [
    pytest.param(COMPILED, id="C", marks=pytest.mark.skipif(not COMPILED.exists(), reason="no compiler built it")),
    pytest.param(None, id="Python"),
]


def _whole(directory: Path, text: str = "#!/bin/sh\necho whole $1\n") -> Path:
    """The whole command that the stub becomes without an agent."""
    directory.mkdir(exist_ok=True)
    command = directory / "bsub"
    command.write_text(text)
    command.chmod(0o755)
    return command


def _typed(stub: Path) -> subprocess.CompletedProcess[str]:
    name = stub.with_name("bsub")
    name.symlink_to(stub)
    return subprocess.run(
        [name, "x"], env={"LAVA_SOCKET": "/nowhere"}, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.skipif(not COMPILED.exists(), reason="no compiler built the stub in C")
def test_a_stub_that_is_replaced_while_it_starts_finds_its_paths(tmp_path: Path) -> None:
    """The kernel says then that its program is deleted: lavactl up, link or an upgrade wrote another one."""
    _whole(tmp_path / "whole")
    stub = write_stub(tmp_path, tmp_path / "whole", "/nowhere")
    descriptor = os.open(stub, os.O_RDONLY)
    write_stub(tmp_path, tmp_path / "whole", "/nowhere")
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(descriptor)],
        pass_fds=[descriptor], capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    os.close(descriptor)
    assert (done.returncode, done.stdout, done.stderr) == (0, "whole x\n", "")


@pytest.mark.parametrize("compiled", KINDS)
def test_a_missing_interpreter_is_named(tmp_path: Path, compiled: Path | None) -> None:
    """The command is there, so that it is no use to write it anew."""
    command = _whole(tmp_path / "whole", f"#!{tmp_path}/python -x\n")
    done = _typed(write_stub(tmp_path, tmp_path / "whole", "/nowhere", compiled))
    assert done.returncode == 255
    reason = "No such file or directory"
    assert done.stderr == f"bsub: {command} cannot be run by its interpreter {tmp_path}/python: {reason}.\n"


@pytest.mark.parametrize("compiled", KINDS)
def test_a_missing_command_is_named(tmp_path: Path, compiled: Path | None) -> None:
    """With the reason, and what writes it anew."""
    done = _typed(write_stub(tmp_path, tmp_path / "whole", "/nowhere", compiled))
    assert done.returncode == 255
    anew = "lavactl up, or link, writes the commands anew."
    assert done.stderr == f"bsub: {tmp_path}/whole/bsub cannot be executed: No such file or directory. {anew}\n"


@pytest.mark.skipif(not COMPILED.exists(), reason="no compiler built the stub in C")
def test_a_stub_without_its_paths_says_so(tmp_path: Path) -> None:
    """A copy of the program alone knows no installation."""
    stub = tmp_path / "lava-stub"
    shutil.copy(COMPILED, stub)
    done = _typed(stub)
    assert done.returncode == 255
    assert done.stderr.startswith(f"bsub: {stub}.paths cannot be read: No such file or directory. lavactl up, or link")
