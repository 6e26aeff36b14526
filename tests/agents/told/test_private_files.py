"""Files at fixed paths that only the job's own processes see."""

import os
import pwd
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from agents.job_setup.task_files import TaskFiles, can_be_private
from agents.job_setup.told.values import File, Told
from tests.agents.conftest import place, somebody
from tests.agents.hosts import Place
from tests.personal.people import is_open

__all__ = ["place", "somebody"]
ROOT = Path(__file__).resolve().parents[3]
FILES = {"/etc/volcano/ps.host": File(b"ps-0\n"), "/job/hostfile": File(b"w slots=2\n")}
NAMES = (("10.9.8.7", ("mnist-ps-0", "mnist-ps-0.mnist")),)

pytestmark = [
    pytest.mark.skipif(not can_be_private(), reason="the kernel lets this user make no namespace"),
    pytest.mark.slow,
]


@pytest.fixture(params=["agent of root", "agent of a user"])
def by(request: pytest.FixtureRequest, somebody: pwd.struct_passwd) -> Iterator[list[str]]:
    """The command that starts a shepherd of either kind."""
    if request.param == "agent of root":
        if os.geteuid() != 0:
            pytest.skip("needs root")
        yield []
    elif os.geteuid() != 0:
        yield []
    elif not is_open(Path(__file__)) or not is_open(Path(sys.executable)):
        pytest.skip("no other user may enter the directory of this checkout, or of its Python")
    else:
        yield ["setpriv", f"--reuid={somebody.pw_uid}", f"--regid={somebody.pw_gid}", "--clear-groups"]


def written(place: Place, told: Told, owner: pwd.struct_passwd, name: str = "1-0-1") -> Path:
    """An attempt's files, where an agent of either kind may read them."""
    directory = place.root / name
    TaskFiles(directory).write(told)
    if os.geteuid() == 0:
        for path in (place.root, directory, *directory.rglob("*")):
            os.chown(path, owner.pw_uid, owner.pw_gid)
    place.root.chmod(0o755)
    return directory / "tree"


def shell(by: Sequence[str], tree: Path, owner: pwd.struct_passwd, command: str) -> subprocess.Popen[str]:
    """A command among an attempt's processes, twice; then what the shepherd says of itself."""
    words = [*by, sys.executable, "-m", "tests.agents.told.starter", str(tree), str(owner.pw_uid), str(owner.pw_gid), "/tmp", command]  # fmt: skip  # noqa: E501
    return subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def output_of(by: Sequence[str], tree: Path, owner: pwd.struct_passwd, command: str) -> list[str]:
    """The lines of one run of the command."""
    process = shell(by, tree, owner, command)
    lines = process.communicate(timeout=60)[0].splitlines()
    assert process.returncode == 0, lines
    uids = "(0, 0, 0)" if not by and os.geteuid() == 0 else str((owner.pw_uid,) * 3)
    assert lines.pop() == f"shepherd: {uids} / outside"
    half = len(lines) // 2
    assert lines[:half] == lines[half:]
    return lines[:half]


def test_a_process_sees_the_files_and_the_host_has_none(
    by: list[str], place: Place, somebody: pwd.struct_passwd
) -> None:
    """Below a directory that exists, and below the root; names resolve; what was there before still is."""
    tree = written(place, Told(files=FILES, names=NAMES), somebody)
    command = (
        "cat /etc/volcano/ps.host /job/hostfile; getent hosts mnist-ps-0.mnist; pwd; id -u; head -1 /etc/os-release;"
        "getent passwd root | cut -d: -f1; grep -c localhost /etc/hosts; test -d /usr/bin -a -d /proc/self && echo all"
    )
    lines = output_of(by, tree, somebody, command)
    own = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()[0]
    localhosts = sum("localhost" in line for line in Path("/etc/hosts").read_text(encoding="utf-8").splitlines())
    assert lines[:2] == ["ps-0", "w slots=2"]
    assert lines[2].startswith("10.9.8.7 ")
    assert "mnist-ps-0.mnist" in lines[2]
    assert lines[3:] == ["/tmp", str(somebody.pw_uid), own, "root", str(localhosts), "all"]
    assert not Path("/etc/volcano").exists()
    assert not Path("/job").exists()


def test_two_jobs_on_one_host_see_different_files(by: list[str], place: Place, somebody: pwd.struct_passwd) -> None:
    """Each its own, at the same path and at the same time."""
    trees = [
        written(place, Told(files={"/etc/volcano/ps.host": File(f"ps-of-{job}\n".encode())}), somebody, f"{job}-0-1")
        for job in (1, 2)
    ]
    running = [
        shell(by, tree, somebody, "cat /etc/volcano/ps.host; sleep 0.3; cat /etc/volcano/ps.host") for tree in trees
    ]
    found = [process.communicate(timeout=60)[0].splitlines()[:4] for process in running]
    assert found == [["ps-of-1"] * 4, ["ps-of-2"] * 4]


def test_a_running_process_reads_new_lists_and_never_half_of_one(
    by: list[str], place: Place, somebody: pwd.struct_passwd
) -> None:
    """The discovery script and /etc/hosts change under it while the job grows; each read is one whole version."""
    files = TaskFiles(place.root / "1-0-1")

    def told(count: int) -> Told:
        script = b"#!/bin/sh\n" + b"".join(b"echo w-%d:1\n" % number for number in range(count)) + b"echo end\n"
        names = tuple((f"10.0.0.{number}", (f"w-{number}",)) for number in range(count))
        return Told(files={"/etc/mpi/discover_hosts.sh": File(script, 0o555)}, names=names)

    tree = written(place, told(1), somebody)
    command = (
        "while :; do d=$(/etc/mpi/discover_hosts.sh) || exit 1; case $d in *end) ;; *) echo half; exit 1;; esac;"
        "case $d in *w-63*) ip=$(getent hosts w-63) && echo ${ip%% *} && exit;; esac; done"
    )
    process = shell(by, tree, somebody, command)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        for count in (1, 50, 3, 64):
            files.write(told(count))
            if os.geteuid() == 0:
                for path in (place.root / "1-0-1").rglob("*"):
                    os.chown(path, somebody.pw_uid, somebody.pw_gid)
        time.sleep(0.01)
    lines = process.communicate(timeout=60)[0].splitlines()
    assert process.returncode == 0, lines
    assert lines[:-1] == ["10.0.0.63", "10.0.0.63"]


def test_nothing_is_left_behind(by: list[str], place: Place, somebody: pwd.struct_passwd) -> None:
    """After the processes no mount of theirs exists, and the directory can be removed."""
    before = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    entries = {path: sorted(os.listdir(path)) for path in ("/", "/etc")}
    tree = written(place, Told(files=FILES, names=NAMES), somebody)
    output_of(by, tree, somebody, "true")
    assert Path("/proc/self/mountinfo").read_text(encoding="utf-8") == before
    assert {path: sorted(os.listdir(path)) for path in entries} == entries
    shutil.rmtree(tree.parent)


def test_a_missing_tree_is_the_hosts_failure(by: list[str], place: Place, somebody: pwd.struct_passwd) -> None:
    """One sentence, not a start without the files."""
    place.root.chmod(0o755)
    process = shell(by, place.root / "none", somebody, "true")
    text = process.communicate(timeout=60)[0]
    assert process.returncode != 0
    assert "HostFailure: the job's files can't be put at their paths: [Errno 2] No such file or directory" in text
