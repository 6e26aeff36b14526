"""lavactl stage: sources of every kind, what is refused, and that nothing half is left."""

import http.server
import io
import os
import random
import subprocess
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from lavactl.errors import CommandError
from lavactl.tasks.staging import MIB, expanded, name_of, stage
from tests.lavactl.conftest import desk
from tests.lavactl.scripted import Desk

__all__ = ["desk"]


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A directory with a program, a directory, a link and an empty directory."""
    folder = tmp_path / "from" / "mnist"
    (folder / "data" / "none").mkdir(parents=True)
    (folder / "mnist.py").write_text("print(1)\n")
    (folder / "mnist.py").chmod(0o755)
    (folder / "data" / "one").write_bytes(b"1" * 1000)
    (folder / "link").symlink_to("data/one")
    return folder


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working directory."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def entries(folder: Path) -> list[str]:
    """Paths below a folder."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


ALL = ["mnist", "mnist/data", "mnist/data/none", "mnist/data/one", "mnist/link", "mnist/mnist.py"]


@pytest.mark.parametrize("form", ["{}", "file://{}", "{}/", "file://localhost{}"])
def test_a_directory_of_this_host(code: Path, work: Path, form: str) -> None:
    """As it is, with its links and modes."""
    assert stage(form.format(code), str(work), MIB) == str(work / "mnist")
    assert entries(work) == ALL
    assert os.readlink(work / "mnist" / "link") == "data/one"
    assert os.access(work / "mnist" / "mnist.py", os.X_OK)


def test_a_second_copy_replaces_the_first_if_asked(code: Path, work: Path) -> None:
    """Nothing of the first is left; without being asked it is refused."""
    stage(str(code), str(work), 0)
    (work / "mnist" / "made").touch()
    with pytest.raises(CommandError, match=f"there is a mnist in {work} already"):
        stage(str(code), str(work), 0)
    stage(str(code), str(work), 0, replaces=True)
    assert entries(work) == ALL


def test_a_source_is_never_replaced_by_itself(code: Path) -> None:
    """Neither in its own directory nor in itself."""
    for directory in (code.parent, code):
        with pytest.raises(CommandError, match="where it lies"):
            stage(f"file://{code}", str(directory), 0, replaces=True)
    assert (code / "mnist.py").exists()


def test_what_is_too_large_leaves_nothing(code: Path, work: Path) -> None:
    """The bound is that of all files together."""
    (code / "big").write_bytes(b"x" * (MIB + 1))
    with pytest.raises(CommandError, match=r"mnist: it is larger than 1 MiB, the limit\.$"):
        stage(str(code), str(work), MIB)
    assert entries(work) == []


def test_what_is_no_file_is_refused(code: Path, work: Path) -> None:
    """A pipe would never end."""
    os.mkfifo(code / "pipe")
    with pytest.raises(CommandError, match="pipe is neither a file nor a directory"):
        stage(str(code), str(work), 0)
    assert entries(work) == []


@pytest.fixture
def locked() -> Iterator[Path]:
    """A directory with a file in a directory that its owner may not write to; the test is no root meanwhile."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        top = Path(folder)
        if user == 0:
            os.chown(top, 65534, 65534)
            os.seteuid(65534)
        try:
            (top / "mnist" / "data").mkdir(parents=True)
            (top / "mnist" / "data" / "one").touch()
            (top / "mnist" / "data").chmod(0o555)
            (top / "work").mkdir()
            yield top
        finally:
            os.seteuid(user)


def test_directories_without_write_permission(locked: Path) -> None:
    """They are copied as they are, and give way to another copy."""
    work = locked / "work"
    for _ in range(2):
        stage(str(locked / "mnist"), str(work), MIB, replaces=True)
        assert entries(work) == ["mnist", "mnist/data", "mnist/data/one"]
    assert (work / "mnist" / "data").stat().st_mode & 0o777 == 0o555


def test_a_source_that_cannot_be_read_whole(locked: Path) -> None:
    """The sentence names the file; nothing of the copy is left, and the former one is kept."""
    work = locked / "work"
    stage(str(locked / "mnist"), str(work), MIB)
    (locked / "mnist" / "new").touch(0)
    with pytest.raises(CommandError, match=f"mnist: {locked}/mnist/new: Permission denied\\.$"):
        stage(str(locked / "mnist"), str(work), MIB, replaces=True)
    assert entries(work) == ["mnist", "mnist/data", "mnist/data/one"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A web server on loopback that serves a folder; its address."""
    (tmp_path / "web").mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given: object, **more: object) -> None:
            super().__init__(*given, directory=str(tmp_path / "web"), **more)  # type: ignore[arg-type]

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{made.server_address[1]}"
        made.shutdown()
        thread.join()


