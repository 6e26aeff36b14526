"""Free slots over future time: holes, reservations, and comparison with a simple model."""

from hypothesis import given, settings
from hypothesis import strategies as st

from lavad.core.scheduling.backfill.profile import NEVER, PoolProfile

FREE = 3
NOW = 10.0
Promise = tuple[float, float, int]


def a_profile(*ends: tuple[float, int]) -> PoolProfile:
    """Three slots are free now, more are released at those times."""
    return PoolProfile(NOW, FREE, iter(sorted(ends)))


def test_what_fits_now_starts_now() -> None:
    """No future time is examined."""
    assert a_profile((20, 4)).earliest(3, 1000) == NOW


def test_a_hole_is_found_where_enough_comes_back() -> None:
    """Slots released at one time count together; those never released never count."""
    profile = a_profile((20, 1), (30, 2), (30, 3))
    assert profile.earliest(4, 5) == 20
    assert profile.earliest(9, 5) == 30
    assert profile.earliest(10, 5) == NEVER


def test_a_promise_holds_its_slots_for_its_time() -> None:
    """A short job fits before it, a long one only after it."""
    profile = a_profile((20, 4))
    profile.take(20, 10, 7)
    assert profile.earliest(3, 10) == NOW
    assert profile.earliest(3, 11) == 30
    assert (profile.free_until(20), profile.free_until(21)) == (3, 0)
    assert (profile.earliest(1, 11), profile.earliest(7, 11), profile.earliest(8, 11)) == (30, 30, NEVER)


def test_free_until_is_the_least_on_the_way() -> None:
    """Minimum from now to then, without the end itself."""
    profile = a_profile((20, 4))
    profile.take(15, 5, 2)
    assert (profile.free_until(15), profile.free_until(16), profile.free_until(NEVER)) == (3, 1, 1)


def test_a_promise_without_an_end_is_for_ever() -> None:
    """A job without a run limit reserves for ever."""
    profile = a_profile((20, 4))
    profile.take(NOW, NEVER, 3)
    assert profile.earliest(1, 1) == 20
    assert profile.earliest(5, 1) == NEVER


ends = st.lists(st.tuples(st.integers(11, 30).map(float), st.integers(1, 3)), max_size=5)
wanted = st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=6)


def free_then(at: float, given_back: list[tuple[float, int]], promised: list[Promise]) -> int:
    """The model: count everything."""
    back = sum(slots for time, slots in given_back if time <= at)
    return FREE + back - sum(slots for start, end, slots in promised if start <= at < end)


def earliest_hole(slots: int, duration: int, given_back: list[tuple[float, int]], promised: list[Promise]) -> float:
    """The model: try every second."""
    for start in range(int(NOW), 200):
        if all(free_then(at, given_back, promised) >= slots for at in range(start, start + duration)):
            return start
    return NEVER


@settings(max_examples=300, deadline=None)
@given(ends, wanted)
def test_promises_are_those_of_the_twin(given_back: list[tuple[float, int]], jobs: list[tuple[int, int]]) -> None:
    """Each job gets the earliest hole after those before it, and free_until is the rest that they leave."""
    profile, promised = a_profile(*given_back), list[Promise]()
    for slots, duration in jobs:
        start = profile.earliest(slots, duration)
        assert start == earliest_hole(slots, duration, given_back, promised)
        if start < NEVER:
            profile.take(start, duration, slots)
            promised.append((start, start + duration, slots))
    least = FREE
    for at in range(int(NOW), 100):
        least = min(least, free_then(at, given_back, promised))
        assert profile.free_until(at + 1) == least
