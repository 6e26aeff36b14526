"""A real master with a fake agent starts the same jobs in the order of the replay."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lavactl.personal import directory as files
from lavad.simulator.replay import policy_choice
from lavad.simulator.replay.replay import Replay
from lavad.simulator.replay.swf import TraceJob, read_trace
from lavad.simulator.replay.workload import Machine, of_trace
from protos import common_pb2, conffile, jobs_pb2
from tests.fakes.agent import pretending

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

TRACE = Path(__file__).parents[1] / "simulator" / "traces" / "eleven-jobs.swf"
SLOTS = 8
SCALES = (0.1, 0.2, 0.5, 1.0)  # seconds of ours for one of the trace's: of the first try, and of each further one
LATE = 2.0  # in the trace's seconds: by more than that the order may be another one
QUEUES = """\
Begin Queue
QUEUE_NAME = normal
{rule}
End Queue
"""
RULES = {"fcfs": "LAVA_STRICT_ORDER = Y", "easy": "BACKFILL = Y", "conservative": "LAVA_BACKFILL_DEPTH = 1000"}
PARAMS = "Begin Parameters\nDEFAULT_QUEUE = normal\nEnd Parameters\n"


@dataclass(frozen=True)
class Tried:
    """Order in which jobs were started, their starts in the replay, and how late the latest of all events was."""

    started: list[int]
    replayed: dict[int, float]
    late: float

    @property
    def is_right(self) -> bool:
        """True if the order is that of the replay."""
        return [self.replayed.get(job) for job in self.started] == sorted(self.replayed.values())


def a_cluster_directory(directory: Path, policy: str) -> Path:
    """As ``lavactl init`` makes it, with one queue.

    Its address is of this process and this policy alone: a port of 127.0.0.1 that is free now may be taken then.
    """
    number, rank = os.getpid(), list(RULES).index(policy)
    address = f"127.{64 + (number >> 14) % 128}.{(number >> 6) % 256}.{(number % 64) * 4 + rank}"
    listen, enrol = f"{address}:6951", f"{address}:6952"
    rule = RULES[policy]
    files.create(directory, files.Settings("replayed", listen, listen, enrol, "root"))
    (directory / "lsb.queues").write_text(QUEUES.format(rule=rule))
    (directory / "lsb.params").write_text(PARAMS)
    return directory


@contextlib.contextmanager
def a_master(directory: Path) -> Iterator[None]:
    """A real lavad, ended at the end."""
    with (directory / "log").open("wb") as log:
        environment = {name: value for name, value in os.environ.items() if name != "LSF_ENVDIR"}
        process = subprocess.Popen(
            [sys.executable, "-m", "lavad", "--conf", str(directory)], env=environment, stdout=log, stderr=log
        )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def a_spec(job: TraceJob, scale: float) -> jobs_pb2.JobSpec:
    """Specification as a user would submit it."""
    role = common_pb2.Role(tasks_min=job.processors, tasks_max=job.processors, slots_per_task=1)
    limit_s = round(job.estimate_s * scale)
    return jobs_pb2.JobSpec(command="pretend", cwd="/", submit_cwd="/", roles=[role], run_limit_s=limit_s)


async def really_started(directory: Path, jobs: tuple[TraceJob, ...], scale: float) -> tuple[list[int], float]:
    """The jobs' numbers in the order of their starts, and how late the latest of all events was, in trace seconds."""
    settings = conffile.read(directory / conffile.FILE_NAME)
    names, late_s = {}, 0.0
    async with pretending(directory, settings, "n00000", SLOTS) as agent:
        began = time.monotonic()
        for job in jobs:
            due = began + job.submit_s * scale
            await asyncio.sleep(due - time.monotonic())
            names[await agent.submit(a_spec(job, scale), job.run_s * scale)] = job.number
            late_s = max(late_s, time.monotonic() - due)
        async with asyncio.timeout(120):
            await agent.wait_for_starts(len(jobs))
        return [names[job] for job in agent.started], max(late_s, agent.late_s) / scale


def replayed(directory: Path, jobs: tuple[TraceJob, ...]) -> dict[int, float]:
    """Starts under the same configuration."""
    policy = policy_choice.rules("lava", None, directory, {})
    ran = Replay(of_trace(jobs, policy), Machine(1, SLOTS).facts(), policy).run()
    return {one.number: one.start_s for one in ran}


def tried(directory: Path, policies: Iterable[str], scale: float) -> dict[str, Tried]:
    """Masters with these policies, all at a time."""
    jobs = read_trace(TRACE).jobs
    places = {policy: a_cluster_directory(directory / policy, policy) for policy in policies}

    async def all_started() -> list[tuple[list[int], float]]:
        return await asyncio.gather(*(really_started(place, jobs, scale) for place in places.values()))

    with contextlib.ExitStack() as masters:
        for place in places.values():
            masters.enter_context(a_master(place))
        found = asyncio.run(all_started())
    return {
        policy: Tried(started, replayed(places[policy], jobs), late)
        for policy, (started, late) in zip(places, found, strict=True)
    }


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tried]:
    """The first try of all policies."""
    return tried(tmp_path_factory.mktemp("first"), RULES, SCALES[0])


@pytest.mark.parametrize("policy", RULES)
def test_the_order_of_starts_is_that_of_the_replay(policy: str, first: dict[str, Tried], tmp_path: Path) -> None:
    """Under each textbook policy; on a machine that is too busy to be on time it is tried again, and more slowly."""
    found = first[policy]
    for scale in SCALES[1:]:
        if found.is_right or found.late <= LATE:
            break
        found = tried(tmp_path / str(scale), (policy,), scale)[policy]
    assert found.is_right, found
