"""Slurm's commands on a real cluster: scripts as people write them, unmodified, and what tools ask.

The scripts are in the folder slurm; those that are submitted run side by side.
"""

import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, wait_for
from tests.virtual_environments import CACHE, NotInstallable, alone, made

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]
SCRIPTS = Path(__file__).with_name("slurm")
ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY")


class Slurm:
    """The cluster as a user of Slurm sees it, in a folder of the test's own."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.folder = folder
        self.commands = Path(cluster.environment["LSF_BINDIR"]).parent / "slurm"
        self.environment = {**cluster.environment, "PATH": f"{self.commands}:{cluster.environment['PATH']}"}

    def run(self, *words: str, stdin: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
        """A command line."""
        return subprocess.run(
            words,
            env={**self.environment, **variables},
            cwd=self.folder,
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def submit(self, *words: str, **variables: str) -> str:
        """sbatch; the job's number."""
        done = self.run("sbatch", *words, **variables)
        found = re.fullmatch(r"Submitted batch job (\d+)\n", done.stdout)
        assert found, done
        return found[1]

    def states(self, *jobs: str) -> dict[str, str]:
        """State of each job or element."""
        done = self.run("sacct", "-X", "-n", "-P", "-j", ",".join(jobs), "-o", "JobID,State")
        assert done.returncode == 0, done
        return dict(line.split("|") for line in done.stdout.splitlines())

    def wait(self, *jobs: str, limit_s: float = 60) -> dict[str, str]:
        """States of the jobs when all have ended."""
        found: dict[str, str] = {}

        def have_ended() -> bool:
            found.update(self.states(*jobs))
            return bool(found) and all(state.startswith(ENDED) for state in found.values())

        wait_for(have_ended, limit_s, f"jobs {jobs} to end")
        return found

    def text(self, name: str) -> str:
        """A file of the folder."""
        return (self.folder / name).read_text()


@pytest.fixture
def slurm(cluster: Cluster, tmp_path: Path) -> Iterator[Slurm]:
    """The shared cluster in Slurm's words, with copies of the scripts; empty again after the test."""
    for path in SCRIPTS.iterdir():
        shutil.copy(path, tmp_path)
    yield Slurm(cluster, tmp_path)
    cluster.clear()


def test_scripts_as_people_write_them(slurm: Slurm) -> None:
    """Serial, array, GPU, torchrun over two nodes, steps: files, variables and steps are as on Slurm."""
    fake = slurm.folder / "bin"
    fake.mkdir()
    (fake / "torchrun").write_text('#!/bin/sh\necho "torchrun $* as node $SLURM_NODEID of $SLURM_NNODES"\n')
    (fake / "torchrun").chmod(0o755)
    path = f"{fake}:{slurm.environment['PATH']}"
    serial, array = slurm.submit("serial.sh", "one", "two words"), slurm.submit("array.sh")
    gpu, steps = slurm.submit("gpu.sh"), slurm.submit("steps.sh")
    torch = slurm.submit("torchrun.sh", PATH=path)
    states = slurm.wait(serial, array, gpu, steps, torch)
    assert set(states.values()) == {"COMPLETED"}, (states, slurm.text("steps.out"))
    assert slurm.text(f"serial-{serial}.out").splitlines()[1:] == ["2"]
    assert "with 2 processors, arguments: one two words\n" in slurm.text(f"serial-{serial}.out")
    assert slurm.text(f"serial-{serial}.err").endswith("a warning\n")
    assert [slurm.text(f"sweep_{array}_{number}.out") for number in (0, 3)] == [
        "task 0 of 0-3 (4): alpha\n",
        "task 3 of 0-3 (4): delta\n",
    ]
    assert slurm.text("gpu.out") == "GPUs 0,1, 2 of them\nstep sees 0,1\n"
    _check_steps(slurm)
    ddp = slurm.text("ddp.out").splitlines()
    address = ddp[0].split()[-1]
    wanted = f"torchrun --nnodes 2 --nproc_per_node 2 --rdzv_id {torch} --rdzv_backend c10d"
    wanted += f" --rdzv_endpoint {address}:29500 train.py as node "
    assert sorted(line for line in ddp if "torchrun" in line) == [f"{wanted}0 of 2", f"{wanted}1 of 2"]


