"""Time windows follow local time, also in weeks with a change of the clock."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lavad.core.model.windows import NEVER, Calendar, Window, is_open, moment_text, next_change, opens_at

BERLIN = ZoneInfo("Europe/Berlin")
HOURS = 60
WORK = tuple(Window(day * 24 * HOURS + 9 * HOURS, day * 24 * HOURS + 17 * HOURS) for day in range(1, 6))
ANY_TIME = st.integers(1_790_000_000, 1_830_000_000).map(float)  # covers three changes of the clock
ANY_WINDOWS = st.lists(
    st.builds(Window, st.integers(0, 7 * 24 * HOURS - 1), st.integers(1, 7 * 24 * HOURS)), min_size=1, max_size=3
).map(tuple)


def at(text: str, fold: int = 0) -> float:
    """A moment by Berlin's clock."""
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).timestamp()


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("2026-11-20T08:59", False),
        ("2026-11-20T09:00", True),
        ("2026-11-20T16:59", True),
        ("2026-11-20T17:00", False),
        ("2026-11-21T12:00", False),
    ],
)
def test_working_hours(moment: str, expected: bool) -> None:
    """From the minute it opens to the minute before it closes; not at weekends."""
    assert is_open(WORK, BERLIN, at(moment)) == expected


def test_when_it_changes_next() -> None:
    """On Friday evening that is Monday morning."""
    assert next_change(WORK, BERLIN, at("2026-11-20T17:00")) == at("2026-11-23T09:00")
    assert next_change(WORK, BERLIN, at("2026-11-23T09:00")) == at("2026-11-23T17:00")


def test_a_window_wraps_the_week() -> None:
    """Saturday 20:00 to Sunday 8:00."""
    saturday = Window(6 * 24 * HOURS + 20 * HOURS, 8 * HOURS)
    assert is_open((saturday,), BERLIN, at("2026-11-22T07:59"))
    assert next_change((saturday,), BERLIN, at("2026-11-21T21:00")) == at("2026-11-22T08:00")


def test_without_windows_it_is_always_open() -> None:
    """And with one that is never closed nothing changes."""
    assert is_open((), UTC, 0.0)
    assert next_change((), UTC, 0.0) == NEVER
    assert next_change((Window(0, 7 * 24 * HOURS),), BERLIN, at("2026-11-20T17:00")) == NEVER


def test_the_hour_that_does_not_exist() -> None:
    """In spring 2:30 is skipped: a window that opens then opens at 3:00, which is the same moment as 2:00."""
    sunday = Window(2 * HOURS + 30, 5 * HOURS)
    before = at("2027-03-28T01:00")
    opens = next_change((sunday,), BERLIN, before)
    assert opens == before + 3600
    assert next_change((sunday,), BERLIN, opens) == opens + 2 * 3600


def test_the_hour_that_comes_twice() -> None:
    """In autumn 2:00 to 3:00 comes twice, and a window in it opens twice."""
    sunday = Window(2 * HOURS + 15, 2 * HOURS + 45)
    moment, changes = at("2026-10-25T01:00"), []
    for _ in range(4):
        moment = next_change((sunday,), BERLIN, moment)
        changes.append(moment - at("2026-10-25T01:00"))
    assert changes == [75 * 60, 105 * 60, 135 * 60, 165 * 60]


@given(ANY_WINDOWS, ANY_TIME)
def test_nothing_changes_before_the_next_change(windows: tuple[Window, ...], moment: float) -> None:
    """Compared minute by minute over two days."""
    until = next_change(windows, BERLIN, moment)
    state = is_open(windows, BERLIN, moment)
    first = datetime.fromtimestamp(moment, UTC).replace(second=0) + timedelta(minutes=1)
    for minute in range(2 * 24 * HOURS):
        now = (first + timedelta(minutes=minute)).timestamp()
        if now >= until:
            assert is_open(windows, BERLIN, until) is not state
            assert until % 60 == 0
            return
        assert is_open(windows, BERLIN, now) is state


def test_when_two_kinds_of_windows_are_open_together() -> None:
    """A queue that runs at night and dispatches on working days from 20:00 to 23:00, asked on a Saturday."""
    night = tuple(Window(day * 24 * HOURS + 22 * HOURS, day * 24 * HOURS + 24 * HOURS) for day in range(6))
    evening = tuple(Window(day * 24 * HOURS + 20 * HOURS, day * 24 * HOURS + 23 * HOURS) for day in range(1, 6))
    assert opens_at([night, evening], BERLIN, at("2026-11-21T12:00")) == at("2026-11-23T22:00")
    assert opens_at([night, evening], BERLIN, at("2026-11-23T22:30")) == at("2026-11-23T22:30")
    assert opens_at([evening, (Window(24 * HOURS, 25 * HOURS),)], BERLIN, at("2026-11-21T12:00")) == NEVER
    assert moment_text(at("2026-11-23T22:00"), BERLIN) == "Mon Nov 23 22:00"


@given(ANY_WINDOWS, ANY_WINDOWS, ANY_TIME)
def test_they_open_no_sooner(one: tuple[Window, ...], other: tuple[Window, ...], moment: float) -> None:
    """Compared minute by minute over two days."""
    opens = opens_at([one, other], BERLIN, moment)
    if opens < NEVER:
        assert is_open(one, BERLIN, opens)
        assert is_open(other, BERLIN, opens)
    first = datetime.fromtimestamp(moment, UTC).replace(second=0) + timedelta(minutes=1)
    for minute in range(2 * 24 * HOURS):
        now = (first + timedelta(minutes=minute)).timestamp()
        if now >= opens:
            return
        assert not (is_open(one, BERLIN, now) and is_open(other, BERLIN, now))


@given(ANY_WINDOWS, st.lists(ANY_TIME, min_size=1, max_size=5))
def test_a_calendar_only_saves_work(windows: tuple[Window, ...], moments: list[float]) -> None:
    """Its results do not depend on earlier calls; it may be asked about the past as well."""
    calendar = Calendar()
    for moment in moments:
        assert calendar.look(windows, BERLIN, moment) == (
            is_open(windows, BERLIN, moment),
            next_change(windows, BERLIN, moment),
        )
