"""Advance reservations against a slow obvious twin, which checks every hour."""

from dataclasses import dataclass

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from lavad.core import commands as c
from lavad.core import events as e
from lavad.core import invariants
from lavad.core.model import Key
from lavad.core.model.advance_reservation import AdvanceReservation
from lavad.core.model.demand import Demand
from lavad.core.model.reasons import Refused
from lavad.core.model.windows import Window
from lavad.core.scheduling.capacity.advance_reservations import ReservedCapacity
from lavad.core.state.attempts import Attempt
from tests.builders import BOB, Story, a_cluster, a_host, a_job

HOUR = 3600
HOURS_AHEAD = 24 * 20  # all one-time reservations are over by then, and some week of all others
Hours = NDArray[np.bool_]
USERS = ("ann",)


@dataclass(frozen=True)
class Wanted:
    """A reservation as it is drawn; ``windows`` in hours of the week."""

    slots: int
    begin: int
    length: int
    window: tuple[int, int] | None
    is_open: bool

    def times(self) -> dict[str, object]:
        """Arguments of ``Story.reserve``."""
        if self.window is not None:
            return {"windows": (Window(self.window[0] * 60, self.window[1] * 60),)}
        return {"begin": self.begin * HOUR, "end": (self.begin + self.length) * HOUR}


hours_of_week = st.integers(36, 60) | st.integers(0, 167)  # mostly in the first day
windows = st.none() | st.tuples(hours_of_week, hours_of_week).filter(lambda pair: pair[0] != pair[1])
begins = st.integers(0, 12) | st.integers(0, 12) | st.integers(0, 240)
wanted = st.builds(Wanted, st.integers(1, 6), begins, st.integers(1, 30), windows, st.booleans())
limits = st.integers(0, 14)  # hours; 0: none
jobs = st.tuples(st.integers(1, 3), limits)


def holds(one: AdvanceReservation, begin: float) -> Hours:
    """In which hours from ``begin`` on it holds, as the definition has it; all times are whole hours."""
    hours = int(begin) // HOUR + np.arange(HOURS_AHEAD)
    if not one.times.windows:
        return (one.times.begins_at <= hours * HOUR) & (hours * HOUR < one.times.ends_at)
    (window,) = one.times.windows
    of_week = (hours + 4 * 24) % 168  # the epoch began on a Thursday
    start, end = window.start // 60, window.end // 60
    return (start <= of_week) & (of_week < end) if start < end else (of_week >= start) | (of_week < end)


def name_of(story: Story, key: Key) -> str:
    """The reservation an attempt runs in."""
    return story.cluster.jobs[key.job].shared.request.reservation


def is_there(story: Story, attempt: Attempt, held: dict[str, Hours]) -> Hours:
    """In which hours from now on it will hold its hosts: until its run limit, or its reservation's end."""
    limit = story.cluster.jobs[attempt.key.job].shared.run_limit_s
    hours = story.now + HOUR * np.arange(HOURS_AHEAD)
    end = (attempt.started_at or attempt.dispatched_at) + limit if limit else np.inf
    one = story.cluster.reserved.by_name.get(name_of(story, attempt.key))
    if one is not None and not one.is_open:
        is_in = held[one.name]
        begun = np.flatnonzero(is_in)
        ended = np.flatnonzero(~is_in[begun[0] :]) if len(begun) else []
        end = min(end, hours[begun[0] + ended[0]] if len(ended) else np.inf)
    return hours < end


def allowed(story: Story, host: str, limit_s: int) -> int:
    """Slots of a host available to one more job without a reservation: at every hour all fits beside it."""
    last = limit_s // HOUR or HOURS_AHEAD
    return story.cluster.hosts[host].facts.slots - int(needed(story, host)[:last].max())


def needed(story: Story, host: str) -> NDArray[np.int64]:
    """Slots of a host held or reserved at each hour; a reservation includes those of its own jobs."""
    reservations = story.cluster.reserved.by_name
    held = {name: holds(one, story.now) for name, one in reservations.items()}
    found = np.zeros(HOURS_AHEAD, np.int64)
    own = {name: np.zeros(HOURS_AHEAD, np.int64) for name in reservations}
    for key, share in story.cluster.hosts[host].attempts.items():
        there = share.slots * is_there(story, story.cluster.attempts[key], held)
        name = name_of(story, key)
        if name in own:
            own[name] += there * held[name]
            there = there * ~held[name]
        found += there
    for name, one in reservations.items():
        found += np.maximum(own[name], dict(one.hosts).get(host, 0)) * held[name]
    return found


def reserve(story: Story, one: Wanted) -> None:
    """Make the reservation if there are slots for it."""
    try:
        story.reserve(one.slots, users=USERS, is_open=one.is_open, **one.times())
    except Refused:
        return


