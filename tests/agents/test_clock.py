"""Time limits of an attempt: reached once, paused while it is stopped, changed while it runs."""

from agents.shepherd.clock import NEVER, RunClock


def test_a_run_limit_stands_still_while_the_job_is_stopped() -> None:
    """A second stop has no effect; a deadline is not paused."""
    clock = RunClock(10, 0, 100, 1000)
    clock.stop(104)
    clock.stop(106)
    assert clock.next_at == NEVER
    clock.resume(120)
    assert clock.next_at == 126
    assert not clock.reached(125)
    assert clock.reached(126) == "TERM_RUNLIMIT"
    assert not clock.reached(127)
    dated = RunClock(0, 1010, 100, 1000)
    dated.stop(101)
    assert dated.reached(110) == "TERM_DEADLINE"


def test_another_limit_counts_from_the_start() -> None:
    """A longer one, one already exceeded, none, and a first one; also for a stopped job."""
    clock = RunClock(10, 0, 100, 1000)
    clock.change(20, 0, 105, 1005)
    assert clock.next_at == 120
    clock.change(0, 0, 106, 1006)
    assert clock.next_at == NEVER
    clock.stop(110)
    clock.change(15, 1100, 112, 1012)
    assert clock.next_at == 200
    clock.resume(114)
    assert clock.next_at == 119
    clock.change(5, 0, 115, 1015)
    assert clock.reached(115) == "TERM_RUNLIMIT"
