"""bsub -f: what becomes of the files on either host."""

import io
import os
from pathlib import Path

import pytest

from lavactl.tasks import file_copying
from lavactl.tasks.file_copying import NotCopied, State
from protos import jobs_pb2
from tests.lavactl.scripted import Desk


def test_a_file_is_replaced_only_when_all_of_it_is_there(tmp_path: Path) -> None:
    """A copy that is cut short leaves the old file, and nothing beside it; a new file gets the permissions."""
    target = tmp_path / "made"
    file_copying.write(str(target), False, 0o640, file_copying.chunks(io.BytesIO(b"whole"), 5))
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"whole", 0o640)
    with pytest.raises(NotCopied, match="the end of it did not come"):
        file_copying.write(str(target), False, 0o600, file_copying.chunks(io.BytesIO(b"par"), 5))
    assert (target.read_bytes(), os.listdir(tmp_path)) == (b"whole", ["made"])
    file_copying.write(str(target), False, 0o600, [b"n", b"ew"])
    assert (target.read_bytes(), target.stat().st_mode & 0o777) == (b"new", 0o640), "it keeps its permissions"


def test_a_link_stays_and_what_it_names_is_written(tmp_path: Path) -> None:
    """A symbolic link is followed, as a shell's redirection does."""
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    file_copying.write(str(tmp_path / "link"), False, 0o600, [b"new"])
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "file").read_text()) == (True, "new")


def test_appending_adds_all_or_nothing(tmp_path: Path) -> None:
    """`<<`: to what is there, or to a new file."""
    log = tmp_path / "log"
    for part in (b"one\n", b"two\n"):
        file_copying.write(str(log), True, 0o600, [part])
    with pytest.raises(NotCopied):
        file_copying.write(str(log), True, 0o600, file_copying.chunks(io.BytesIO(b"th"), 6))
    assert (log.read_bytes(), os.listdir(tmp_path)) == (b"one\ntwo\n", ["log"])


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A directory or a pipe is neither read, which could wait for ever, nor replaced."""
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(NotCopied, match="Not a regular file"):
            file_copying.open_whole(str(place))
        with pytest.raises(NotCopied, match="Not a regular file"):
            file_copying.write(str(place), False, 0o600, [b"new"])


def test_the_file_of_a_shared_file_system_is_recognised(tmp_path: Path) -> None:
    """Both hosts see the same inode, size and time: copying it onto itself would empty or double it."""
    (tmp_path / "one").write_text("same")
    (tmp_path / "two").write_text("same")
    one, two = (file_copying.state_of(str(tmp_path / name)) for name in ("one", "two"))
    assert file_copying.is_same(one, file_copying.state_of(str(tmp_path / "one")))
    assert not file_copying.is_same(one, two)
    assert not file_copying.is_same(State(), file_copying.state_of(str(tmp_path / "none")))


def test_what_bsub_and_bmod_say_of_copies(desk: Desk) -> None:
    """Names of the submission host are absolute; a text that is no copy is refused; -fn takes all of them away."""
    desk.client.submit_results = [jobs_pb2.SubmitResult(job=7, queue="q")]
    assert desk.type("bsub", "-f", "in > there/in", "-f", "/out <<", "true").code == 0
    (item,) = (one for one in desk.client.asked if isinstance(one, jobs_pb2.SubmitItem))
    assert list(item.spec.file_copies) == ["/home/alice/run/in > there/in", "/out << /out"]
    desk.client.modify_reply = jobs_pb2.ModifyReply()
    for argv in (("-f", "in <> in"), ("-fn",)):
        desk.type("bmod", *argv, "7")
    first, second = (one for one in desk.client.asked if isinstance(one, jobs_pb2.ModifyRequest))
    assert (list(first.fields), list(first.spec.file_copies)) == (
        ["file_copies"],
        ["/home/alice/run/in <> in"],
    )
    assert (list(second.fields), list(second.spec.file_copies)) == (["file_copies"], [])
    for text in ("a -> b", "a", "a > b c", "a >> b"):
        refused = desk.type("bsub", "-f", text, "true")
        assert (refused.code, f"-f {text}: expected file, op and perhaps file" in refused.err) == (255, True), refused