def _check_steps(slurm: Slurm) -> None:
    lines = slurm.text("steps.out").splitlines()
    assert sorted(line for line in lines if re.match(r"\d: ", line)) == ["0: lava1", "1: lava1", "2: lava2", "3: lava2"]
    ranks = ["0 0 0 lava1 1", "1 1 0 lava1 1", "2 0 1 lava2 1", "3 1 1 lava2 1"]
    assert [slurm.text(f"step-{rank}.out").strip() for rank in range(4)] == ranks
    assert sorted(line for line in lines if line.startswith("packed")) == [f"packed {i}" for i in range(1, 7)]
    assert any("task 1: Exited with exit code 5" in line for line in lines)
    assert lines[-1] == "code 5"


def test_a_signal_before_the_time_limit(slurm: Slurm) -> None:
    """With B: for the script alone; without for the tasks of its steps, once each. Missing directories are made."""
    wait = "trap 'echo told $SLURM_PROCID; told=y' USR1; touch trap-$SLURM_JOB_NAME-$SLURM_PROCID"
    wait += '; until [ "$told" ]; do sleep 0.1; done'
    (slurm.folder / "task.sh").write_text(f"{wait}\n")
    common = ("-t", "10", "-o", "made/for/it/late-%x")
    before = time.monotonic()
    script = slurm.submit(*common, "-J", "B", "--signal=B:USR1@2", "--wrap", f"{wait}; srun true; sleep 300")
    steps = slurm.submit(
        *common, "-J", "S", "-N2", "--signal=USR1@2", "--wrap", "srun bash task.sh; echo over; sleep 300"
    )
    wait_for(lambda: len(list(slurm.folder.glob("trap-*"))) == 3, 60, "all to be ready for the signal")
    limit_s = int(time.monotonic() - before) + 6
    for job in (script, steps):
        done = slurm.run("scontrol", "update", f"JobId={job}", f"TimeLimit={limit_s // 60}:{limit_s % 60:02}")
        assert done.returncode == 0, done
    assert set(slurm.wait(script, steps).values()) == {"TIMEOUT"}
    assert slurm.text("made/for/it/late-B").splitlines()[:1] == ["told 0"]
    told = [line for line in slurm.text("made/for/it/late-S").splitlines() if line.startswith("told")]
    assert sorted(told) == ["told 0", "told 1"]


@pytest.mark.mpi
def test_an_mpi_program_finds_the_allocation(slurm: Slurm) -> None:
    """A plain mpirun in a script starts a rank for each task on the right hosts."""
    job = slurm.submit("mpi.sh")
    assert slurm.wait(job) == {job: "COMPLETED"}
    found = sorted(slurm.text("mpi.out").splitlines())
    assert found == [f"rank {rank} of 4 on lava{rank // 2 + 1}" for rank in range(4)]


def test_a_chain_of_dependencies_and_an_allocation(slurm: Slurm) -> None:
    """Scripts that call sbatch and salloc themselves."""
    done = slurm.run("bash", "chain.sh")
    assert done.returncode == 0, done
    first, second, third, never = done.stdout.split()[-4:]
    states = slurm.states(first, second, third, never)
    assert [states[job].split()[0] for job in (first, second, third, never)] == [
        "COMPLETED", "FAILED", "COMPLETED", "CANCELLED",
    ]  # fmt: skip
    assert slurm.text("chain.out") == "one\ntwo\nthree\n"
    done = slurm.run("bash", "salloc.sh")
    assert (done.returncode, done.stdout) == (0, "lava1\nlava2\non lava[1-2]\n"), done
    assert "Granted job allocation" in done.stderr