def test_archives_and_files_of_a_web_server(code: Path, work: Path, tmp_path: Path, server: str) -> None:
    """An archive is unpacked under its name, with or without a directory of its own; other files are copied."""
    with tarfile.open(tmp_path / "web" / "mnist.tar.gz", "w:gz") as archive:
        archive.add(code, "mnist-1.0")
    with zipfile.ZipFile(tmp_path / "web" / "flat.zip", "w") as packed:
        packed.writestr("a.py", "1")
        packed.writestr("b/c.py", "2")
    (tmp_path / "web" / "train.py").write_text("x")
    stage(f"{server}/mnist.tar.gz", str(work), MIB)
    assert entries(work) == ALL
    stage(f"{server}/flat.zip?version=2", str(work), MIB)
    stage(f"{server}/train.py", str(work), MIB)
    assert [one for one in entries(work) if "mnist" not in one] == [
        "flat", "flat/a.py", "flat/b", "flat/b/c.py", "train.py",
    ]  # fmt: skip


def damaged(folder: Path, mode: str) -> bytes:
    """An archive whose second half is wrong."""
    with tarfile.open(folder / "whole", mode) as archive:  # type: ignore[call-overload]
        member = tarfile.TarInfo("a")
        member.size = 200_000
        archive.addfile(member, io.BytesIO(random.Random(1).randbytes(200_000)))
    packed = (folder / "whole").read_bytes()
    return packed[: len(packed) // 2] + bytes(len(packed) // 4) + packed[-len(packed) // 4 :]


def test_what_a_web_server_cannot_give(work: Path, tmp_path: Path, server: str) -> None:
    """One sentence each, and nothing is left: missing, broken, leading out, too large before and after unpacking."""
    web = tmp_path / "web"
    (web / "bad.tgz").write_bytes(b"no archive")
    (web / "cut.tar.xz").write_bytes(damaged(web, "w:xz"))
    (web / "cut.tgz").write_bytes(damaged(web, "w:gz"))
    (web / "big.py").write_bytes(b"x" * (MIB + 1))
    with tarfile.open(web / "out.tar", "w") as archive:
        member = tarfile.TarInfo("../out")
        archive.addfile(member, io.BytesIO())
    with zipfile.ZipFile(web / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a", b"0" * (2 * MIB))
    for name, said in (
        ("none.tgz", "404 File not found"),
        ("bad.tgz", "this archive cannot be unpacked"),
        ("cut.tar.xz", r"this archive cannot be unpacked: .*\w\.$"),
        ("cut.tgz", r"this archive cannot be unpacked: .*\w\.$"),
        ("big.py", "larger than 1 MiB"),
        ("out.tar", "outside"),
        ("bomb.zip", "larger than 1 MiB"),
    ):
        with pytest.raises(CommandError, match=said):
            stage(f"{server}/{name}", str(work), MIB)
        assert entries(work) == []
    with pytest.raises(CommandError, match=r"y: Connection refused\.$"):
        stage("http://127.0.0.1:1/y", str(work), MIB)


def test_repositories_of_git(code: Path, work: Path, tmp_path: Path) -> None:
    """The newest state, a branch, or a commit."""

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", "-C", code, *words],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "first")
    first = git("rev-parse", "HEAD")
    git("checkout", "--quiet", "-b", "next")
    (code / "new").touch()
    git("add", ".")
    git("commit", "--quiet", "-m", "second")
    git("checkout", "--quiet", "main")
    url = f"git+file://{code}"
    stage(url, str(work), MIB)
    assert (work / "mnist" / "mnist.py").exists()
    stage(f"{url}#next", str(work), MIB, replaces=True)
    assert (work / "mnist" / "new").exists()
    stage(f"{url}#{first}", str(work), MIB, replaces=True)
    assert not (work / "mnist" / "new").exists()
    with pytest.raises(CommandError, match=r"git failed: fatal: Remote branch nope not found in upstream origin\.$"):
        stage(f"{url}#nope", str(work), MIB, replaces=True)
    assert (work / "mnist" / "mnist.py").exists()
    (tmp_path / "bare.git").mkdir()
    with pytest.raises(CommandError, match="git failed"):
        stage(f"file://{tmp_path}/bare.git", str(work), MIB)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("/data/mnist", "mnist"),
        ("../mnist/", "mnist"),
        ("https://example.org/a/mnist.tar.gz?x=1", "mnist"),
        ("https://example.org/a/mnist.git", "mnist"),
        ("git@example.org:team/mnist.git", "mnist"),
        ("git@example.org:mnist", "mnist"),
        ("git+https://example.org/team/mnist#v1", "mnist"),
        ("https://example.org/team/mnist.git@v1", "mnist"),
        ("hdfs://nn:9000/user/mnist", "mnist"),
    ],
)
def test_the_name_of_a_copy(source: str, name: str) -> None:
    """The last component of the source's path."""
    assert name_of(source) == name


