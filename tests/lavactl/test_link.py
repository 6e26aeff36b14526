"""lavactl link: links lava's commands without replacing other programs."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lavactl.served.stubs import write_stub
from tests.acceptance.personal import BIN


def linked(directory: Path, *search: Path) -> subprocess.CompletedProcess[str]:
    """lavactl link, with only these directories in PATH."""
    environment = {**os.environ, "PATH": os.pathsep.join(map(str, search))}
    words = [str(BIN / "lavactl"), "link", str(directory)]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_programs_of_others_are_not_replaced_and_not_hidden(tmp_path: Path) -> None:
    """``ln -sf /opt/lava/bin/b* /usr/bin/`` would replace a monitor of the same name silently."""
    here, there = tmp_path / "here", tmp_path / "there"
    for place, name in ((here, "btop"), (there, "bhosts")):
        place.mkdir(exist_ok=True)
        (place / name).write_text("#!/bin/sh\necho mine\n")
        (place / name).chmod(0o755)
    done = linked(here, here, there)
    assert done.returncode == 0
    assert f"btop: not linked, {here}/btop is another program; lava's is lavactl btop" in done.stderr
    assert f"bhosts: not linked, {there}/bhosts is another program" in done.stderr
    assert (here / "btop").read_text().endswith("echo mine\n")
    assert not (here / "bhosts").exists()
    assert os.readlink(here / "bsub") == str(BIN / "lava-stub")
    assert subprocess.run([here / "lavad", "-V"], check=False, capture_output=True).returncode == 0


def test_repeating_it_mends_what_points_nowhere(tmp_path: Path) -> None:
    """Dangling links of an older installation are replaced."""
    (tmp_path / "bsub").symlink_to("/nowhere/bin/bsub")
    for _ in range(2):
        assert linked(tmp_path, tmp_path).returncode == 0
        assert os.readlink(tmp_path / "bsub") == str(BIN / "lava-stub")
    assert linked(tmp_path / "missing").returncode == 255


def test_the_stub_is_compiled_where_it_is_written(tmp_path: Path) -> None:
    """pip compiles nothing: where there is a compiler the stub in C is built for this machine, with its paths."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler on this machine")
    stub = write_stub(tmp_path, Path("/opt/lava/bin"), "/run/own.sock", tmp_path / "missing")
    assert stub.read_bytes().startswith(b"\x7fELF")
    assert (tmp_path / "lava-stub.paths").read_text() == "/opt/lava/bin\n/run/own.sock\n"


@pytest.mark.parametrize("kept", ["the code", "that of another version", "half of it", "more", "none"])
def test_without_a_compiler_the_stub_is_in_python(kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the same paths, and the command that it becomes is named where that is missing.

    It is compiled for the interpreter that it names; without the compiled code of its version it runs all the same, and
    so it does beside the longer one of a stub that is being put into its place.
    """
    monkeypatch.setenv("PATH", str(tmp_path))
    stub = write_stub(tmp_path, tmp_path / "nowhere", str(tmp_path / "own.sock"), tmp_path / "missing")
    assert stub.read_text().startswith("#!")
    place = tmp_path / "lava-stub.code"
    code = place.read_bytes()
    changed = {
        "that of another version": b"v" + code[1:],
        "half of it": code[: len(code) // 2],
        "more": code[:99] + bytes(9) + code[99:],
    }
    if kept == "none":
        place.unlink()
    else:
        place.write_bytes(changed.get(kept, code))
    (tmp_path / "bjobs").symlink_to(stub)
    done = subprocess.run([tmp_path / "bjobs"], capture_output=True, text=True, check=False, timeout=60, env={})
    assert (done.returncode, done.stderr.split(":")[1]) == (255, f" {tmp_path}/nowhere/bjobs cannot be executed")


def test_links_of_another_lava_are_replaced_and_old_ones_taken_away(tmp_path: Path) -> None:
    """After an upgrade or on the way back: names that are no commands any more, of lava alone, go."""
    before, here = tmp_path / "before" / "bin", tmp_path / "here"
    for directory in (before, here):
        directory.mkdir(parents=True)
    for name in ("lavactl", "lavad", "bsub", "bformer", "other"):
        (before / name).write_text("#!/bin/sh\n")
        (before / name).chmod(0o755)
    for name in ("lavactl", "bsub", "bformer"):
        (here / name).symlink_to(before / name)
    (here / "bgone").symlink_to(before / "bgone")
    (here / "mine").symlink_to("/nowhere/mine")
    (here / "sh").symlink_to("/bin/sh")
    done = linked(here, here)
    assert done.returncode == 0
    assert "bformer: the link is taken away, this lava has no such command." in done.stdout
    assert os.readlink(here / "lavactl") == str(BIN / "lavactl")
    assert os.readlink(here / "bsub") == str(BIN / "lava-stub")
    assert not any(os.path.lexists(here / name) for name in ("bformer", "bgone"))
    assert all(os.path.lexists(here / name) for name in ("mine", "sh"))


def test_manual_pages_and_completion_lie_where_man_and_bash_look(tmp_path: Path) -> None:
    """Beside the links of a bin; pages of other programs stay as they are."""
    here, pages = tmp_path / "bin", tmp_path / "share" / "man" / "man1"
    here.mkdir()
    pages.mkdir(parents=True)
    (pages / "bhist.1").write_text(".TH BHIST 1\nof a bird\n")
    for _ in range(2):
        done = linked(here, here)
        assert f"the completion of bash are in {tmp_path}/share." in done.stdout
    assert (pages / "bsub.1").read_text().startswith('.TH "BSUB" 1')
    assert (pages / "lavactl-up.1").exists()
    assert (pages / "bhist.1").read_text().endswith("of a bird\n")
    completions = tmp_path / "share" / "bash-completion" / "completions"
    assert "complete -o default -F _lava" in (completions / "bjobs").read_text()
