"""Steps of srun: the list of those that run, and the programs of their ranks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lavactl.errors import CommandError
from lavactl.slurm.steps.layout import needs
from lavactl.slurm.steps.ledger import Ledger
from lavactl.slurm.steps.programs import programs
from lavactl.slurm.steps.variables import of_step, of_tasks
from lavactl.slurm.submit.signals import STEPS
from tests.lavactl.scripted import Desk

SLOTS = {"n1": 4, "n2": 2}


def ledger(place: Path) -> Ledger:
    """The list as one srun sees it."""
    return Ledger("7.0.1-99", os.getuid(), str(place))


def test_steps_wait_for_the_slots_of_others(tmp_path: Path) -> None:
    """A second step fits beside the first or waits for it; numbers are never used twice; overlapping ones take none."""
    first, second, third = ledger(tmp_path), ledger(tmp_path), ledger(tmp_path)
    assert first.enter({"n1": 3}, SLOTS) == 0
    assert second.enter({"n1": 2}, SLOTS) is None
    assert second.enter({"n1": 1, "n2": 2}, SLOTS) == 1
    assert third.enter({"n1": 4}, SLOTS, overlaps=True) == 2
    third.leave()
    first.leave()
    second.leave()
    assert third.enter({"n1": 4, "n2": 2}, SLOTS) == 3
    third.leave()


def test_a_dead_srun_holds_nothing(tmp_path: Path) -> None:
    """Its lock is gone with it, whatever file it left."""
    words = (
        "import os, sys; from lavactl.slurm.steps.ledger import Ledger; "
        f"Ledger('7.0.1-99', os.getuid(), {str(tmp_path)!r}).enter({{'n1': 4}}, {SLOTS!r}); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", words], check=False, cwd=Path(__file__).resolve().parents[3])
    assert list(tmp_path.glob("*/pid.*"))
    own = ledger(tmp_path)
    assert own.enter({"n1": 4}, SLOTS) == 1
    own.leave()
    assert not list(tmp_path.glob("*/pid.*"))


def test_a_step_may_run_for_longer_than_old_directories_are_kept(tmp_path: Path) -> None:
    """The next job with steps removes the directory of one that had none for a week, not that of one that has."""
    old, running = Ledger("5.0.1-9", os.getuid(), str(tmp_path)), Ledger("6.0.1-9", os.getuid(), str(tmp_path))
    assert (old.enter({"n1": 1}, SLOTS), running.enter({"n1": 1}, SLOTS)) == (0, 0)
    old.leave()
    for one in (old, running):
        os.utime(one.path, (0, 0))
    ledger(tmp_path)
    assert (os.path.exists(old.path), os.path.exists(running.path)) == (False, True)
    shutil.rmtree(running.path)
    running.leave()


def test_a_directory_of_another_user_is_not_trusted(tmp_path: Path) -> None:
    """In /tmp anyone may have taken the name."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / f"lava-steps-{os.getuid()}-7.0.1-99").symlink_to(elsewhere)
    with pytest.raises(CommandError, match="belongs to another user"):
        ledger(tmp_path)


def test_slots_that_a_step_takes() -> None:
    """One that is overcommitted takes all of a host and no more."""
    assert needs(["n1", "n1", "n2"], 2, SLOTS) == {"n1": 4, "n2": 2}
    assert needs(["n2"] * 5, 1, SLOTS) == {"n2": 2}


def test_programs_for_ranges_of_ranks(desk: Desk, tmp_path: Path) -> None:
    """--multi-prog: the first line that names a rank counts, %t and %o are the rank and its place."""
    (tmp_path / "conf").write_text("# ranks\n0 master --all\n1-2,4 worker %t %o\n* rest\n")
    desk.type("sinfo", "--version")
    io = desk.last_io
    assert io is not None
    found = programs([str(tmp_path / "conf")], True, 5, io)
    assert found == [["master", "--all"], ["worker", "1", "0"], ["worker", "2", "1"], ["rest"], ["worker", "4", "2"]]
    (tmp_path / "conf").write_text("0 master\n")
    with pytest.raises(CommandError, match="no program for task 1"):
        programs([str(tmp_path / "conf")], True, 2, io)
    assert programs(["a", "b"], False, 2, io) == [["a", "b"], ["a", "b"]]


def test_variables_of_tasks() -> None:
    """Ranks, places on their hosts, and the step that they are of."""
    ranks = ["n1", "n1", "n2"]
    common, tasks = of_step(3, ranks, 2, "10.0.0.1"), of_tasks(ranks)
    assert (common["SLURM_STEP_ID"], common["SLURM_NTASKS"], common["SLURM_NNODES"]) == ("3", "3", "2")
    assert (common["SLURM_TASKS_PER_NODE"], common["SLURM_STEP_NODELIST"]) == ("2,1", "n[1-2]")
    assert [(one["SLURM_PROCID"], one["SLURM_LOCALID"], one["SLURM_NODEID"], one["SLURM_GTIDS"]) for one in tasks] == [
        ("0", "0", "0", "0,1"),
        ("1", "1", "0", "0,1"),
        ("2", "0", "1", "2"),
    ]


@pytest.mark.root
def test_a_signal_goes_to_steps_of_the_users_own_directory() -> None:
    """One that another user made under the foreseeable name in /tmp names no process to signal."""
    path = Path(f"/tmp/lava-steps-0-test-{os.getpid()}")
    command, environment = STEPS.format("TERM"), {**os.environ, "LAVA_JOB_KEY": "test", "LS_JOBPID": str(os.getpid())}
    path.mkdir()
    try:
        with subprocess.Popen(["sleep", "60"]) as process:
            (path / f"pid.0.{process.pid}").touch()
            os.chown(path, 12345, 12345)
            subprocess.run(["/bin/sh", "-c", command], env=environment, check=True)
            assert process.poll() is None
            os.chown(path, 0, 0)
            subprocess.run(["/bin/sh", "-c", command], env=environment, check=True)
            assert process.wait(60) == -15
    finally:
        shutil.rmtree(path)
