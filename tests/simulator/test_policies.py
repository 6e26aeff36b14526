"""A replay under a cluster's own rules: its queues, their order, preemption."""

from pathlib import Path

import pytest

from lavad.core.model.policy import Policy
from lavad.core.model.rules.queues import Queue
from lavad.simulator.replay import policy_choice
from lavad.simulator.replay.replay import Replay, StuckError
from lavad.simulator.replay.report import Ran
from lavad.simulator.replay.swf import TraceJob
from lavad.simulator.replay.workload import Machine, of_trace

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
    """Results of the jobs on four slots of one host."""
    return {one.number: one for one in Replay(of_trace(jobs, policy), Machine(1, 4).facts(), policy).run()}


def configured(directory: Path, more: str = "", parameters: str = "") -> Policy:
    """Two queues; ``more`` is added to the second."""
    (directory / "lsb.queues").write_text(QUEUES.format(more=more))
    (directory / "lsb.params").write_text(PARAMS.replace("End", f"{parameters}\nEnd"))
    return policy_choice.rules("lava", None, directory, {})


def test_a_job_goes_to_the_queue_of_its_number(tmp_path: Path) -> None:
    """Queue 2 is served first; a job without a queue of its number goes to the default queue."""
    policy = configured(tmp_path)
    first = TraceJob(1, 0, 10, 4, 10)
    waiting = [TraceJob(2, 1, 10, 4, 10, queue=1), TraceJob(3, 2, 10, 4, 10, queue=2), TraceJob(4, 3, 10, 4, 10)]
    starts = {number: one.start_s for number, one in ran([first, *waiting], policy).items()}
    assert starts == {1: 0, 3: 10, 2: 20, 4: 30}


def test_a_job_that_is_stopped_for_another_ends_later(tmp_path: Path) -> None:
    """Its wait is all time in which it was eligible and did not run."""
    policy = configured(tmp_path, "PREEMPTION = PREEMPTIVE[queue1]")
    found = ran([TraceJob(1, 0, 10, 4, 10, queue=1), TraceJob(2, 4, 5, 4, 5, queue=2)], policy)
    assert (found[2].start_s, found[2].end_s) == (4, 9)
    assert (found[1].start_s, found[1].end_s, found[1].wait_s) == (0, 15, 5)


def test_jobs_that_no_queue_takes_are_counted(tmp_path: Path) -> None:
    """With the reason shown to a user."""
    policy = configured(tmp_path, "RUNLIMIT = 1")
    jobs = [TraceJob(1, 0, 10, 1, 10, queue=2), TraceJob(2, 0, 100, 1, 100, queue=2)]
    replay = Replay(of_trace(jobs, policy), Machine(1, 4).facts(), policy)
    assert [one.number for one in replay.run()] == [1]
    assert replay.refused == {"RUNLIMIT: Cannot exceed queue's hard limit(s)": 1}


def test_what_may_not_wait_yet_is_submitted_again(tmp_path: Path) -> None:
    """As by bsub, every minute; its wait is counted from the first time."""
    policy = configured(tmp_path, parameters="MAX_PEND_JOBS = 1")
    found = ran([TraceJob(number, number, 100, 4, 100) for number in (1, 2, 3)], policy)
    assert [(one.submit_s, one.start_s) for one in found.values()] == [(1, 1), (2, 101), (3, 201)]
    assert found[3].wait_s == 198


def test_what_may_never_wait_is_told(tmp_path: Path) -> None:
    """Two jobs that cannot start keep others from being submitted: all of them are left."""
    policy = configured(tmp_path, "DISPATCH_WINDOW = 3:00-3:01\nHOSTS = elsewhere", "MAX_PEND_JOBS = 2")
    with pytest.raises(StuckError, match="5 jobs can never start"):
        ran([TraceJob(number, number, 10, 1, 10, queue=2) for number in range(5)], policy)


