"""bwait: the condition reaches the master, is asked again after a silence, and decides the exit code (lsf.md 1.9)."""

import pytest

from protos import jobs_pb2
from tests.lavactl.scripted import Desk

W, H, N = jobs_pb2.WAITING, jobs_pb2.HOLDS, jobs_pb2.NEVER_HOLDS


def test_a_condition_is_waited_for(desk: Desk) -> None:
    """Also when the connection is lost meanwhile: it is asked again, after LSF's interval at the latest."""
    desk.client.verdicts = [W, W, H]
    result = desk.type("bwait", "-w", "done(7) && ended(x)")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert desk.client.asked == [jobs_pb2.WaitRequest(condition="done(7) && ended(x)")] * 3
    assert desk.client.silences == [600.0] * 3
    desk.environ["LSB_BWAIT_REREG_INTERVAL"] = "3"
    desk.client.verdicts = [H, H]
    desk.type("bwait", "-w", "7")
    desk.type("bwait", "-w", "7", "-r", "2")
    assert desk.client.silences[-2:] == [180.0, 120.0]


def test_a_condition_that_is_not_met(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Never, or not in time: one sentence and exit code 255."""
    desk.client.verdicts = [N]
    result = desk.type("bwait", "-w", "done(7)")
    assert (result.code, result.err) == (255, "The wait condition can never be met any more.\n")
    clock = iter((0.0, 0.0, 100.0, 120.0))
    monkeypatch.setattr("lavactl.io.Io.monotonic", lambda self: next(clock))
    desk.client.verdicts = [W, W]
    result = desk.type("bwait", "-w", "done(7)", "-t", "2")
    assert (result.code, result.err) == (255, "The wait condition was not met within 2 minutes.\n")
    assert desk.client.silences[-2:] == [120.0, 20.0]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "one condition is expected, behind -w"),
        (["-w", "done(1)", "2"], "one condition is expected, behind -w"),
        (["-w", "1", "-t", "soon"], "bwait -t soon: expected a number of minutes from 1 to 525600."),
        (["-w", "1", "-r", "0"], "bwait -r 0: expected a number of minutes"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_asked(desk: Desk, argv: list[str], words: str) -> None:
    """One sentence, exit code 255."""
    result = desk.type("bwait", *argv)
    assert result.code == 255
    assert words in result.err
    assert not desk.client.asked


def test_within_a_job_if_the_site_lets_it(desk: Desk) -> None:
    """LSB_BWAIT_IN_JOBS=N."""
    desk.environ |= {"LSB_JOBID": "7", "LSB_BWAIT_IN_JOBS": "N"}
    assert "not within jobs" in desk.type("bwait", "-w", "1").err
    del desk.environ["LSB_JOBID"]
    desk.client.verdicts = [H]
    assert desk.type("bwait", "-w", "1").code == 0
