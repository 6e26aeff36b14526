"""Hosts cut off from the network while serial and parallel jobs run there: no job is ended, none runs twice.

LAVA_NETWORK_SECONDS are the durations of a cut (``5,20,60,300``), LAVA_NETWORK_ROUNDS the number of cuts of each kind
of host for each duration: as the first host of a parallel job, and as another one. LAVA_NETWORK_LAUNCHERS starts the
tasks of parallel jobs, in turns: ``blaunch``, or the mpirun of an MPI (``openmpi4,mpich4``). Jobs write a line every
half second with O_APPEND, with their attempt; the run times are read from these.
"""

import itertools
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.acceptance.personal import Cluster, a_cluster, wait_for
from tests.mpi import environments

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

ROUNDS = int(os.environ.get("LAVA_NETWORK_ROUNDS", "1"))
SECONDS = [float(word) for word in os.environ.get("LAVA_NETWORK_SECONDS", "6").split(",")]
LAUNCHERS = os.environ.get("LAVA_NETWORK_LAUNCHERS", "blaunch").split(",")
PAIRS = min(ROUNDS, 5)  # hosts cut off at a time
SETTINGS = {
    "LAVA_SILENT_AFTER": "3",
    "LAVA_HEARTBEAT": "1",
    "LAVA_TERMINATE_INTERVAL": "1",
    "LAVA_TASK_PATIENCE": "900",
}
LEASE_S = 12.0
MARK = 'printf "%s %s %s\\n" "$LAVA_JOB_KEY" "$(hostname)" "$(date +%s.%N)"'
LOOP = f"while [ ! -e {{stop}} ]; do {MARK} >> {{marks}}; sleep 0.5; done"


class Mark(NamedTuple):
    """One line of a job."""

    job: int
    attempt: int
    host: str
    at: float


class Cuts:
    """A cluster of pairs of hosts: on each host a serial job, on each pair a parallel one that begins on its first."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster = cluster
        self.marks_file, self.stop = directory / "marks", directory / "stop"
        self.marks_file.touch()
        self.marks_file.chmod(0o666)
        loop = LOOP.format(stop=self.stop, marks=self.marks_file)
        self.script = directory / "loop"
        self.script.write_text(f"#!/bin/sh\n{loop}\n")
        self.script.chmod(0o755)
        self.pairs = list(zip(*[iter(cluster.hosts())] * 2, strict=True))

    def begin(self, *options: str) -> list[int]:
        """Submit the jobs, and wait until all of their parts write."""
        jobs = []
        for pair, launcher in zip(self.pairs, itertools.cycle(LAUNCHERS), strict=False):
            jobs += [self.cluster.submit("-m", host, "-o", "/dev/null", *options, str(self.script)) for host in pair]
            jobs.append(self._begin_parallel(pair, launcher, options))
        wait_for(lambda: len({mark[:3] for mark in self.marks()}) == 4 * len(self.pairs), 120, "all parts to write")
        return jobs

    def _begin_parallel(self, pair: tuple[str, str], launcher: str, options: tuple[str, ...]) -> int:
        """One task on each host of the pair."""
        where = ("-n", "2", "-R", "span[ptile=1]", "-m", f"{pair[0]}! {pair[1]}", *options, "-o", "/dev/null")
        if launcher == "blaunch":
            return self.cluster.submit(*where, f"blaunch {self.script}")
        variables = environments.mpi(launcher).environment(self.cluster.environment)
        return self.cluster.with_environment(**variables).submit(*where, f"mpirun {self.script}")

    def marks(self) -> list[Mark]:
        """Lines that jobs have written; an incomplete line is left out."""
        found = []
        for line in self.marks_file.read_text().splitlines():
            words = line.split()
            if len(words) == 3 and words[2].count(".") == 1:
                job, _, attempt = words[0].split(".")
                found.append(Mark(int(job), int(attempt), words[1], float(words[2])))
        return found

    def states(self, jobs: list[int]) -> list[str]:
        """States of the jobs, in their order."""
        done = self.cluster.run("bjobs", "-a", "-noheader", "-o", "jobid stat", *map(str, jobs))
        known = dict(line.split() for line in done.stdout.splitlines())
        return [known.get(str(job), "") for job in jobs]

    def all_become_running(self, jobs: list[int], limit_s: float) -> None:
        """Wait until all run; otherwise the histories of the jobs that do not."""
        try:
            wait_for(lambda: set(self.states(jobs)) == {"RUN"}, limit_s, "all jobs to run")
        except AssertionError as error:
            rest = [job for job, state in zip(jobs, self.states(jobs), strict=True) if state != "RUN"]
            raise AssertionError("\n".join(self.cluster.history(job) for job in rest)) from error

    def link(self, host: str, state: str) -> None:
        """A host's only link goes down or up."""
        enter = ["nsenter", "-t", str(self.cluster.pid(f"agent-{host}")), "-n", "ip", "link", "set", "eth0", state]
        subprocess.run(enter, check=True, timeout=60)

    def cut(self, hosts: list[str], seconds: float) -> None:
        """Cut these hosts off for this time."""
        for host in hosts:
            self.link(host, "down")
        time.sleep(seconds)
        for host in hosts:
            self.link(host, "up")


