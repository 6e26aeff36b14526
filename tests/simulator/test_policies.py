"""A replay under a cluster's own rules: its queues, their order, jobs that are stopped for others and go on."""

from pathlib import Path

import pytest

from lavad.core.policy import Policy, Queue
from lavad.simulator import rules
from lavad.simulator.replay import Replay, StuckError
from lavad.simulator.report import Ran
from lavad.simulator.swf import TraceJob
from lavad.simulator.workload import Machine, of_trace

QUEUES = """\
Begin Queue
QUEUE_NAME = queue1
PRIORITY = 10
End Queue
Begin Queue
QUEUE_NAME = queue2
PRIORITY = 20
{more}
End Queue
"""
PARAMS = "Begin Parameters\nDEFAULT_QUEUE = queue1\nEnd Parameters\n"


def ran(jobs: list[TraceJob], policy: Policy) -> dict[int, Ran]:
    """What became of the jobs on four slots of one host."""
    return {one.number: one for one in Replay(of_trace(jobs, policy), Machine(1, 4).facts(), policy).run()}


def configured(directory: Path, more: str = "") -> Policy:
    """Two queues; ``more`` is said of the second."""
    (directory / "lsb.queues").write_text(QUEUES.format(more=more))
    (directory / "lsb.params").write_text(PARAMS)
    return rules.rules("lava", None, directory, {})


def test_a_job_goes_to_the_queue_of_its_number(tmp_path: Path) -> None:
    """Queue 2 is served first; what is in no queue of that number goes to the default queue."""
    policy = configured(tmp_path)
    first = TraceJob(1, 0, 10, 4, 10)
    waiting = [TraceJob(2, 1, 10, 4, 10, queue=1), TraceJob(3, 2, 10, 4, 10, queue=2), TraceJob(4, 3, 10, 4, 10)]
    starts = {number: one.start_s for number, one in ran([first, *waiting], policy).items()}
    assert starts == {1: 0, 3: 10, 2: 20, 4: 30}


def test_a_job_that_is_stopped_for_another_ends_later(tmp_path: Path) -> None:
    """Its wait is all the time in which it could have run and did not."""
    policy = configured(tmp_path, "PREEMPTION = PREEMPTIVE[queue1]")
    found = ran([TraceJob(1, 0, 10, 4, 10, queue=1), TraceJob(2, 4, 5, 4, 5, queue=2)], policy)
    assert (found[2].start_s, found[2].end_s) == (4, 9)
    assert (found[1].start_s, found[1].end_s, found[1].wait_s) == (0, 15, 5)


def test_jobs_that_no_queue_takes_are_counted(tmp_path: Path) -> None:
    """With the reason that a user would have been told."""
    policy = configured(tmp_path, "RUNLIMIT = 1")
    jobs = [TraceJob(1, 0, 10, 1, 10, queue=2), TraceJob(2, 0, 100, 1, 100, queue=2)]
    replay = Replay(of_trace(jobs, policy), Machine(1, 4).facts(), policy)
    assert [one.number for one in replay.run()] == [1]
    assert replay.refused == {"RUNLIMIT: Cannot exceed queue's hard limit(s)": 1}


def test_a_replay_that_can_never_end_says_so() -> None:
    """Instead of waiting for ever."""
    policy = Policy(queues=(Queue("q", active=False),), default_queue="q")
    with pytest.raises(StuckError, match="1 jobs can never start"):
        ran([TraceJob(1, 0, 10, 1, 10)], policy)


def test_the_environment_names_the_cluster(tmp_path: Path) -> None:
    """Without --conf; without anything the built-in rules hold."""
    configured(tmp_path)
    named = rules.configured(None, {"LSF_ENVDIR": str(tmp_path)})
    assert {queue.name for queue in named.queues} >= {"queue1", "queue2"}
    assert rules.configured(None, {}) == Policy()
