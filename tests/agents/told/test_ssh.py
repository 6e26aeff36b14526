"""The program ssh between the tasks of a job: its command line, and what blaunch gets."""

import os
import subprocess
from pathlib import Path

import pytest

from agents.job_setup.task_files import TaskFiles
from tests.agents.told.jobs import PS_AND_WORKERS, job, role, told

BLAUNCH = """#!/bin/sh
for word; do printf '[%s]' "$word"; done
echo " $LAVA_SSH_TASK"
read line && echo "input: $line"
exit 7
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A job's files, with a blaunch that shows its words and exits with 7."""
    directory, bin_dir = tmp_path / "job", tmp_path / "bin"
    bin_dir.mkdir()
    (bin_dir / "blaunch").write_text(BLAUNCH)
    (bin_dir / "blaunch").chmod(0o755)
    blob = job([role("ps"), role("worker")], "ssh")
    TaskFiles(directory).write(told(blob, PS_AND_WORKERS, 0, 0, directory=str(directory), bin_dir=str(bin_dir)))
    return directory


def ssh(files: Path, *words: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """One call."""
    environment = {"PATH": f"{files}/bin:/usr/bin:/bin", "LAVA_SSH_TASK": "old/1"}
    return subprocess.run(
        ["/bin/sh", "-c", 'exec ssh "$@"', "sh", *words], input=given, env=environment, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "called"),
    [
        (["mnist-worker-1", "hostname"], "[-z][n2][--][hostname] worker/1"),
        (["mnist-worker-1.mnist", "echo a  b; ls", "-l"], "[-z][n2][--][echo a  b; ls][-l] worker/1"),
        (["MNIST-worker-1", "date"], "[-z][n2][--][date] worker/1"),
        (["ps-0", "date"], "[-z][n1][--][date] ps/0"),
        (["mnist-ps.mnist.default.svc", "date"], "[-z][n1][--][date] ps/0"),
        (["n2", "date"], "[-z][n2][--][date] "),
        (["root@mnist-ps-0", "date"], "[-z][n1][--][date] ps/0"),
        (["ssh://ada@mnist-ps-0:2022", "date"], "[-z][n1][--][date] ps/0"),
        (
            ["-o", "BatchMode=no", "-oPasswordAuthentication=no", "-p", "22", "-i", "key", "-l", "ada", "-qxTn",
             "mnist-ps-0", "date"],
            "[-n][-z][n1][--][date] ps/0",
        ),
        (["mnist-ps-0", "-o", "BatchMode=yes", "-tt", "date"], "[-z][n1][--][date] ps/0"),
        (["mnist-ps-0", "--", "-x"], "[-z][n1][--][-x] ps/0"),
        (["-x", "mnist-ps-0", '"/usr/bin/hydra_pmi_proxy"', "--launcher", "ssh"], '[-z][n1][--]["/usr/bin/hydra_pmi_proxy"][--launcher][ssh] ps/0'),  # noqa: E501
        (["mnist-ps-0"], '[-z][n1][--][exec "${SHELL:-/bin/sh}" -l] ps/0'),
    ],
)  # fmt: skip
def test_the_command_goes_to_the_host_of_the_task(files: Path, words: list[str], called: str) -> None:
    """Options of OpenSSH, before the host and after it; the exit code is the command's."""
    result = ssh(files, *words)
    assert (result.stdout.splitlines()[0], result.stderr, result.returncode) == (called, "", 7)


def test_input_reaches_the_command(files: Path) -> None:
    """Unless -n is given."""
    assert ssh(files, "ps-0", "cat", given="hello\n").stdout.splitlines()[1] == "input: hello"


def test_in_the_background(files: Path) -> None:
    """-f returns at once, with success."""
    assert ssh(files, "-f", "ps-0", "date").returncode == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "ssh: usage: ssh [option ...] [user@]host [command ...]\n"),
        (["-p"], "ssh: option requires an argument -- p\n"),
        (["-Z", "ps-0"], "ssh: unknown option -- Z\n"),
        (["-L", "80:a:80", "ps-0"], "ssh: option -L is not possible between the tasks of a job\n"),
        (["-N", "ps-0"], "ssh: option -N is not possible between the tasks of a job\n"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(files: Path, words: list[str], message: str) -> None:
    """With ssh's own exit code for its failures."""
    result = ssh(files, *words)
    assert (result.stdout, result.stderr, result.returncode) == ("", message, 255)


def test_the_files_of_a_smaller_job_replace_those_of_a_larger_one(files: Path) -> None:
    """A file that the new table lacks is removed; one that did not change is not written again."""
    blob = job([role("ps"), role("worker")], "svc")
    kept = TaskFiles(files)
    kept.write(told(blob, PS_AND_WORKERS, 0, 0, directory=str(files)))
    assert not (files / "bin" / "ssh").exists()
    before = (files / "tree/etc/volcano/ps.host").stat()
    kept.write(told(blob, PS_AND_WORKERS[:1], 0, 0, directory=str(files)))
    after = (files / "tree/etc/volcano/ps.host").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)
    assert (files / "tree/etc/volcano/worker.host").read_text() == "mnist-worker-0.mnist"
    kept.remove()
    assert not os.path.exists(files)