@pytest.fixture(scope="module")
def cuts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cuts]:
    """The cluster, in a directory that jobs can write to."""
    if shutil.which("ip") is None or shutil.which("nsenter") is None:
        pytest.skip("no programs ip and nsenter to cut a host's network with")
    directory = tmp_path_factory.mktemp("cuts")
    with a_cluster(directory / "cluster", 2 * PAIRS, 3, **SETTINGS) as cluster:
        yield Cuts(cluster, directory)


def test_hosts_are_cut_off_and_nobody_is_ended(cuts: Cuts) -> None:
    """Serial and parallel jobs of a silent host are UNKWN at most; all of them run on, in their first attempt."""
    jobs = cuts.begin()
    figures = []
    for seconds in SECONDS:
        for number in range(max(2, 2 * ROUNDS // PAIRS)):
            cuts.cut([pair[number % 2] for pair in cuts.pairs], seconds)
            cuts.all_become_running(jobs, 60)
        figures.append(f"{seconds:g} s: {max(2, 2 * ROUNDS // PAIRS) * PAIRS} cuts")
    since = time.time()
    wait_for(lambda: len({one[:3] for one in cuts.marks() if one.at > since}) == 4 * PAIRS, 60, "all parts to write")
    cuts.stop.touch()
    wait_for(lambda: set(cuts.states(jobs)) <= {"DONE", "EXIT"}, 60, "all jobs to end")
    ended = [job for job, state in zip(jobs, cuts.states(jobs), strict=True) if state != "DONE"]
    twice = {one.job for one in cuts.marks() if one.attempt != 1}
    print(f"\n{', '.join(figures)}; {len(jobs)} jobs: {len(ended)} ended, {len(twice)} twice")
    assert (ended, twice) == ([], set()), "\n".join(cuts.cluster.history(job) for job in [*ended, *twice])
    log = cuts.cluster.log("lavad")
    assert "level=WARNING part=lavad.hosts host=silent" in log
    assert "level=WARNING part=lavad.hosts host=back" in log
    cuts.stop.unlink()
    cuts.marks_file.write_text("")


def test_with_fencing_exactly_what_is_past_its_lease_is_ended(cuts: Cuts) -> None:
    """A cut shorter than the lease ends no job; a longer one ends all of the host, whose reruns begin after that."""
    cluster = cuts.cluster
    cluster.configure(LAVA_FENCE_AFTER=str(int(LEASE_S)))
    cluster.kill("lavad")
    wait_for(lambda: not cluster.is_running("lavad"), 60, "the master to end")
    cluster.up()
    jobs = cuts.begin("-r")
    cuts.all_become_running(jobs, 60)
    others = [pair[1] for pair in cuts.pairs]
    cuts.cut(others, 4)  # noticed as silence, and back well before the end of the lease
    cuts.all_become_running(jobs, 60)
    assert {one.attempt for one in cuts.marks()} == {1}
    for host in others:
        cuts.link(host, "down")
    cut_at = time.time()
    wait_for(lambda: max(one.at for one in cuts.marks() if one.host in others) < time.time() - 4, 60, "them to end")
    last = max(one.at for one in cuts.marks() if one.host in others)
    wait_for(lambda: "PEND" in cuts.states(jobs), 60, "what may run again to wait")
    for host in others:
        cuts.link(host, "up")
    cuts.all_become_running(jobs, 120)
    wait_for(lambda: len({one[:3] for one in cuts.marks() if one.attempt > 1}) >= 3 * PAIRS, 60, "reruns to write")
    marks = cuts.marks()
    again = {one.job for one in marks if one.attempt > 1}
    first = [job for number, job in enumerate(jobs) if number % 3 == 0]  # serial, on hosts that were not cut off
    print(f"\nfenced {last - cut_at:.1f} s after the cut; {len(again)} of {len(jobs)} jobs ran again")
    assert again == {*jobs} - {*first}
    assert last - cut_at < LEASE_S + 10
    for job in again:
        ends = max(one.at for one in marks if one.job == job and one.attempt == 1)
        begins = min(one.at for one in marks if one.job == job and one.attempt > 1)
        assert begins > ends, f"job {job} ran twice at a time: {begins} {ends}"
    cuts.stop.touch()
    wait_for(lambda: set(cuts.states(jobs)) <= {"DONE", "EXIT"}, 60, "all jobs to end")
    assert set(cuts.states(jobs)) == {"DONE"}
