"""Master and agents die at fail points under a stream of short jobs: none lost, none twice, every exit code right.

A round arms one daemon with one seeded fail point, feeds jobs until it has died there, and starts it again, armed with
the next. Rounds continue until dispatch, run and unacknowledged exit have each been hit often enough, counted by the
last log lines of the processes that died.
"""

import os
import random
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.acceptance import markers
from tests.acceptance.personal import BIN, Cluster, a_cluster, wait_for

pytestmark = [pytest.mark.acceptance, pytest.mark.slow, pytest.mark.root]

HITS = int(os.environ.get("LAVA_CRASH_HITS", "1"))  # of each phase
SEED = int(os.environ.get("LAVA_CRASH_SEED", "20261121"))
BATCH = 8  # elements of one submission
DEATH_S = 25.0

DISPATCH, RUN, EXIT, OTHER = "dispatch", "run", "unacknowledged exit", "other"
COMMITS = ("master.before_commit", "master.after_commit", "master.before_reply")
# Where each phase can be hit, and up to which passing.
POINTS = {
    DISPATCH: (*COMMITS, "master.after_orders", "agent.after_journal", "agent.after_handover"),
    RUN: ("agent.after_start", "master.after_report", *COMMITS),
    EXIT: ("agent.before_report", "master.after_report", *COMMITS),
}
PASSINGS_MAX = {"master": 12, "agent": 4}
# Items in hand, by phase.
ABOUT = {
    DISPATCH: {"Place", "Launch", "stage", "launch", "AttemptDispatched", "HostStaged", "AttemptLaunched"},
    RUN: {"JobStarted", "started"},
    EXIT: {"JobFinished", "finished"},
}


def phases(point: str, about: str) -> set[str]:
    """Phases in progress where a process died."""
    if point in ("agent.after_start", "agent.before_report"):
        return {RUN if point == "agent.after_start" else EXIT}
    return {phase for phase, kinds in ABOUT.items() if kinds & set(about.split(","))} or {OTHER}


