"""Files that bsub reads at submission: -is and -Zs, and their changes by bmod."""

from pathlib import Path

import pytest

from lavactl.submit import spooling
from lavad.api import checks
from tests.lavactl.scripted import Desk


def test_the_input_file_is_read_at_submission(desk: Desk, tmp_path: Path) -> None:
    """lsf.md 1.2: -is spools; -i is opened when the job starts; of both the last counts."""
    (tmp_path / "in").write_bytes(b"1\n\xff\0")
    desk.client.submit_results *= 2
    desk.type("bsub", "-is", "in", "cat", cwd=str(tmp_path))
    spec = desk.spec
    assert (spec.input, spec.input_spooled, spec.input_data) == ("in", True, b"1\n\xff\0")
    desk.type("bsub", "-is", "in", "-i", "in", "cat", cwd=str(tmp_path))
    assert (desk.spec.input, desk.spec.input_spooled, desk.spec.input_data) == ("in", False, b"")


def test_a_script_with_its_arguments_is_read_at_submission(desk: Desk, tmp_path: Path) -> None:
    """lsf.md 1.2: -Zs spools the command file; its directives stay unread, as of every program with arguments."""
    path = tmp_path / "job.sh"
    path.write_text("#!/bin/bash\n#BSUB -q never\necho $1\n")
    path.chmod(0o755)
    desk.type("bsub", "-Zs", "./job.sh", "two words", "$x", cwd=str(tmp_path))
    spec = desk.spec
    assert (spec.command, spec.is_script) == (path.read_text(), True)
    assert (list(spec.script_arguments), spec.name, list(spec.queues)) == (["two words", "$x"], "./job.sh", [])


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("-is", "nothing", "cat"), "-is nothing: there is no such file that you may read."),
        (("-is", "in.%I", "cat"), "-is in.%I: the file is read now, so its name takes no pattern; -i does."),
        (("-is", "large", "cat"), "-is large: the file is larger than 3.75 MiB; -i reads it when the job starts."),
        (("-Zs", "nothing"), "-Zs nothing: there is no such file that you may read."),
        (("-Zs", "."), "-Zs .: there is no such file that you may read."),
        (("-Zs", "binary"), "-Zs binary: only scripts are spooled, and this file is a compiled program."),
        (("-Zs", "empty"), "-Zs empty: the file is empty."),
    ],
)
def test_what_cannot_be_spooled(desk: Desk, tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    """A sentence each, and nothing is submitted."""
    (tmp_path / "large").write_bytes(bytes(spooling.SPOOL_MAX + 1))
    (tmp_path / "binary").write_bytes(b"\x7fELF\0")
    (tmp_path / "empty").write_bytes(b"\n")
    result = desk.type("bsub", *words, cwd=str(tmp_path))
    assert (result.code, result.err) == (255, f"{why} Job not submitted.\n")
    assert not desk.client.asked


def test_the_master_takes_what_is_spooled() -> None:
    """A file of the largest size leaves room in the job for its environment."""
    assert checks.SPEC_BYTES_MAX * 0.9 < spooling.SPOOL_MAX < checks.SPEC_BYTES_MAX - (200 << 10)


def test_zs_of_standard_input(desk: Desk) -> None:
    """A script on standard input is spooled anyway."""
    why = "-Zs: a script on standard input is spooled anyway; name a command file. Job not submitted.\n"
    assert desk.type("bsub", "-Zs", stdin=b"true\n").err == why


def test_changes(desk: Desk, tmp_path: Path) -> None:
    """lsf.md 1.2 and 2: bmod -is, -isn, -i and -Zs; -Zsn cannot know the old command."""
    (tmp_path / "in").write_text("data")
    (tmp_path / "job.sh").write_text("#!/bin/sh\necho $1\n")
    desk.client.modify_reply.results.add(job=7)
    for words, fields, spooled in (
        (("-is", "in"), {"input", "input_spooled", "input_data"}, (True, b"data")),
        (("-isn",), {"input", "input_spooled", "input_data"}, (False, b"")),
        (("-i", "in"), {"input", "input_spooled", "input_data"}, (False, b"")),
        (("-Zs", "job.sh 'a b'"), {"command", "command_bytes", "is_script", "script_arguments"}, (False, b"")),
    ):
        assert desk.type("bmod", *words, "7", cwd=str(tmp_path)).code == 0
        request = desk.client.asked[-1]
        assert set(request.fields) == fields
        assert (request.spec.input_spooled, request.spec.input_data) == spooled
    assert (request.spec.is_script, list(request.spec.script_arguments)) == (True, ["a b"])
    refused = desk.type("bmod", "-Zsn", "7")
    assert refused.err == "bmod -Zsn: the command that was spooled is not known any more: -Z gives it anew.\n"
