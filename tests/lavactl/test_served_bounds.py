"""Bounds of served commands: which of them are their callers' to run, and which let others go first."""

import threading
from collections.abc import Callable

import pytest

from lavactl.served import bounds
from lavactl.served.bounds import HELD_BY_ALL, HELD_MAX, SHOWN_TIMES, Load, Part, check_row
from lavactl.served.caller import CallerNeeded, CommandLost

MIB = 1 << 20


def test_a_command_that_holds_much_is_its_callers() -> None:
    """As long as nothing of it was shown; from then on it is lost only if it holds far more."""
    part = Part(Load(), 7)
    part.hold(HELD_MAX)
    with pytest.raises(CallerNeeded):
        part.hold(1)
    part.let_go()
    part.hold(SHOWN_TIMES * HELD_MAX)
    with pytest.raises(CommandLost):
        part.hold(1)


def test_commands_together_hold_no_more_than_all_may() -> None:
    """Many with a little each; what one has held is free when it is over, or has shown it."""
    load = Load()
    parts = [Part(load, uid) for uid in range(HELD_BY_ALL // HELD_MAX + 1)]
    for part in parts[:-1]:
        part.hold(HELD_MAX)
    with pytest.raises(CallerNeeded):
        parts[-1].hold(MIB)
    parts[0].let_go()
    parts[1].close()
    parts[-1].hold(0)
    Part(load, 9).hold(HELD_MAX)


def test_long_commands_wait_for_new_ones_of_other_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for those of the same user, nor for those that are long themselves, and never for ever."""
    monkeypatch.setattr(bounds, "PAUSE_S", 60.0)
    load, now = Load(), Clock()
    monkeypatch.setattr(bounds, "time", now)
    long, own = Part(load, 7), Part(load, 7)
    now.at = 10.0
    long.step()
    other = Part(load, 8)
    now.at = 11.0
    waiting = background(long.step)
    assert waiting.is_alive()
    other.close()
    waiting.join(30)
    assert not waiting.is_alive()
    monkeypatch.setattr(bounds, "PAUSE_S", 0.01)
    Part(load, 9)
    now.at = 12.0
    long.step()
    own.close()


def test_a_command_without_memory_is_its_callers_if_nothing_was_changed() -> None:
    """A change that may have been made is not made again."""
    part = Part(Load(), 7)
    with pytest.raises(CallerNeeded):
        part.give_up()
    part.can_leave = False
    with pytest.raises(CommandLost):
        part.give_up()


@pytest.mark.parametrize(
    ("names", "width", "fits"),
    [
        (["jobid", "stat", "queue"], 40, True),
        ([f"f{at}" for at in range(150)], 8000, True),
        (["command"] * 4, 0, True),
        (["command"] * 5, 0, False),
        (["jobid"], 9999, False),
        ([], 0, True),
    ],
)
def test_rows(names: list[str], width: int, fits: bool) -> None:
    """All fields there are make a row that is served; very wide ones, and the same field again and again, do not."""
    if fits:
        check_row(names, width)
        return
    with pytest.raises(CallerNeeded):
        check_row(names, width)


class Clock:
    """Time that passes when the test says so."""

    at = 0.0

    def thread_time(self) -> float:
        """Processor time of every thread."""
        return self.at


def background(work: Callable[[], None]) -> threading.Thread:
    """A thread that has been given a moment to end."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(0.05)
    return thread
