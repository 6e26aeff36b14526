"""Agents and master restarted in turn, and replaced by a new version, under running parallel jobs.

LAVA_ROLLING_RESTARTS=10 runs it at full size: 20 jobs over three hosts, each daemon restarted ten times.
LAVA_ROLLING_FROM names a commit whose code is the old version; else it is this one's under another version number.
LAVA_TORCHRUN names a torchrun; if it is not set, programs/rendezvous.py is used, which meets and fails as it does.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for
from tests.mpi import environments
from tests.mpi.environments import ROOT, Mpi
from tests.personal.conftest import _write_commands

pytestmark = [pytest.mark.acceptance, pytest.mark.mpi, pytest.mark.slow, pytest.mark.root]

RESTARTS = int(os.environ.get("LAVA_ROLLING_RESTARTS", "2"))
FROM = os.environ.get("LAVA_ROLLING_FROM", "")
TORCHRUN = os.environ.get("LAVA_TORCHRUN", "")
IS_FULL = RESTARTS >= 10
HOSTS = 3
PACKAGES = ("agents", "lavactl", "lavad", "protos")
PROGRAMS = Path(__file__).parent / "programs"
NEW = "0.1.0+g0new0new"
PATIENCE_S = 120.0


class Installation:
    """Commands in a virtual environment of their own, whose packages can be replaced in place, as pip does."""

    def __init__(self, home: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", home / "venv"], check=True)
        self.commands = home / "venv" / "bin"
        self._packages = home / "packages"
        found = next((home / "venv" / "lib").glob("python3*/site-packages"))
        site = Path(sys.prefix, "lib", found.parent.name, "site-packages")
        (found / "lava.pth").write_text(f"{self._packages}\n{site}\n")
        _write_commands(self.commands)

    def install(self, tree: Path, version: str) -> None:
        """Replace the installed code by this one."""
        for name in PACKAGES:
            shutil.rmtree(self._packages / name, ignore_errors=True)
            shutil.copytree(tree / name, self._packages / name, ignore=shutil.ignore_patterns("__pycache__"))
        if commit := version.partition("+g")[2]:
            (self._packages / "protos" / "commit").write_text(commit)


class Job:
    """A job that runs until its file appears; ``check`` returns the errors of its output."""

    def __init__(self, name: str, command: str, code: int, check: Callable[[str], str]) -> None:
        self.name = name
        self.command = command
        self.code = code
        self.check = check
        self.number = 0
        self.mpi: Mpi | None = None

    def submit(self, cluster: Cluster, place: Path) -> None:
        """One rank or task on each host."""
        mine = cluster if self.mpi is None else cluster.with_environment(**self.mpi.environment(cluster.environment))
        options = ("-J", self.name, "-n", str(HOSTS), "-R", "span[ptile=1]", "-o", "/dev/null", "-e", "/dev/null")
        command = self.command.format(stop=place / "stop", place=place)
        self.number = mine.submit(*options, f"{command} >{place}/{self.name}.out 2>{place}/{self.name}.err")

    def output(self, place: Path) -> str:
        """Its output so far."""
        path = place / f"{self.name}.out"
        return path.read_text(errors="replace") if path.exists() else ""


def check_lines(output: str) -> str:
    """Each task's numbers without a gap, up to the last one."""
    for task in map(str, range(1, HOSTS + 1)):
        own = [line.split()[1:] for line in output.splitlines() if line.startswith(f"{task} ")]
        expected = [[str(number)] for number in range(1, len(own))]
        if own != [*expected, ["last", str(len(expected))]]:
            return f"task {task}: {own[-3:]} after {len(own)} lines"
    return ""


def check_sums(output: str) -> str:
    """The ranks' own verdict."""
    return "" if re.search(rf"^ranks {HOSTS} steps \d+ wrong 0$", output, re.MULTILINE) else output[-300:]


