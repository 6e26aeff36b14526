"""A real master with a fake agent starts the same jobs in the order of the replay."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
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
SCALE = 0.1  # seconds of ours for one of the trace's
LATE_S = 2.0 * SCALE  # reproduces the trace's start order a little more often
TRIES = 3
QUEUES = """\
Begin Queue
QUEUE_NAME = normal
{rule}
End Queue
"""
RULES = {"fcfs": "LAVA_STRICT_ORDER = Y", "easy": "BACKFILL = Y", "conservative": "LAVA_BACKFILL_DEPTH = 1000"}
PARAMS = "Begin Parameters\nDEFAULT_QUEUE = normal\nEnd Parameters\n"


def a_cluster_directory(directory: Path, rule: str) -> Path:
    """As ``lavactl init`` makes it, with one queue."""
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        listen, enrol = (f"127.0.0.1:{door.getsockname()[1]}" for door in (one, other))
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
            process.wait(30)


def a_spec(job: TraceJob) -> jobs_pb2.JobSpec:
    """Specification as a user would submit it."""
    role = common_pb2.Role(tasks_min=job.processors, tasks_max=job.processors, slots_per_task=1)
    limit_s = round(job.estimate_s * SCALE)
    return jobs_pb2.JobSpec(command="pretend", cwd="/", submit_cwd="/", roles=[role], run_limit_s=limit_s)


async def really_started(directory: Path, jobs: tuple[TraceJob, ...]) -> tuple[list[int], float]:
    """The jobs' numbers in the order of their starts, and how late the latest of all events was."""
    settings = conffile.read(directory / conffile.FILE_NAME)
    names, late_s = {}, 0.0
    async with pretending(directory, settings, "n00000", SLOTS) as agent:
        began = time.monotonic()
        for job in jobs:
            due = began + job.submit_s * SCALE
            await asyncio.sleep(due - time.monotonic())
            names[await agent.submit(a_spec(job), job.run_s * SCALE)] = job.number
            late_s = max(late_s, time.monotonic() - due)
        async with asyncio.timeout(60):
            await agent.wait_for_starts(len(jobs))
        return [names[job] for job in agent.started], max(late_s, agent.late_s)


def replayed(directory: Path, jobs: tuple[TraceJob, ...]) -> dict[int, float]:
    """Starts under the same configuration."""
    policy = policy_choice.rules("lava", None, directory, {})
    ran = Replay(of_trace(jobs, policy), Machine(1, SLOTS).facts(), policy).run()
    return {one.number: one.start_s for one in ran}


@pytest.mark.parametrize("policy", RULES)
def test_the_order_of_starts_is_that_of_the_replay(policy: str, tmp_path: Path) -> None:
    """Under each textbook policy; on a machine that is too busy to be on time it is tried again."""
    jobs = read_trace(TRACE).jobs
    for number in range(TRIES):
        directory = a_cluster_directory(tmp_path / f"{number}", RULES[policy])
        with a_master(directory):
            started, late_s = asyncio.run(really_started(directory, jobs))
        starts = replayed(directory, jobs)
        if late_s <= LATE_S:
            break
    assert sorted(started) == sorted(starts)
    assert [starts[job] for job in started] == sorted(starts.values()), f"{started}, {late_s:.2f} s late"
