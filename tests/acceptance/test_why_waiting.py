"""Typical pending reasons, as docs/howto/why-does-my-job-wait.md shows them: the printed advice helps when it is typed.

The page is written by this test: LAVA_REWRITE_DOCS=1 rewrites it, and the review is the change.
"""

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "why-does-my-job-wait.md"
BEGIN = "<!-- written by tests/acceptance/test_why_waiting.py -->"
REMEDY = re.compile(r"(?:Would start now|Could start) after: (.*);")
STARTED = {"RUN", "DONE"}
SLEEP = "sleep 60"


@dataclass(frozen=True)
class Situation:
    """``before`` are commands that bring it about, with {} for the number of the first job they submit; ``job`` is the
    user's submission; ``remedy`` is the advice that the test follows; ``after`` undoes administrators' commands;
    ``where`` is the page's note on prerequisites.
    """

    title: str
    job: str
    remedy: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    index: int = 0
    where: str = ""


RULES = {
    "lsb.params": "Begin Parameters\nDEFAULT_QUEUE = normal\nEnd Parameters\n",
    "lsb.queues": "".join(
        f"Begin Queue\nQUEUE_NAME = {name}\nPRIORITY = {priority}\nEXCLUSIVE = Y\n{more}End Queue\n"
        for name, priority, more in (
            ("priority", 43, ""),
            ("short", 35, "RUNLIMIT = 15\n"),
            ("normal", 30, "BACKFILL = Y\n"),
            ("idle", 20, ""),
        )
    ),
}

SITUATIONS = (
    Situation(
        "It asks for more memory than any host has",
        f'bsub -R "rusage[mem=99000000]" {SLEEP}',
        'bmod -R "rusage[mem=MIB]" {}',
    ),
    Situation(
        "It wants all its slots on one host, and no host is that large",
        f'bsub -n 6 -R "span[hosts=1]" {SLEEP}',
        "bmod -Rn {}",
    ),
    Situation(
        "The host it names is full",
        f"bsub -m lava1 {SLEEP}",
        "bmod -mn {}",
        before=(f"bsub -n 4 -m lava1 {SLEEP}",),
    ),
    Situation(
        "No host meets its condition",
        f'bsub -R "select[maxmem > 99000000]" {SLEEP}',
        "bmod -Rn {}",
    ),
    Situation(
        "It wants hosts of its own, and others are at work everywhere",
        f"bsub -x {SLEEP}",
        "bmod -xn {}",
        before=(f'bsub -n 2 -R "span[ptile=1]" {SLEEP}',),
    ),
    Situation(
        "It asks for more GPUs than a host has",
        f"bsub -gpu num=3 {SLEEP}",
        'bmod -gpu "num=2" {}',
    ),
    Situation(
        "It asks for more slots than are free",
        f"bsub -n 7 {SLEEP}",
        "bmod -n 6 {}",
        before=(f"bsub -n 2 {SLEEP}",),
    ),
    Situation(
        "It would delay a job that goes before it",
        f"bsub -W 120 {SLEEP}",
        "bmod -W 59 {}",
        before=(f"bsub -n 6 -W 60 {SLEEP}", f"bsub -n 8 -W 60 {SLEEP}"),
        where="In a queue that backfills (`BACKFILL = Y` in lsb.queues), on two hosts with four slots each:",
    ),
    Situation("It was submitted on hold", f"bsub -H {SLEEP}", "bresume {}"),
    Situation(
        "Its queue starts nothing",
        f"bsub -q idle {SLEEP}",
        "bswitch priority {}",
        before=("badmin qinact idle",),
        after=("badmin qact idle",),
    ),
    Situation(
        "The job that it depends on has failed",
        f'bsub -w "done({{}})" {SLEEP}',
        "bmod -wn {}",
        before=("bsub -K 'exit 3'",),
    ),
    Situation("Its time has not come", f"bsub -b 12:31:23:59 {SLEEP}", "bmod -bn {}"),
    Situation(
        "Its array runs as many elements as it may",
        f'bsub -J "sweep[1-3]%1" {SLEEP}',
        'bmod -J "%2" {}',
        index=2,
    ),
    Situation(
        "The hosts are closed",
        f"bsub {SLEEP}",
        "badmin hopen lava1",
        before=("badmin hclose lava1 lava2",),
        after=("badmin hopen all",),
    ),
)


@pytest.fixture(scope="module")
def cluster(open_directory: Path) -> Iterator[Cluster]:
    """Two hosts, lava1 and lava2, with four slots and two simulated GPUs each."""
    options = ("--simulate-gpus", "2")
    with a_cluster(open_directory / "W", 2, 4, *options, lsf_files=RULES, LAVA_TERMINATE_INTERVAL="1") as made:
        yield made


def _type(cluster: Cluster, command: str) -> str:
    """Type a line as a user does; its output."""
    done = cluster.run(*shlex.split(command))
    return done.stdout + done.stderr