@pytest.mark.parametrize("source", ["/", "..", "file:///", "https://", "git+file:///"])
def test_sources_without_a_name(source: str, work: Path) -> None:
    """They are refused before anything is done."""
    with pytest.raises(CommandError, match="names no directory or file"):
        stage(source, str(work), 0)


def test_sources_of_no_known_kind(work: Path) -> None:
    """A sentence that says which are."""
    with pytest.raises(CommandError, match="ftp:// is not known; a path, file://"):
        stage("ftp://example.org/x", str(work), 0)
    with pytest.raises(CommandError, match="file:// takes no host"):
        stage("file://example.org/x", str(work), 0)


def test_a_file_system_that_has_a_program(work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """hdfs, where the host has it."""
    (tmp_path / "hdfs").write_text('#!/bin/sh\n/bin/mkdir "$4" && echo "$3" > "$4/from"\n')
    (tmp_path / "hdfs").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    stage("hdfs://nn:9000/user/mnist", str(work), MIB)
    assert (work / "mnist" / "from").read_text() == "hdfs://nn:9000/user/mnist\n"
    (tmp_path / "hdfs").unlink()
    with pytest.raises(CommandError, match="this host has no program hdfs"):
        stage("hdfs://nn:9000/user/other", str(work), MIB)


def test_variables_of_a_source() -> None:
    """Those of the task; one that is not set is an error, an empty one is not."""
    assert expanded("$FS/${A}/c$", {"FS": "", "A": "b"}) == "/b/c$"
    with pytest.raises(CommandError, match="the variable B is not set"):
        expanded("$B/x", {})


def test_the_command(desk: Desk, code: Path, work: Path) -> None:
    """Its options, a path relative to the submission's directory, and what is wrong."""
    assert desk.type("lavactl", "stage", str(code), str(work)).code == 0
    assert entries(work) == ALL
    assert desk.type("lavactl", "stage", "--replace", "--", str(code), str(work)).code == 0
    result = desk.type("lavactl", "stage", "--limit-mib", "x", str(code))
    assert (result.code, result.err.splitlines()[0]) == (255, "lavactl stage: --limit-mib takes a number, not x")
    assert desk.type("lavactl", "stage").code == 255
