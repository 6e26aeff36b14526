"""lavarun over two agents connected by real TLS, with programs of every kind and the ranks of a real MPICH."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.site import Site
from tests.mpi import environments

ROOT = environments.ROOT
# UCX looks at all interfaces of the machine, and gives up when one that a test beside this made vanishes meanwhile.
AROUND = {"PATH": os.environ["PATH"], "UCX_NET_DEVICES": "lo"}
SLOTS = (("n1", 2), ("n2", 2))
TIMEOUT_S = 120.0


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site(tmp_path, "n1", "n2") as site:
        site.allocate(7, *SLOTS)
        yield site


def lavarun(
    site: Site, *argv: str, input: str | None = None, environment: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run lavarun as a process of job 7 on its lead host."""
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **site.job_environment(7, *SLOTS)}
    return subprocess.run(
        [sys.executable, "-m", "lavactl", "lavarun", *argv],
        env={**variables, **(environment or {})},
        cwd=site.directory,
        input=input,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_each_slot_gets_a_rank_in_the_order_of_the_allocation(site: Site) -> None:
    """Host after host, with the numbers a rank needs."""
    shown = "$PMI_RANK/$PMI_SIZE $MPI_LOCALRANKID/$MPI_LOCALNRANKS $LSF_PM_TASKID $(pwd)"
    ran = lavarun(site, "sh", "-c", f'echo "{shown}"')
    here = site.directory
    assert sorted(ran.stdout.splitlines()) == [
        f"0/4 0/2 1 {here}", f"1/4 1/2 2 {here}", f"2/4 0/2 3 {here}", f"3/4 1/2 4 {here}",
    ]  # fmt: skip
    assert ran.returncode == 0
    assert [len(agent.attempts.handles) for agent in site.agents.values()] == [2, 2]


def test_fewer_ranks_than_slots(site: Site) -> None:
    """The first slots are used."""
    ran = lavarun(site, "-n", "3", "sh", "-c", "echo $PMI_RANK of $PMI_SIZE")
    assert sorted(ran.stdout.splitlines()) == ["0 of 3", "1 of 3", "2 of 3"]
    assert [len(agent.attempts.handles) for agent in site.agents.values()] == [2, 1]


def test_arguments_arrive_as_they_are(site: Site) -> None:
    """No shell in between."""
    assert lavarun(site, "-n", "1", "/bin/echo", "a  b", "$HOME", "-n", ";").stdout == "a  b $HOME -n ;\n"


def test_the_first_rank_gets_the_input(site: Site) -> None:
    """Standard input of the other ranks is empty."""
    ran = lavarun(site, "sh", "-c", 'echo "$PMI_RANK:$(cat)"', input="words")
    assert sorted(ran.stdout.splitlines()) == ["0:words", "1:", "2:", "3:"]


def test_a_failing_rank_ends_the_others(site: Site) -> None:
    """Its exit code is passed on, and the other ranks are ended, which would take 1000 s by themselves."""
    ran = lavarun(site, "sh", "-c", "test $PMI_RANK = 2 && exit 7; exec sleep 1000")
    assert ran.returncode == 7
    assert ran.stderr == "lavarun: rank 2 on n2 ended with exit code 7\n"


@pytest.mark.slow
def test_a_rank_that_will_not_end_is_left_to_its_agent(site: Site) -> None:
    """SIGTERM ignored: lavarun leaves after a few seconds and the agents kill."""
    ran = lavarun(
        site, "sh", "-c", "trap '' TERM; test $PMI_RANK = 0 && sleep 0.5 && kill -9 $$; while :; do sleep 1; done"
    )
    assert ran.returncode == 137
    assert "rank 0 on n1 was killed by signal 9" in ran.stderr
    deadline = time.monotonic() + 60
    pids = [handle.pid for agent in site.agents.values() for handle in agent.attempts.handles]
    while any(Path(f"/proc/{pid}/stat").exists() for pid in pids):
        assert time.monotonic() < deadline, "ranks are left"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["-n", "5", "true"], "lavarun: 5 ranks do not fit into the 4 slots of job <7>."),
        (["-n", "0", "true"], "lavarun: -n '0': expected a number of ranks, 1 or more."),
        (["-n", "many", "true"], "lavarun: -n 'many': expected a number of ranks, 1 or more."),
        (["-n", "2"], "lavarun: no program is specified."),
        (["-q", "true"], "lavarun: illegal option -- q"),
        (["-n"], "lavarun: option requires an argument -- n"),
    ],
)
def test_nonsense_is_answered_with_one_sentence(site: Site, argv: list[str], message: str) -> None:
    """No traceback, exit code 255."""
    ran = lavarun(site, *argv)
    assert (ran.returncode, ran.stdout) == (255, "")
    assert ran.stderr.splitlines()[0] == message


def test_a_program_that_does_not_exist_is_told(site: Site) -> None:
    """By the rank that could not start."""
    ran = lavarun(site, "/no/such/program")
    assert ran.returncode != 0
    assert "/no/such/program" in ran.stderr


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.parametrize("language", ["c", "python"])
def test_ranks_of_a_real_mpich_find_each_other(
    site: Site, mpich: environments.Mpi, language: str, tmp_path: Path
) -> None:
    """Without MPICH's own process manager, over both hosts."""
    if language == "c":
        argv = [str(mpich.compile(ROOT / "examples" / "ring.c", tmp_path / "ring"))]
    else:
        argv = [mpich.python, str(ROOT / "examples" / "heat2d.py"), "--cells", "24", "--time", "0.02"]
    ran = lavarun(site, *argv, environment=mpich.environment(AROUND))
    assert ran.returncode == 0, ran.stderr
    assert sorted(line.split(" on ")[0] for line in ran.stdout.splitlines() if line.startswith("rank ")) == [
        f"rank {rank} of 4" for rank in range(4)
    ]
    assert ("sum 6, expected 6" if language == "c" else "the result is right") in ran.stdout


@pytest.mark.mpi
@pytest.mark.slow
def test_an_abort_of_a_real_rank_ends_all(site: Site, mpich: environments.Mpi, tmp_path: Path) -> None:
    """MPI_Abort's code is the exit code, though the other ranks wait in a barrier."""
    program = tmp_path / "abort.py"
    program.write_text(
        "from mpi4py import MPI\nw = MPI.COMM_WORLD\nif w.rank == 3: w.Abort(23)\nw.Barrier()\nw.recv(source=3)\n"
    )
    ran = lavarun(site, mpich.python, str(program), environment=mpich.environment(AROUND))
    assert ran.returncode == 23, ran.stderr
    assert "rank 3 on n2 aborted" in ran.stderr


@pytest.mark.mpi
@pytest.mark.slow
def test_a_rank_that_leaves_without_finalizing_ends_all(site: Site, mpich: environments.Mpi, tmp_path: Path) -> None:
    """Even with exit code 0: the others would wait for ever."""
    program = tmp_path / "leave.py"
    program.write_text(
        "import os\nfrom mpi4py import MPI\nw = MPI.COMM_WORLD\nw.Barrier()\n"
        "if w.rank == 1: os._exit(0)\nw.recv(source=1)\n"
    )
    ran = lavarun(site, mpich.python, str(program), environment=mpich.environment(AROUND))
    assert ran.returncode != 0, ran.stderr
    # Either lavarun notices first, or a rank whose connection to it broke.
    assert re.search(
        r"^lavarun: rank (1 on n1 ended without finalizing MPI|\d on n\d aborted)", ran.stderr, re.MULTILINE
    )