def _submitted(said: str) -> int:
    found = re.search(r"Job <(\d+)> is submitted", said)
    assert found, said
    return int(found[1])


def _outlook(cluster: Cluster, name: str) -> list[str]:
    """The lines of bjobs -l from the reasons to the end of the outlook, without dates and sizes; none without any."""
    lines = _type(cluster, f"bjobs -l {name}").splitlines()
    if " PENDING REASONS:" not in lines:
        return []
    begin = lines.index(" PENDING REASONS:")
    end = lines.index(" SCHEDULING PARAMETERS:")
    text = "\n".join(lines[begin:end]).rstrip()
    text = re.sub(r"\d+(\.\d)? GB", "N GB", re.sub(r"mem=\d+", "mem=MIB", text))
    text = re.sub(r"([A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d", "MON DD HH:MM", text)
    return re.sub(r"\(Job: \d+", "(Job: 6", text).splitlines()


def _clear(cluster: Cluster, situation: Situation) -> None:
    for command in situation.after:
        _type(cluster, command)
    _type(cluster, "bkill -r 0")
    wait_for(lambda: _taken(cluster) == 0, 60, "all hosts to be free again")


def _taken(cluster: Cluster) -> int:
    return sum(map(int, cluster.run("bhosts", "-noheader", "-o", "njobs").stdout.split()))


def _bring_about(cluster: Cluster, situation: Situation) -> int:
    """Number of the pending job."""
    first = 0
    for command in situation.before:
        said = _type(cluster, command)
        first = first or (_submitted(said) if command.startswith("bsub") else 0)
        if command.startswith("bsub") and SLEEP in command:
            _wait_until_running(cluster, first)
    return _submitted(_type(cluster, situation.job.replace("{}", str(first))))


def _wait_until_running(cluster: Cluster, job: int) -> None:
    wait_for(lambda: cluster.states(job)[0][0] == "RUN", 60, "the hosts to be in use")


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.title)
def test_the_advice_of_a_waiting_job_helps(cluster: Cluster, situation: Situation) -> None:
    """The printed command is typed unchanged, and the job starts."""
    try:
        job = _bring_about(cluster, situation)
        name = f"{job}[{situation.index}]" if situation.index else str(job)
        lines: list[str] = []

        def advised() -> bool:
            lines[:] = [re.sub(rf"(after: .*)\b{job}\b", r"\g<1>7", line) for line in _outlook(cluster, name)]
            return any(REMEDY.search(line) for line in lines) and _is_on_the_page(situation, lines)

        try:
            wait_for(advised, 60, f"advice for {situation.title!r}")
        except AssertionError as error:
            raise AssertionError(f"{error}:\n" + "\n".join(lines)) from error
        raw = _type(cluster, f"bjobs -l {name}")
        wanted = re.escape(situation.remedy.replace("{}", name)).replace("MIB", r"\d+").replace(r"7\[", rf"{job}\[")
        remedy = next(found for found in REMEDY.findall(raw) if re.fullmatch(_of(wanted, job), found))
        said = _type(cluster, remedy)
        wait_for(lambda: cluster.states(job)[situation.index][0] in STARTED, 60, f"the job to start after {said!r}")
        assert cluster.states(job)[situation.index][0] in STARTED, "it started, and was not sent back"
    finally:
        _clear(cluster, situation)


def _of(wanted: str, job: int) -> str:
    """The remedy's pattern; an array is named as a whole where its limit is changed."""
    return wanted.replace(r"\[2\]", "") if "-J" in wanted else wanted


# -- the page ----------------------------------------------------------------------------------------------------


def _block(situation: Situation, lines: list[str]) -> str:
    commands = [*situation.before, situation.job.replace("{}", "6")]
    typed = "".join(f"$ {command}\n" for command in commands)
    where = f"{situation.where}\n\n" if situation.where else ""
    return f"### {situation.title}\n\n{where}```console\n{typed}$ bjobs -l 7\n...\n" + "\n".join(lines) + "\n...\n```\n"


def _is_on_the_page(situation: Situation, lines: list[str]) -> bool:
    """Compare the page with the output just printed, of which the first may be of a pass before the last event."""
    block = _block(situation, lines)
    page = PAGE.read_text(encoding="utf-8")
    if os.environ.get("LAVA_REWRITE_DOCS"):
        head, _, tail = page.partition(BEGIN)
        kept = [part for part in re.split(r"(?m)^(?=### )", tail) if part.strip()]
        others = {part.splitlines()[0]: part.strip() + "\n" for part in kept}
        others[f"### {situation.title}"] = block
        ordered = [others[f"### {one.title}"] for one in SITUATIONS if f"### {one.title}" in others]
        PAGE.write_text(f"{head}{BEGIN}\n\n" + "\n".join(ordered), encoding="utf-8")
        return True
    return block in page