def test_srun_outside_a_job(slurm: Slurm) -> None:
    """It submits, passes the output on and has the program's exit code; ended, it ends its job."""
    done = slurm.run("srun", "-N2", "--label", "bash", "-c", "hostname; exit $((SLURM_PROCID * 4))")
    assert sorted(re.findall(r"^\d: .*$", done.stdout, re.MULTILINE)) == ["0: lava1", "1: lava2"]
    assert done.returncode == 4, done
    (slurm.folder / "sub").mkdir()
    done = slurm.run("srun", "-D", "sub", "-w", "lava[1-2]", "-n1", "pwd", SLURM_LABELIO="1")
    assert done.stdout == f"0: {slurm.folder}/sub\n", done
    process = subprocess.Popen(["srun", "sleep", "300"], env=slurm.environment, cwd=slurm.folder)
    wait_for(lambda: "RUNNING" in slurm.run("squeue", "-h", "-o", "%T %j").stdout, 60, "the step to run")
    process.terminate()
    assert process.wait(60) == -2
    wait_for(lambda: not slurm.run("squeue", "-h").stdout, 60, "the job to end")


def test_commands_that_act_on_jobs(slurm: Slurm) -> None:
    """Hold, release, update, cancel an element, requeue, the time limit, and their states."""
    job = slurm.submit("-a", "0-1", "-H", "-t", "10", "--requeue", "--wrap", "sleep 300")
    assert slurm.run("squeue", "-h", "-o", "%i %t %r %l").stdout == f"{job}_[0-1] PD JobHeldUser 10:00\n"
    assert slurm.run("scontrol", "update", f"JobId={job}", "TimeLimit=20").returncode == 0
    assert slurm.run("scontrol", "release", job).returncode == 0
    wait_for(lambda: slurm.run("squeue", "-h", "-t", "R").stdout.count("\n") == 2, 60, "both elements to run")
    assert slurm.run("scancel", f"{job}_0").returncode == 0
    wait_for(lambda: slurm.states(f"{job}_0")[f"{job}_0"].startswith("CANCELLED by "), 60, "the element to end")
    assert slurm.run("scontrol", "requeue", f"{job}_1").returncode == 0
    shown = slurm.run("scontrol", "-o", "show", "job", f"{job}_1").stdout
    assert f"JobId={job} ArrayJobId={job} ArrayTaskId=1 " in shown
    assert "TimeLimit=00:20:00 " in shown
    assert f"StdOut={slurm.folder}/slurm-{job}_1.out" in shown
    assert slurm.run("scancel", "-u", "root").returncode == 0
    assert slurm.run("sinfo", "-h", "-p", "normal", "-o", "%P %a %D").stdout.startswith("normal* up ")


def test_submitit_with_its_own_executor(slurm: Slurm) -> None:
    """It submits, waits and gets results: a job of four tasks, an array, a failure."""
    home = CACHE / "submitit"
    with alone(home):
        try:
            programs = made(home, ["submitit==1.5.3"])
        except NotInstallable as reason:
            pytest.skip(str(reason))
    program = SCRIPTS.with_name("submitit_program.py")
    done = slurm.run(str(programs / "python"), str(program), str(slurm.folder))
    assert done.returncode == 0, done
    tasks = [f"task {rank}/4 on 2" for rank in range(4)]
    assert done.stdout.splitlines() == [*tasks, "11 22 33", "True", "COMPLETED 0"]


def test_they_are_there_only_where_they_were_asked_for(cluster: Cluster, tmp_path: Path) -> None:
    """``lavactl env`` leaves a real Slurm alone, and ``lavactl link --slurm`` links beside none."""
    assert "slurm" not in cluster.environment["PATH"]
    assert shutil.which("sbatch", path=cluster.environment["LSF_BINDIR"]) is None
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho real\n")
    (tmp_path / "sbatch").chmod(0o755)
    here = tmp_path / "here"
    here.mkdir()
    done = cluster.with_environment(PATH=str(tmp_path)).run("lavactl", "link", "--slurm", str(here))
    assert f"sbatch: not linked, {tmp_path}/sbatch is another program" in done.stderr
    assert stat.S_ISLNK(os.lstat(here / "squeue").st_mode)
    assert not (here / "sbatch").exists()
    words = [str(here / "squeue"), "--version"]
    done = subprocess.run(words, env=cluster.environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("lava ")
