"""What records and reports say of a job: figures of all its hosts, limits on any of them, reasons, lists."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

HOSTS, SLOTS = 3, 3


@pytest.fixture(scope="module")
def wide(open_directory: Path, public_commands: Path) -> Iterator[Cluster]:
    """Three hosts of three slots, whose agents sample often."""
    settings = {"LAVA_TERMINATE_INTERVAL": "3", "LAVA_HEARTBEAT": "1", "LAVA_USAGE_INTERVAL": "1"}
    with a_cluster(open_directory / "W", HOSTS, SLOTS, commands=public_commands, **settings) as made:
        yield made


def fields(cluster: Cluster, job: int, names: str) -> list[str]:
    """Fields of bjobs -o, parted by semicolons."""
    return cluster.says("bjobs", "-a", "-noheader", "-o", f"{names} delimiter=';'", str(job)).split(";")


def test_the_rank_file_has_the_tasks_of_all_terms_of_a_compound_requirement(wide: Cluster, tmp_path: Path) -> None:
    """It listed the first term's tasks alone."""
    job = wide.submit(
        "-K", "-n", "4", "-R", "1*{rusage[mem=10]} + 3*{rusage[mem=20] span[ptile=2]}",
        "-o", str(tmp_path / "out"), f"cp $LSB_DJOB_RANKFILE {tmp_path}/ranks; cp $LSB_DJOB_HOSTFILE {tmp_path}/hosts",
    )  # fmt: skip
    wide.becomes(job, "DONE")
    ranks, hosts = (sorted((tmp_path / name).read_text().split()) for name in ("ranks", "hosts"))
    assert len(ranks) == 4
    assert ranks == hosts


def test_a_report_names_the_error_file_that_is_the_output_file(wide: Cluster, tmp_path: Path) -> None:
    """It said: Read file <> for stderr output of this job."""
    out = tmp_path / "both"
    wide.submit("-K", "-o", str(out), "-e", str(out), "echo to error >&2")
    text = out.read_text()
    assert text.startswith("to error\n")
    assert f"Read file <{out}> for stderr output of this job." in text


def test_more_than_a_thousand_processes_are_counted(wide: Cluster, tmp_path: Path) -> None:
    """Max Processes stopped at 1000."""
    out, number = tmp_path / "out", 1100
    wide.submit("-K", "-o", str(out), f"for i in $(seq {number}); do sleep 60 & done; sleep 3; exit 0")
    found = re.search(r"Max Processes : +(\d+)\n +Max Threads : +(\d+)", out.read_text())
    assert found
    assert int(found[1]) >= number
    assert int(found[2]) >= number


SAVES = """\
import signal, sys, time
def save(number, frame):
    print("saving", flush=True); time.sleep(1.0); print("saved", flush=True); sys.exit(0)
signal.signal(getattr(signal, sys.argv[1]), save)
print("ready", flush=True)
while True: time.sleep(1)
"""


@pytest.mark.parametrize("name", ["SIGUSR2", "SIGTERM", "SIGINT"])
def test_a_program_that_a_shell_waits_for_has_time_to_handle_a_signal(wide: Cluster, tmp_path: Path, name: str) -> None:
    """The shell around ``./prog args`` died of the signal at once, and the program was killed in its handler."""
    program, out = tmp_path / "prog", tmp_path / "out"
    program.write_text(f"#!{sys.executable}\n{SAVES}")
    program.chmod(0o755)
    job = wide.submit("-cwd", str(tmp_path), "-o", str(out), "./prog", name)
    wait_for(lambda: out.exists() and "ready" in out.read_text(), 30, "the program to be ready")
    wide.says("bkill", "-s", name.removeprefix("SIG"), str(job))
    wide.becomes(job, "DONE")
    assert out.read_text().startswith("ready\nsaving\nsaved\n")


def test_what_follows_in_a_command_line_is_not_run_after_the_job_was_told_to_end(wide: Cluster, tmp_path: Path) -> None:
    """The shell outlives the signal for the program's sake; it does not go on."""
    out = tmp_path / "out"
    job = wide.submit("-o", str(out), "echo ready; sleep 100; echo next")
    wait_for(lambda: out.exists() and "ready" in out.read_text(), 30, "the job to be ready")
    wide.says("bkill", str(job))
    wide.becomes(job, "EXIT", 8)
    assert fields(wide, job, "exit_code exit_reason") == ["130", "TERM_OWNER: job killed by owner."]
    assert out.read_text().startswith("ready\n\n---")