def start_all(story: Story) -> None:
    """Start all dispatched jobs."""
    for key in list(story.cluster.staging):
        attempt = story.cluster.attempts[key]
        if not attempt.launched:
            for share in attempt.allocation:
                story.staged(share.host, key)
        story.started(attempt.lead, key)


def advance(story: Story, hours: int) -> None:
    """Let time pass; jobs end when they must."""
    for _ in range(hours):
        story.now += HOUR
        story.hear(*story.cluster.hosts)
        story.do(c.Tick())
        held = {name: holds(one, story.now) for name, one in story.cluster.reserved.by_name.items()}
        for key, attempt in list(story.cluster.attempts.items()):
            if attempt.kill_reason or not is_there(story, attempt, held)[0]:
                for share in attempt.allocation[1:]:
                    story.released(share.host, key)
                story.finished(attempt.lead, key)


def a_story() -> Story:
    """Two hosts, on a whole hour: tests count in hours."""
    story = a_cluster(a_host("n1", slots=4), a_host("n2", slots=3))
    story.now -= story.now % HOUR - HOUR
    story.hear("n1", "n2")
    return story


# A job in the first reservation is ended with it, long before the second begins: it does not block the second.
ONE_AFTER_ANOTHER = [Wanted(1, 0, 3, None, False), Wanted(2, 5, 3, None, False)]


@settings(max_examples=200)
@example([], ONE_AFTER_ANOTHER, 0, 10)
@example([(1, 6)], [*ONE_AFTER_ANOTHER, Wanted(1, 9, 2, None, True)], 1, 14)
@given(
    st.lists(jobs, max_size=4), st.lists(wanted, min_size=1, max_size=4), st.integers(0, 8) | st.integers(0, 30), limits
)
def test_what_is_left_is_what_fits_at_every_hour(
    running: list[tuple[int, int]], reservations: list[Wanted], hours: int, limit: int
) -> None:
    """The few moments that are checked agree with all hours."""
    story = a_story()
    for slots, hours_limit in running:
        story.submit(a_job(slots, caller=BOB, run_limit_s=hours_limit * HOUR))
    story.plan()
    start_all(story)
    for one in reservations:
        reserve(story, one)
    for name in list(story.cluster.reserved.by_name):
        story.submit(a_job(1, reservation=name))
    story.plan()
    start_all(story)
    advance(story, hours)
    request = a_job().shared.request
    most = ReservedCapacity(story.cluster, story.now).most(Demand("ann", "normal", "default", request, limit * HOUR))
    for host in ("n1", "n2"):
        row = story.cluster.table.rows[host]
        free = int(story.cluster.table.slots_free[row])
        found = free if most is None else min(free, int(most[row]))
        assert max(0, found) == max(0, min(free, allowed(story, host, limit * HOUR))), (host, most)


work = st.lists(st.one_of(jobs, wanted, st.integers(1, 12)), min_size=3, max_size=14)


@given(work)
def test_nobody_is_started_on_what_is_set_apart(steps: list[tuple[int, int] | Wanted | int]) -> None:
    """For any order of submissions and reservations: each start was allowed, hour by hour, when it was made."""
    story = a_story()
    for step in steps:
        if isinstance(step, Wanted):
            reserve(story, step)
            for name in story.cluster.reserved.by_name:
                story.submit(a_job(2, reservation=name, tasks_min=1))
        elif isinstance(step, int):
            plan_watched(story)
            advance(story, step)
        else:
            story.submit(a_job(step[0], caller=BOB, run_limit_s=step[1] * HOUR))
        invariants.check_reserved(story.cluster, story.now)
    plan_watched(story)


def plan_watched(story: Story) -> None:
    """A pass; every start is held against the twin as it stood before."""
    for _ in range(100):
        since = len(story.events)
        story.plan()
        events = story.events[since:]
        if not events:
            return
        for event in events:
            if isinstance(event, e.AttemptDispatched) and not name_of(story, event.key):
                for share in event.allocation:
                    limit = story.cluster.jobs[event.key.job].shared.run_limit_s
                    assert allowed(story, share.host, limit) >= 0, event
        start_all(story)


def test_the_twin_knows_the_week() -> None:
    """The tests begin on a Monday afternoon."""
    story = a_story()
    story.reserve(1, windows=(Window(1440 + 14 * 60, 1440 + 15 * 60),))
    (one,) = story.cluster.reserved.by_name.values()
    (hour,) = np.flatnonzero(holds(one, story.now)[:24])
    assert int(story.now + hour * HOUR) % 86400 == 14 * HOUR
