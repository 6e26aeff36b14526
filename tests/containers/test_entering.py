"""The entering process with bubblewrap and a real root directory: layout, signals, exit status."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from agents.containers.entry import Entry, entered_by
from agents.containers.layout import Bind, arguments
from agents.containers.settings import ContainerSettings
from agents.shepherd.messages import Program
from tests.containers.roots import make_root

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("bwrap"), reason="bubblewrap is not installed"),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root directory that the tests of this file share."""
    return make_root(tmp_path_factory.mktemp("image") / "root")


def started(
    image: str, script: str, tmp_path: Path, tree: str = "", binds: tuple[str, ...] = ()
) -> subprocess.Popen[str]:
    """A script that runs in an image."""
    settings = ContainerSettings(("bubblewrap",), str(tmp_path / "images"), space_mib=1, binds=binds)
    entry = Entry(image, "lava-1-0-1-0-0-1", str(tmp_path), (tree,) if tree else (), tree, (), settings)
    program = entered_by(entry, Program("/bin/sh", ("/bin/sh", "-c", script)))
    return subprocess.Popen(
        program.argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "GIVEN": "yes"}
    )


def test_a_program_sees_the_image_and_what_is_the_job_s(root: Path, tmp_path: Path) -> None:
    """The image's files, the job's directory and variables, files at fixed paths, and the site's binds."""
    tree = tmp_path / "tree"
    for name, text in (("etc/volcano/ps.host", "h1"), ("etc/release", "mine"), ("job/hostfile", "h2")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(f"{text}\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "set").write_text("figures\n")
    script = (
        "cat /etc/volcano/ps.host /job/hostfile /etc/release /data/set; echo $GIVEN $PWD; ls /opt; echo x > out;"
        " echo y > /data/new || echo read-only; echo z > /opt/new || echo closed; readlink /var/run"
    )
    with started(str(root), script, tmp_path, str(tree), (f"{tmp_path}/data:/data:ro",)) as process:
        said, errors = process.communicate(timeout=60)
    lines = ["h1", "h2", "mine", "figures", f"yes {tmp_path}", "tool", "read-only", "closed", "/run"]
    assert said.splitlines() == lines, errors
    assert (tmp_path / "out").read_text() == "x\n"
    assert not (root / "opt" / "new").exists()
    assert not (root / "job").exists()


def test_a_file_that_is_replaced_is_seen(root: Path, tmp_path: Path) -> None:
    """A list that the agent replaces while the program runs is read anew, whole."""
    lists = tmp_path / "tree" / "etc" / "mpi"
    lists.mkdir(parents=True)
    (lists / "hostfile").write_text("one\n")
    script = "cat /etc/mpi/hostfile; while [ ! -e go ]; do sleep 0.02; done; cat /etc/mpi/hostfile"
    with started(str(root), script, tmp_path, str(tmp_path / "tree")) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"
        (lists / "new").write_text("two\n")
        (lists / "new").rename(lists / "hostfile")
        (tmp_path / "go").touch()
        assert process.communicate(timeout=60)[0] == "two\n"


def test_an_archive_is_unpacked_once(root: Path, tmp_path: Path) -> None:
    """The second start finds it."""
    archive = tmp_path / "root.tar.gz"
    subprocess.run(["tar", "-C", root, "-czf", archive, "."], check=True)
    said = []
    for _ in range(2):
        with started(str(archive), "cat /etc/release", tmp_path) as process:
            said.append(process.communicate(timeout=60))
    assert said == [("an image\n", f"lava: importing the image {archive}\n"), ("an image\n", "")]


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_the_end_is_the_program_s(root: Path, tmp_path: Path, script: str, code: int) -> None:
    """Exit codes pass through; a signal is told as bubblewrap tells it, by 128 and its number."""
    with started(str(root), script, tmp_path) as process:
        process.communicate(timeout=60)
    assert process.returncode == code


def test_a_program_has_time_after_a_signal(root: Path, tmp_path: Path) -> None:
    """TERM goes to all processes: the runtime's end at once, the program writes its checkpoint, and its code counts."""
    script = "trap 'sleep 0.5; echo saved; exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    with started(str(root), script, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        for pid in (*_descendants(process.pid), process.pid):
            os.kill(pid, signal.SIGTERM)
        assert process.communicate(timeout=60)[0] == "saved\n"
    assert process.returncode == 9


def _descendants(pid: int) -> list[int]:
    children = [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [*(below for child in children for below in _descendants(child)), *children]


@pytest.mark.parametrize(
    ("image", "sentence"),
    [
        ("/nowhere", "The image /nowhere cannot be used: No such file or directory."),
        ("x:1", "x:1 is an image of a registry, which this site's runtimes (bubblewrap) do not take."),
    ],
)
def test_an_image_that_cannot_be_used(tmp_path: Path, image: str, sentence: str) -> None:
    """One sentence on standard error, and 125."""
    with started(image, "true", tmp_path) as process:
        said = process.communicate(timeout=60)
    assert (process.returncode, said) == (125, ("", f"lava: {sentence}\n"))


def test_the_image_s_own_links_are_followed(root: Path, tmp_path: Path) -> None:
    """Something for /var/run/x appears in /run, where the image's link leads."""
    (tmp_path / "x").mkdir()
    options = arguments(str(root), [Bind(str(tmp_path / "x"), "/var/run/x")])
    assert options[-3:] == ["--bind", str(tmp_path / "x"), "/run/x"]