def test_each_run_of_a_trace_is_the_last_of_its_job(tmp_path: Path) -> None:
    """A trace has no exit codes, so REQUEUE_EXIT_VALUES has no effect."""
    policy = configured(tmp_path, "REQUEUE_EXIT_VALUES = all\nMAX_JOB_REQUEUE = 3")
    found = ran([TraceJob(1, 0, 10, 4, 10, queue=2), TraceJob(2, 0, 10, 4, 10, queue=2)], policy)
    assert [one.end_s for one in found.values()] == [10, 20]


def test_a_host_that_has_rested_takes_the_next_job(tmp_path: Path) -> None:
    """At the end of its accept interval, without any other event."""
    policy = configured(tmp_path, "JOB_ACCEPT_INTERVAL = 2", "MBD_SLEEP_TIME = 10")
    found = ran([TraceJob(number, 0, 100, 1, 100, queue=2) for number in (1, 2, 3)], policy)
    assert [one.start_s for one in found.values()] == [0, 20, 40]


def test_each_slot_has_a_processor(tmp_path: Path) -> None:
    """Limits for each processor of a host count them."""
    policy = configured(tmp_path, "PJOB_LIMIT = 1")
    found = ran([TraceJob(1, 0, 10, 4, 10, queue=2)], policy)
    assert found[1].start_s == 0


def test_a_replay_that_can_never_end_says_so() -> None:
    """Instead of waiting for ever."""
    policy = Policy(queues=(Queue("q", active=False),), default_queue="q")
    with pytest.raises(
        StuckError, match=r"1 job can never start .* policy: job 1, of 1 slots: The queue is inactivated"
    ):
        ran([TraceJob(1, 0, 10, 1, 10)], policy)


def test_the_first_jobs_that_can_never_start_are_named_with_the_reason(tmp_path: Path) -> None:
    """A machine too small for rules that were written for another one."""
    (tmp_path / "lsb.hosts").write_text("Begin Host\nHOST_NAME MXJ\ndefault 2\nEnd Host\n")
    policy = configured(tmp_path)
    jobs = [TraceJob(number, number, 10, 1 + number % 2 * 4, 10) for number in range(1, 11)]
    with pytest.raises(StuckError) as stuck:
        ran(jobs, policy)
    small = "Not enough job slot(s) (it needs 5 slots; the hosts it could use have 2 in all, so that it can't start)"
    assert str(stuck.value) == (
        "5 jobs can never start on this machine under this policy: "
        f"job 1, of 5 slots: {small}; job 3, of 5 slots: {small}; job 5, of 5 slots: {small}; and 2 more"
    )


class Bounded(Replay):
    """Fails where another one would go on for ever."""

    def _schedule(self, now: float) -> None:
        assert now < 60 * 86_400, "nothing has started for weeks, and still it looks for what might"
        super()._schedule(now)


def test_reservations_that_come_and_go_keep_no_replay_alive(tmp_path: Path) -> None:
    """Jobs wider than the cluster save slots up in turn."""
    policy = configured(tmp_path, "SLOT_RESERVE = MAX_RESERVE_TIME[10]")
    jobs = [TraceJob(number, 0, 10, width, 10, queue=2) for number, width in enumerate((4, 3, 1, 2))]
    with pytest.raises(StuckError, match="jobs can never start"):
        Bounded(of_trace(jobs, policy), Machine(1, 2).facts(), policy).run()


def test_windows_count_after_a_long_job_too(tmp_path: Path) -> None:
    """Weeks may pass without a start; a job that waits for a window still gets it."""
    policy = configured(tmp_path, "DISPATCH_WINDOW = 3:00-4:00")
    month_s = 30 * 86_400
    found = ran([TraceJob(1, 0, month_s, 4, month_s), TraceJob(2, 5, 10, 4, 10, queue=2)], policy)
    assert month_s <= found[2].start_s < month_s + 86_400


def test_the_environment_names_the_cluster(tmp_path: Path) -> None:
    """Without --conf; without either the built-in rules apply."""
    configured(tmp_path)
    named = policy_choice.configured(None, {"LSF_ENVDIR": str(tmp_path)})
    assert {queue.name for queue in named.queues} >= {"queue1", "queue2"}
    assert policy_choice.configured(None, {}) == Policy()