def check_rendezvous(output: str) -> str:
    """Every sum is that of all workers' numbers, and the last step was taken."""
    steps = re.findall(r"^step (-?\d+) sum (\d+)$", output, re.MULTILINE)
    expected = str(HOSTS * (HOSTS - 1) // 2)
    is_right = steps and steps[-1][0] == "-1" and all(total == expected for _, total in steps)
    return "" if is_right else output[-300:]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of the jobs' own."""
    return tmp_path_factory.mktemp("rolling")


def mpi_jobs(place: Path, left_out: list[str], times: int) -> Iterator[Job]:
    """mpirun of each MPI that can be had, and lavarun with MPICH's ranks."""
    for name in environments.NAMES:
        try:
            mpi = environments.mpi(name)
        except environments.Missing as missing:
            left_out.append(f"{name}: {missing}")
            continue
        program = mpi.compile(PROGRAMS / "steady.c", place / f"steady-{name}")
        launchers = ("mpirun", "lavarun") if name == "mpich4" else ("mpirun",)
        for launcher in launchers:
            for number in range(times):
                job = Job(f"{launcher}-{name}-{number}", f"{launcher} {program} {{stop}}", 0, check_sums)
                job.mpi = mpi
                yield job


def meeting(port: int) -> str:
    """Workers that find each other at a port of the first host."""
    if not TORCHRUN:
        return f"blaunch python3 {PROGRAMS}/rendezvous.py {{stop}} {port}"
    options = f"--nnodes={HOSTS} --nproc-per-node=1 --rdzv-backend=c10d --rdzv-endpoint=$(hostname):{port}"
    return f"blaunch {TORCHRUN} {options} --rdzv-id=$LSB_JOBID {PROGRAMS}/torch_sums.py {{stop}}"


def all_jobs(place: Path, left_out: list[str]) -> list[Job]:
    """The mixture: 20 at full size, if every MPI is available."""
    jobs = [Job(f"blaunch-{n}", f"blaunch python3 {PROGRAMS}/lines.py {{stop}}", 5, check_lines) for n in range(3)]
    name = "torchrun" if TORCHRUN else "rendezvous"
    jobs += [Job(f"{name}-{n}", meeting(29400 + os.getpid() % 1000 + n), 0, check_rendezvous) for n in range(2)]
    if not IS_FULL:
        jobs = [jobs[0], jobs[3]]
    return [*jobs, *mpi_jobs(place, left_out, 3 if IS_FULL else 1)]


def old_code(place: Path) -> Path:
    """The tree of the version before."""
    if not FROM:
        return ROOT
    tree = place / "old"
    tree.mkdir()
    archive = subprocess.run(["git", "archive", FROM], cwd=ROOT, check=True, capture_output=True).stdout
    subprocess.run(["tar", "x", "-C", str(tree)], input=archive, check=True)
    return tree


def restart(cluster: Cluster, daemons: list[str], number: int) -> None:
    """Ended as systemctl restart does, or killed."""
    for daemon in daemons:
        cluster.kill(daemon, number)
    for daemon in daemons:
        wait_for(lambda daemon=daemon: not cluster.is_running(daemon), PATIENCE_S, f"{daemon} to end")
    cluster.up()


def not_running(cluster: Cluster, jobs: list[Job]) -> list[str]:
    """Jobs that a restart has ended."""
    rows = dict(line.split() for line in cluster.says("bjobs", "-a", "-noheader", "-o", "jobid stat").splitlines())
    return [f"{job.name} is {state}" for job in jobs if (state := rows.get(str(job.number), "gone")) != "RUN"]


def test_parallel_jobs_run_through_restarts_and_an_upgrade(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """None is ended, no figure is wrong, no line is missing or repeated, and every exit code is the job's own."""
    installation = Installation(place)
    installation.install(old_code(place), "0.1.0+old")
    left_out: list[str] = []
    jobs = all_jobs(place, left_out)
    with a_cluster(place / "D", HOSTS, len(jobs), commands=installation.commands) as cluster:
        daemons = [*(f"agent-{host}" for host in cluster.hosts()), "lavad"]
        for job in jobs:
            job.submit(cluster, place)
        for job in jobs:
            wait_for(lambda job=job: job.output(place).count("\n") > 3, PATIENCE_S, f"{job.name} to get going")
        for number in range(RESTARTS):
            if number == RESTARTS // 2:
                installation.install(ROOT, NEW)
            together = [daemons] if number % 2 else [[daemon] for daemon in daemons]
            for some in together:
                restart(cluster, some, signal.SIGKILL if number % 2 else signal.SIGTERM)
                assert not (ended := not_running(cluster, jobs)), f"after restart {number} of {some}: {ended}"
        assert NEW in cluster.says("lsid", "-V") + cluster.run("lavactl", "-V").stdout
        before = {job.name: job.output(place).count("\n") for job in jobs}
        for job in jobs:
            wait_for(lambda job=job: job.output(place).count("\n") > before[job.name] + 3, PATIENCE_S, f"{job.name}")
        (place / "stop").touch()
        wrong = []
        for job in jobs:
            wait_for(lambda job=job: cluster.state(job.number) in ("DONE", "EXIT"), PATIENCE_S, f"{job.name} to end")
            code = cluster.states(job.number)[0][1]
            verdict = job.check(job.output(place))
            if code != job.code or verdict:
                wrong.append(f"{job.name}: code {code}, {verdict} {(place / f'{job.name}.err').read_text()[-300:]}")
        assert not wrong, "\n".join(wrong)
    with capsys.disabled():
        said = f"; left out: {'; '.join(left_out)}" if left_out else ""
        print(f"\n{len(jobs)} parallel jobs, {RESTARTS} restarts of each daemon: 0 ended, 0 wrong{said}")
