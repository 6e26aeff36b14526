"""The short way of EASY backfilling decides what the long way does; its shadow tells what all of the future would."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lavad.core.indexes.ends import ExpectedEnd
from lavad.core.model import Key
from lavad.core.policy import Policy, Queue
from lavad.core.scheduling import easy
from lavad.core.scheduling.profile import PoolProfile
from lavad.core.scheduling.shadow import Shadow
from tests.builders import Story, a_host, a_job
from tests.properties.test_cycle import CALLERS, Player, all_of, whole_pass

NOW = 1000.0


class EasyPlayer(Player):
    """Has jobs that any free slots will do for, and at times others."""

    def __init__(self, seed: int, with_others: bool) -> None:
        super().__init__(seed)
        rng, self.with_others = self.rng, with_others
        depth = rng.choice((0, 1, 1, 1))
        queues = Queue("normal", 30, backfill_depth=depth), Queue("short", rng.choice((20, 30, 40)))
        hosts = [a_host(f"n{n}", rng.choice((1, 1, 2, 8)), 4000) for n in range(1, rng.choice((2, 4, 12)))]
        self.actions = [one for one in self.actions if one != self.silence]  # there may be one host
        self.story = Story(*hosts, policy=Policy(queues, user_priority_max=10))

    def submit(self) -> None:
        """Some jobs of few kinds, or at times one of any kind."""
        rng = self.rng
        for _ in range(rng.choice((1, 2, 10))):
            tasks = rng.choice((1, 1, 2, 3, 6))
            is_other = self.with_others and rng.random() < 0.15
            self.story.submit(
                a_job(
                    caller=rng.choice(CALLERS[:2]),
                    run_limit_s=rng.choice((0, 60, 60, 300, 600)),
                    queue=rng.choice(("normal", "normal", "short")),
                    priority=rng.choice((0, 0, 0, 9)),
                    tasks_min=tasks,
                    tasks_max=tasks + rng.choice((0, 0, 0, 2)),
                    array=rng.choice(("", "1-4")) if is_other else "",
                    memory_mib=rng.choice((0, 1500)) if is_other else 0,
                    exclusive=is_other and rng.random() < 0.2,
                )
            )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 30, 100_000]), st.booleans())
def test_both_ways_start_the_same_jobs_for_the_same_reasons(seed: int, steps: int, with_others: bool) -> None:
    """After each change, each with what it remembers of its own passes."""
    player, twin = EasyPlayer(seed, with_others), EasyPlayer(seed, with_others)
    for _ in range(25):
        player.play()
        twin.play()
        short = whole_pass(player.story, player.story.agenda, steps)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(easy, "turns_of", lambda cluster, agenda: None)
            assert short == whole_pass(twin.story, twin.story.agenda, 100_000)
        assert all_of(player.story.cluster) == all_of(twin.story.cluster)
        assert holders(player.story) == holders(twin.story)


def holders(story: Story) -> list[int]:
    """Which jobs hold a reservation."""
    return [one.job for one in story.agenda.book.reservations]


@given(
    st.integers(0, 8),
    st.integers(1, 12),
    st.lists(st.tuples(st.sampled_from([990.0, 1001.0, 1002.0, 1010.0, 1030.0, float("inf")]), st.integers(1, 4))),
    st.lists(st.tuples(st.sampled_from([1001.0, 1005.0, 1010.0, 1031.0, float("inf")]), st.integers(1, 3))),
)
def test_a_shadow_tells_what_a_profile_of_the_future_tells(
    free: int, wanted: int, ends: list[tuple[float, int]], asked: list[tuple[float, int]]
) -> None:
    """Of each job that asks to go first, and takes its slots if it may."""
    running = sorted([ExpectedEnd(end, slots, Key(0, 0, 0)) for end, slots in ends])
    shadow = Shadow(NOW, free, wanted, running)
    known = iter([(max(end, NOW + 1), slots) for end, slots, _ in running if end < float("inf")])
    profile = PoolProfile(NOW, free, known)
    begin = profile.earliest(wanted, float("inf"))
    assert begin == shadow.at
    if begin < float("inf"):
        profile.take(begin, float("inf"), wanted)
    for end, slots in asked:
        if slots <= free:
            most = shadow.most(end, free)
            assert most == profile.free_until(end)
            if slots <= most:
                shadow.take(end, slots)
                profile.take(NOW, end - NOW, slots)
                free -= slots