class Stream:
    """Jobs submitted batch after batch, whatever the state of the master; bsub itself retries over its restarts."""

    def __init__(self, cluster: Cluster, path: Path) -> None:
        self._cluster = cluster
        self._text = markers.script(path, "i * 7 % 4", "i % 7")
        self._started: list[subprocess.Popen[str]] = []

    def feed(self) -> None:
        """Submit one more batch, unless the last one is not accepted yet."""
        if self._started and self._started[-1].poll() is None:
            return
        words = ["bsub", "-J", f"batch{len(self._started)}[1-{BATCH}]", "-o", "/dev/null", self._text]
        self._started.append(
            subprocess.Popen(
                [str(BIN / words[0]), *words[1:]],
                env=self._cluster.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )

    def acknowledged(self) -> dict[str, int]:
        """Name -> job, of all batches for which bsub printed a job; each bsub has ended."""
        found = {}
        for number, process in enumerate(self._started):
            text, _ = process.communicate(timeout=120)
            if match := re.search(r"Job <(\d+)> is submitted", text):
                found[f"batch{number}"] = int(match[1])
            else:
                assert "Traceback" not in text
        return found

    @property
    def batches(self) -> int:
        """Number of batches tried."""
        return len(self._started)

    def stop(self) -> None:
        """End pending jobs."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


class Deaths:
    """Deaths by fail point and phase, read from the logs."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.by_point: Counter[tuple[str, str]] = Counter()
        self.by_phase: Counter[str] = Counter()
        self.missed = 0

    def _last_words(self, daemon: str) -> list[tuple[str, str]]:
        return re.findall(r"event=died point=(\S+) about=(\S+)", self._cluster.log(daemon))

    def round(self, daemon: str, point: str, stream: Stream) -> None:
        """Kill a daemon, start it to die at a point, and feed jobs until it has."""
        cluster, before = self._cluster, len(self._last_words(daemon))
        cluster.kill(daemon)
        wait_for(lambda: not cluster.is_running(daemon), 60, f"{daemon} to be gone")
        cluster.up_to_die(point)

        def is_dead() -> bool:
            stream.feed()
            return len(self._last_words(daemon)) > before

        try:
            wait_for(is_dead, DEATH_S, "the point", 0.2)
        except AssertionError:
            self.missed += 1  # the point was not passed that often; the daemon is killed in the next round
            return
        name, about = self._last_words(daemon)[-1]
        for phase in phases(name, about):
            self.by_point[phase, name] += 1
            self.by_phase[phase] += 1

    def table(self) -> str:
        """Number of hits of each phase and point."""
        rows = [f"{phase:<22}{point:<24}{count}" for (phase, point), count in sorted(self.by_point.items())]
        return "\n".join([*rows, f"{'not reached in time':<46}{self.missed}"])


def _choose(rng: random.Random, deaths: Deaths, hosts: list[str]) -> tuple[str, str]:
    """Daemon and point of the next round: for the phase that was hit least."""
    phase = min(POINTS, key=lambda phase: deaths.by_phase[phase])
    point = rng.choice(POINTS[phase])
    program = point.split(".")[0]
    daemon = "lavad" if program == "master" else f"agent-{rng.choice(hosts)}"
    return daemon, f"{point}:{rng.randint(1, PASSINGS_MAX[program])}"


def _check(cluster: Cluster, stream: Stream, path: Path) -> int:
    """Every acknowledged batch exists, none twice; elements ended once, with their own code. Returns their number."""
    known = stream.acknowledged()
    rows = [
        line.split() for line in cluster.run("bjobs", "-a", "-noheader", "-o", "jobid job_name").stdout.splitlines()
    ]
    jobs = {int(job): name.split("[")[0] for job, name in rows}
    assert len(set(jobs.values())) == len(jobs), "a batch was submitted twice"
    assert known.items() <= {name: job for job, name in jobs.items()}.items(), "an acknowledged batch is lost"
    starts = markers.starts(markers.read(path))
    twice = {key: count for key, count in starts.items() if count != 1}
    assert not twice, f"started more than once: {twice}"
    assert set(starts) == {(job, index) for job in jobs for index in range(1, BATCH + 1)}
    expected = {index: ("EXIT" if index % 7 else "DONE", index % 7) for index in range(1, BATCH + 1)}
    for job in jobs:
        assert cluster.states(job) == expected, cluster.history(job)
        _check_history(cluster.history(job))
    return len(starts)


def _check_history(text: str) -> None:
    for story in text.split("-" * 78):
        assert story.count(": Starting (Pid") == 1, story
        assert len(re.findall(r": (Done successfully|Exited)", story)) == 1, story


def _unended(cluster: Cluster) -> bool:
    done = cluster.run("bjobs", "-noheader", "-o", "jobid")
    return done.returncode != 0 or bool(done.stdout.strip())


def test_death_at_every_stage_of_a_job_loses_and_repeats_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Dispatch, run and unacknowledged exit are each hit, in the master or an agent; jobs and bhist come out exact."""
    rng = random.Random(SEED)
    path = tmp_path / "markers"
    with a_cluster(tmp_path / "cluster", 2, 4) as cluster:
        hosts, stream, deaths = cluster.hosts(), Stream(cluster, path), Deaths(cluster)
        try:
            for _ in range(8 * HITS + 8):
                if min(deaths.by_phase[phase] for phase in POINTS) >= HITS:
                    break
                deaths.round(*_choose(rng, deaths, hosts), stream)
            cluster.kill("lavad")
            for host in hosts:
                cluster.kill(f"agent-{host}")
            cluster.up()
            stream.acknowledged()
            wait_for(lambda: not _unended(cluster), 240, "all jobs to end", 0.5)
            elements = _check(cluster, stream, path)
        finally:
            stream.stop()
    with capsys.disabled():
        print(f"\n{deaths.table()}\n{stream.batches} batches, {elements} jobs: 0 lost, 0 twice, all exit codes right")
    assert min(deaths.by_phase[phase] for phase in POINTS) >= HITS
